package shards

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/storage"
)

// TestHeavyLeftovers: a node removes the databases of shards that another node owns for long, and keeps
// their output. When it has the shards again, it knows all that was committed, and requests no page twice.
func TestHeavyLeftovers(t *testing.T) {
	t.Parallel()
	g := newGrowing(4, 1)
	web := serve(t, g.sites)
	w := newWorldOf(t, web, allSeeds(t, web), natstest.Start(t, names, 1, nil), 50*time.Millisecond, longTTL)
	w.alter = func(o *Options) { o.KeepDatabases = 300 * time.Millisecond }
	first := w.start("first", t.TempDir())
	first.takes(shards)
	w.goesOn("with one node", 3)
	for s := range cluster.Shard(shards) { // as a process leaves it that is killed while it restores a snapshot
		left := filepath.Join(w.directory(first.dir, s), storage.SnapshotFile)
		must.Do(t, os.WriteFile(left, []byte("rows"), 0o600))
	}
	w.alter = func(o *Options) { o.Cluster.Weight = 1000 }
	second := w.start("second", t.TempDir())
	w.eventually("the databases of the first node are removed", func() error {
		for s := range cluster.Shard(shards) {
			for _, name := range []string{storage.FileName, storage.SnapshotFile} {
				_, err := os.Stat(filepath.Join(w.directory(first.dir, s), name))
				if !errors.Is(err, fs.ErrNotExist) {
					return errNotYet
				}
			}
		}
		return nil
	})
	for s := range cluster.Shard(shards) {
		files, err := os.ReadDir(filepath.Join(w.directory(first.dir, s), "output"))
		assert.True(t, err == nil, "the output of shard %d: %v, %v", s, files, err)
	}
	w.goesOn("with the second node", 3)
	second.leave()
	w.goesOn("with the first node again", 3)
	want := w.finish(g)
	first.leave()
	w.checkRepeats(want)
	for s := range cluster.Shard(shards) {
		w.checkRequestLog(first.dir, s)
	}
	assert.Equal(t, w.fetched(first.dir), len(want), "the first node pages")
}

// checkRequestLog holds that the request log of a shard has a result of each request.
func (w *world) checkRequestLog(dir string, s cluster.Shard) {
	w.t.Helper()
	_, err := requestlog.Read(filepath.Join(w.directory(dir, s), requestlog.DirName), requestlog.Query{},
		func(q *requestlog.Request) error {
			assert.True(w.t, !q.End.IsZero(), "shard %d: the request log has no result of the request for %s", s, q.URL)
			return nil
		})
	assert.NoError(w.t, err)
}
