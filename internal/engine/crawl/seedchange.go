package crawl

import (
	"context"
	"errors"
	"fmt"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/seedbook"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/storage"
)

// SeedWish is a change of seeds that somebody wants.
type SeedWish = seedbook.Wish

// SeedCounts is what became of a SeedWish.
type SeedCounts = seedbook.Counts

// errSeedsMoved says that the seeds are not those any more that a change was made for: a redirect of one led elsewhere.
var errSeedsMoved = errors.New("the seeds have changed")

// maxSeedTries is how often a change of seeds is made outside of the dispatcher, for which thousands are a long step.
// After that the dispatcher makes it for the seeds that it finds.
const maxSeedTries = 5

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
	before := e.scope.Load().Seeds()
	c, err := seedbook.Plan(before, &w)
	if err != nil || len(c.Add)+len(c.Remove) == 0 {
		return c.Counts, err
	}
	ready := c.Update(before)
	for try := 1; ; try++ {
		err = e.mailbox.Load().submit(ctx, func(d *dispatcher) error {
			if try < maxSeedTries && !ready.IsOf(d.f.Scope().Seeds()) {
				return errSeedsMoved
			}
			d.pending.rows.Seeds = append(d.pending.rows.Seeds, ready.Rows...)
			d.applySeeds(ready)
			return nil
		})
		if !errors.Is(err, errSeedsMoved) {
			break
		}
		ready = ready.Of(e.scope.Load().Seeds())
	}
	if err != nil {
		return SeedCounts{}, fmt.Errorf("change seeds: %w", err)
	}
	e.log.Info("seeds have changed", "added", c.Added, "changed", c.Changed, "removed", c.Removed)
	return c.Counts, e.queueSeeds(ctx, c.Add)
}

// queueSeeds adds seeds to their queues, in the order of their hosts.
func (e *Engine) queueSeeds(ctx context.Context, add []Seed) error {
	order := lists.Committer{Store: e.store, Sorter: e.shared.room.NewSorter(true), Commit: e.commitRows}
	scope := e.scope.Load()
	for i := range add {
		seeds.Yield(i)
		s := &add[i]
		f, ok := e.o.foundSeed(e.store, scope, s)
		if !ok {
			e.log.Warn("seed left out", "seed", s.URL.String(), "source", s.Source,
				"reason", scopeReason(scope, s.URL, new(storage.Entry)))
			continue
		}
		if err := order.Take(&lists.Item{Found: f}); err != nil {
			return err
		}
	}
	return order.CommitAll(ctx, storage.Found{At: e.o.Now()}, func(*lists.Batch) {})
}

// applySeeds puts changes of seeds in force.
func (x *exclusions) applySeeds(u *seedbook.Update) {
	scope := x.f.Scope()
	u = u.Of(scope.Seeds())
	x.setScope(scope.WithSeeds(u.After))
	x.reconsider()
	if u.Removes {
		x.sweeps.exclude(x.pending)
	}
}

// addScopeSeeds widens the scope by where seeds led. Nothing of a seed that was removed meanwhile is added.
func (g *gathering) addScopeSeeds(res *work.Result) {
	if len(res.ScopeSeeds) == 0 {
		return
	}
	after, added := seedbook.Led(g.f.Scope().Seeds(), res.ScopeSeeds)
	g.setScope(g.f.Scope().WithSeeds(after))
	for i := range added {
		s := &added[i]
		g.pending.rows.Seeds = append(g.pending.rows.Seeds, seedbook.Row(s))
		g.log.Info("a seed leads elsewhere, which is in scope now", "seed", s.Of.String(), "target", s.URL.String())
	}
}

// Seeds returns all seeds, and where their redirects led, in the order of their URLs. Any goroutine may call it.
func (v *views) Seeds() ([]Seed, error) {
	if scope := v.scope.Load(); scope != nil {
		return seedbook.List(scope.Seeds()), nil
	}
	return seedbook.Read(v.store) // the crawl has not begun
}
