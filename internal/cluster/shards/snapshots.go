//go:build !core

package shards

import (
	"context"
	"io"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/storage"
)

// makeSnapshots makes snapshots of the shards of this node, one at a time, until the context ends.
func (e *engines) makeSnapshots(ctx context.Context) {
	timer := time.NewTicker(e.o.SnapshotEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		e.makeDueSnapshots(ctx)
	}
}

// makeDueSnapshots makes all snapshots that are due, the most overdue first: those that come late may be due
// again, or belong to another node.
func (e *engines) makeDueSnapshots(ctx context.Context) {
	due, err := e.streams.SnapshotsDue(ctx)
	if err != nil && ctx.Err() == nil {
		e.log.Warn("whether snapshots are due cannot be read; it is tried again", "error", err)
	}
	for _, n := range due {
		shard := cluster.Shard(n)
		r := e.of(shard)
		if r == nil || ctx.Err() != nil {
			continue
		}
		r.lent.use(ctx, func(ctx context.Context, engine *crawl.Engine) {
			if err := r.makeSnapshot(ctx, engine); err != nil && ctx.Err() == nil {
				r.log.Warn("no snapshot of the shard could be made; it is tried again", "error", err)
			}
		})
	}
}

// makeSnapshot makes a snapshot, unless the engine is only beginning.
func (r *run) makeSnapshot(ctx context.Context, e *crawl.Engine) error {
	select {
	case <-e.Ready():
	default:
		return nil
	}
	return r.snapshot(ctx, e)
}

func (r *run) snapshot(ctx context.Context, e *crawl.Engine) error {
	return e.Snapshot(func(at storage.LogPosition, incoming uint64,
		backup func(func(int64) (io.Writer, error)) (int64, error)) error {
		if at.Number == 0 { // there is no log
			return nil
		}
		return r.held.WriteSnapshot(ctx, r.o.directory(r.holding.Shard()), at, incoming, backup)
	})
}
