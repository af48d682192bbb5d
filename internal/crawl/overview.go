package crawl

import (
	"context"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// Overview is what is said of one of several crawls of a process.
type Overview struct {
	ID    string `json:"id"`
	Open  bool   `json:"open"`            // it is in memory; of others the rest is not known
	State string `json:"state,omitempty"` // as in the status
	Tally
}

// Tally are the numbers of one or several crawls.
type Tally struct {
	URLs     map[string]int `json:"urls,omitempty"` // by state, over all runs
	Hosts    int            `json:"hosts"`          // known; a host counts once in each crawl
	InFlight int            `json:"in_flight"`
	Requests uint64         `json:"requests"` // over all runs
	Bytes    uint64         `json:"bytes"`    // over all runs
}

// Overview returns the overview of an open crawl, without its id. Any goroutine may call it.
func (e *Engine) Overview() Overview {
	s := e.Status()
	return Overview{Open: true, State: s.State, Tally: Tally{
		URLs: s.URLs, Hosts: s.Hosts, InFlight: s.InFlight, Requests: s.Requests, Bytes: s.Bytes,
	}}
}

// Add adds the numbers of another crawl.
func (t *Tally) Add(more *Tally) {
	for state, n := range more.URLs {
		if t.URLs == nil {
			t.URLs = make(map[string]int)
		}
		t.URLs[state] += n
	}
	t.Hosts += more.Hosts
	t.InFlight += more.InFlight
	t.Requests += more.Requests
	t.Bytes += more.Bytes
}

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
