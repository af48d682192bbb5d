//go:build !core

package audit

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
)

// Logs returns the request logs in data directories, for Run: those that belong together in one slice. A node of a
// cluster has a log for each shard that it has ever had, and other nodes may have others of the same shards. A sole
// directory without a log is as if it had one, so that reading it says why there is none; of several, each has to have
// one.
func Logs(dirs []string) (logs [][]string, err error) {
	shards := make(map[string][]string) // "": of crawls without a cluster
	for _, dir := range dirs {
		var found []string
		for _, pattern := range []string{requestlog.DirName, filepath.Join("shards", "*", requestlog.DirName)} {
			some, err := fs.Glob(os.DirFS(dir), filepath.ToSlash(pattern))
			if err != nil {
				return nil, err
			}
			found = append(found, some...)
		}
		if len(found) == 0 && len(dirs) > 1 {
			return nil, fmt.Errorf("there is no request log in %s: name the data_dir of a node", dir)
		}
		if len(found) == 0 {
			found = []string{requestlog.DirName}
		}
		for _, log := range found {
			shard := strings.TrimSuffix(log, requestlog.DirName)
			shards[shard] = append(shards[shard], filepath.Join(dir, filepath.FromSlash(log)))
		}
	}
	for _, shard := range slices.Sorted(maps.Keys(shards)) {
		logs = append(logs, shards[shard])
	}
	return logs, nil
}
