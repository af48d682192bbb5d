//go:build !core

package shards

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/storage"
)

// logFile is the name of the file that says which log the databases of shards in a directory belong to.
const logFile = "log"

// checkLog compares the log of the cluster with the one that the databases of shards in a directory belong
// to. If it is another one, the databases have what the log does not have: the error is
// storage.ErrAhead. So it is if nobody has noted which one that is. A directory without databases may be used
// with any log.
func checkLog(dir, identity string) error {
	path := filepath.Join(dir, logFile)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("find out which log the shards belong to: %w", err)
	}
	was := strings.TrimSpace(string(before))
	if was == identity {
		return nil
	}
	databases, err := filepath.Glob(filepath.Join(dir, "*", storage.FileName))
	if err != nil {
		return fmt.Errorf("find the databases of shards: %w", err)
	}
	if len(databases) > 0 {
		return fmt.Errorf(
			"%w: the log was made at %s, and the %d shards in %s belong to one that was made at %s. It was "+
				"deleted, or lost with its servers, or cluster.name has changed. Restore the NATS servers from a "+
				"backup, or begin again with what the nodes have: docs/CLUSTER.md, section \"A log that is lost\"",
			storage.ErrAhead, identity, len(databases), dir, cmp.Or(was, "an unknown time"))
	}
	if err = system.WriteFile(path, []byte(identity+"\n")); err != nil {
		return fmt.Errorf("note which log the shards belong to: %w", err)
	}
	return nil
}
