package crawl

import "github.com/amble-crawler/amble/storage"

// Ready is closed when Run has come so far that all methods work.
func (c *commands) Ready() <-chan struct{} { return c.ready }

// Counters returns the counters of the store as of the last commit. Any goroutine may call it, until
// Close.
func (c *commands) Counters() storage.Counters { return c.store.Counters() }

// isQuiet reports whether nothing is under way and no fetcher has a lease.
func (pm *permits) isQuiet() bool {
	return pm.flights.count()+pm.remote.Len() == 0 && !pm.committing && pm.addition == nil && pm.pending.rows.Empty() &&
		pm.loads.IsEmpty() && pm.sweeps.isEmpty()
}
