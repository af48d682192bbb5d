package crawl

import (
	"context"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// Ready is closed when Run has come so far that all methods work.
func (e *Engine) Ready() <-chan struct{} { return e.ready }

// Counters returns the counters of the store as of the last commit. Any goroutine may call it, until
// Close.
func (e *Engine) Counters() storage.Counters { return e.store.Counters() }

// never is longer than a crawl waits for anything.
const never = 100 * 365 * 24 * time.Hour

// IsIdle reports whether nothing is under way, no fetcher has a lease, and the crawl's own workers will
// have nothing to fetch. Any goroutine may call it; the errors are those of Drain.
func (e *Engine) IsIdle(ctx context.Context) (idle bool, err error) {
	err = e.mailbox.Load().call(ctx, func(d *dispatcher) { idle = d.isIdle() })
	return idle, err
}

// isQuiet reports whether nothing is under way and no fetcher has a lease.
func (d *dispatcher) isQuiet() bool {
	return d.flights.count()+len(d.remote.out) == 0 && !d.committing && d.addition == nil && d.pending.rows.Empty() &&
		d.loads.isEmpty() && d.sweeps.isEmpty()
}

// isIdle is IsIdle.
func (d *dispatcher) isIdle() bool {
	if !d.isQuiet() || len(d.remote.waiters)+len(d.remote.parked)+d.remote.working > 0 {
		return false
	}
	return d.live.Load().Workers == 0 || d.plan == nil && d.f.Finished(d.o.Now(), never)
}
