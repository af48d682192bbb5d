package shards

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestHeavyOutputLeft: output files that a killed node has left unfinished have their final names when it runs again,
// although the shards are those of another node.
func TestHeavyOutputLeft(t *testing.T) {
	t.Parallel()
	want, dir := ringPages(), t.TempDir()
	w := newWorld(t, 10*time.Millisecond, shortTTL)
	unfinished := func(s cluster.Shard) []string {
		output := filepath.Join(dir, "shards", fmt.Sprintf("%05d", s), "output")
		return must.Get(filepath.Glob(filepath.Join(output, "*"+archive.SuffixOpen)))(t)
	}
	first := w.startChild("first", dir)
	w.eventually("the node has unfinished files of some shards", func() error {
		some := 0
		for s := range cluster.Shard(shards) {
			some += min(len(unfinished(s)), 1)
		}
		if some < 2 {
			return errNotYet
		}
		return nil
	})
	first.kill()
	second := w.start("second", t.TempDir())
	w.crawled(want)
	second.commits(want)
	again := w.startChild("first", dir)
	w.eventually("the files of the other node's shards are finished", func() error {
		again.mu.Lock()
		defer again.mu.Unlock()
		for s := range cluster.Shard(shards) {
			if files := unfinished(s); len(files) > 0 && !slices.Contains(again.owned, s) {
				return fmt.Errorf("%v are not", files)
			}
		}
		if len(again.owned) == 0 {
			return errNotYet
		}
		return nil
	})
	again.leave()
	second.leave()
}
