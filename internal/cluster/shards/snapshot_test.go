package shards

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/storage"
)

// TestHeavySnapshots: when the log has only what is behind a snapshot, a node without a database, and one whose
// database is older than that, go on from the snapshot: they know all pages, and request none again.
func TestHeavySnapshots(t *testing.T) {
	t.Parallel()
	want := ringPages()
	w := newWorld(t, 10*time.Millisecond, longTTL)
	older, newer := t.TempDir(), t.TempDir()
	first := w.start("first", older)
	w.requested(len(want) / 4)
	first.leave()
	second := w.start("second", newer)
	second.commits(want)
	second.leave()
	w.snapshot(newer)
	before := len(w.check(want))

	empty := t.TempDir()
	for i, dir := range []string{empty, older} {
		p := w.start(fmt.Sprintf("taker%d", i), dir)
		w.eventually("the taker has opened all shards", func() error {
			for s := range cluster.Shard(shards) {
				if _, err := os.Stat(filepath.Join(p.node.engines.o.directory(s), "output")); err != nil {
					return err
				}
			}
			if len(p.owned()) < shards {
				return errNotYet
			}
			return nil
		})
		p.leave()
		assert.Equal(t, w.fetched(dir), len(want), p.name, "pages")
	}
	assert.Equal(t, len(w.check(want)), before, "requests of nodes that had nothing to request")
}

// TestDueSnapshots: when a node looks for them, all snapshots that are due are made.
func TestDueSnapshots(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10*time.Millisecond, longTTL)
	w.alter = func(o *Options) { o.SnapshotAbove, o.SnapshotEvery = 1, time.Hour }
	p := w.start("one", t.TempDir())
	p.commits(ringPages())
	w.eventually("all shards have snapshots", func() error {
		w.stalled.Store(0)
		p.node.engines.makeDueSnapshots(t.Context())
		reports, err := journal.ReadReports(t.Context(), p.node.js, names, shards)
		if err != nil {
			return err
		}
		for i := range reports {
			if reports[i].Snapshot.Size > 0 {
				continue
			}
			if time.Duration(w.stalled.Load()) < time.Second { // otherwise it may not have had the shard
				t.Fatalf("shard %d has no snapshot", i)
			}
			return fmt.Errorf("shard %d has none", i)
		}
		return nil
	})
}

// snapshot makes snapshots of the shards of a node that has left, which deletes the logs behind them.
func (w *world) snapshot(dir string) {
	w.t.Helper()
	nc, _ := natstest.Connect(w.t, natsconn.Options{
		URLs: []string{"nats://" + w.servers.Addresses()[0]}, Node: "snapshots", Names: names,
	})
	defer nc.Close()
	for s := range cluster.Shard(shards) {
		must.Do(w.t, snapshotShard(w.t.Context(), nc, w.directory(dir, s), s))
	}
}

func (w *world) directory(dir string, s cluster.Shard) string {
	o := Options{Crawl: crawlOptions(w.web, dir, "", 0)}
	return o.directory(s)
}

func snapshotShard(ctx context.Context, nc *nats.Conn, dir string, s cluster.Shard) error {
	streams, err := journal.Open(ctx, nc, journal.Options{
		Prefix: names.Base(), Replicas: 1, Shards: shards, Timeout: patience,
	})
	if err != nil {
		return err
	}
	db, err := storage.Open(dir, storage.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	at, err := db.LogPosition()
	if err != nil || at.Number == 0 {
		return err
	}
	backup := func(begin func(int64) (io.Writer, error)) (int64, error) { return db.Backup(begin) }
	return streams.Shard(ctx, int(s), 0).WriteSnapshot(ctx, dir, at, 0, backup)
}

// fetched returns how many pages the shards in a data directory have fetched.
func (w *world) fetched(dir string) (n int) {
	w.t.Helper()
	for s := range cluster.Shard(shards) {
		db := must.Get(storage.Open(w.directory(dir, s), storage.Options{}))(w.t)
		n += int(db.Counters().Of(storage.Fetched))
		must.Do(w.t, db.Close())
	}
	return n
}
