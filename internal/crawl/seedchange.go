package crawl

import (
	"context"
	"fmt"

	"github.com/amble-crawler/amble/internal/crawl/internal/seedbook"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/seeds"
	"github.com/amble-crawler/amble/internal/sweep"
	"github.com/amble-crawler/amble/storage"
)

// SeedWish is a change of seeds that somebody wants.
type SeedWish = seedbook.Wish

// SeedCounts is what became of a SeedWish.
type SeedCounts = seedbook.Counts

// ChangeSeeds adds and removes seeds, and returns when that is on disk. The seeds are in their queues then, and the
// scope is that of the new seeds. The URLs that wait and are of no seed any more are excluded in the background, also
// after a restart; what was fetched stays. In a cluster it holds for all shards. The error is inspect.ErrUnknown for a
// seed to remove that there is not, and then nothing has changed; ErrNotRunning, ErrDraining, that of the context, or
// why it could not be committed. Any goroutine may call it.
func (e *Engine) ChangeSeeds(ctx context.Context, w SeedWish) (SeedCounts, error) {
	if _, err := e.openMailbox(); err != nil {
		return SeedCounts{}, err
	}
	e.seedChanges.Lock()
	defer e.seedChanges.Unlock()
	all, err := e.Seeds()
	if err != nil {
		return SeedCounts{}, err
	}
	c, err := planSeeds(all, &w)
	if err != nil || len(c.Add)+len(c.Remove) == 0 {
		return c.Counts, err
	}
	err = e.mailbox.Load().submit(ctx, func(d *dispatcher) error {
		rows := c.Rows(d.f.Scope().Seeds())
		d.pending.rows.Seeds = append(d.pending.rows.Seeds, rows...)
		d.applySeeds(rows)
		return nil
	})
	if err != nil {
		return SeedCounts{}, fmt.Errorf("change seeds: %w", err)
	}
	e.log.Info("seeds have changed", "added", c.Added, "changed", c.Changed, "removed", c.Removed)
	return c.Counts, e.queueSeeds(ctx, c.Add)
}

// planSeeds is seedbook.Plan with an error for seeds that there are not.
func planSeeds(all []Seed, w *SeedWish) (c seedbook.Change, err error) {
	if c = seedbook.Plan(all, w); len(c.Unknown) > 0 {
		return c, fmt.Errorf("seed %s: %w", c.Unknown[0], inspect.ErrUnknown)
	}
	return c, nil
}

// queueSeeds adds seeds to their queues, in the order of their hosts.
func (e *Engine) queueSeeds(ctx context.Context, add []Seed) error {
	order := hostOrder{store: e.store, sorter: e.shared.room.NewSorter(true), commit: e.commitAddition}
	scope := e.scope.Load()
	for i := range add {
		s := &add[i]
		f, ok := e.o.foundSeed(e.store, scope, s)
		if !ok {
			e.log.Warn("seed left out", "seed", s.URL.String(), "source", s.Source,
				"reason", scopeReason(scope, s.URL, seeds.Ref{}))
			continue
		}
		if err := order.take(&listItem{Found: f}); err != nil {
			return err
		}
	}
	return order.commitAll(ctx, storage.Found{At: e.o.Now()}, func(*hostBatch) {})
}

// applySeeds puts changes of seeds in force.
func (x *exclusions) applySeeds(changes []storage.SeedRow) {
	scope := x.f.Scope()
	set, narrow := seedbook.Apply(scope.Seeds(), changes)
	x.setScope(scope.WithSeeds(set))
	x.reconsider()
	if narrow {
		x.sweeps.exclude(x.pending)
	}
	x.collect()
}

// Seeds returns all seeds, and where their redirects led, in the order of their URLs. Any goroutine may call it.
func (v *views) Seeds() ([]Seed, error) {
	all, err := seedbook.Read(v.store)
	if err == nil && v.o.Cluster != nil {
		changes, _ := v.o.Cluster.Seeds(0)
		all = seedbook.Merge(all, changes)
	}
	return all, err
}

// SeedKeeper changes the seeds of a crawl that does not run.
type SeedKeeper struct{ *offline }

// OpenSeeds opens the store in o.DataDir, and makes one if there is none. The errors of storage.Open come through.
func OpenSeeds(o Options) (*SeedKeeper, error) {
	f, err := openOffline(&o)
	if err != nil {
		return nil, err
	}
	return &SeedKeeper{f}, nil
}

// ChangeSeeds is Engine.ChangeSeeds; the next run fetches the seeds, and drops what is of no seed any more.
func (k *SeedKeeper) ChangeSeeds(_ context.Context, w SeedWish) (SeedCounts, error) {
	all, err := StoredSeeds(k.store)
	if err != nil {
		return SeedCounts{}, err
	}
	c, err := planSeeds(all, &w)
	b := storage.Batch{Seeds: c.Rows(seeds.NewSet(0).With(all))}
	if err != nil || b.Empty() {
		return c.Counts, err
	}
	if c.Removed > 0 {
		b.Marks = map[string][]byte{sweep.MarkExclude: []byte(storage.Position{}.String())}
	}
	if _, err := k.commit(&b); err != nil {
		return SeedCounts{}, fmt.Errorf("change seeds: %w", err)
	}
	return c.Counts, nil
}

// StoredSeeds is Engine.Seeds of a crawl that does not run.
func StoredSeeds(s seedbook.Store) ([]Seed, error) { return seedbook.Read(s) }
