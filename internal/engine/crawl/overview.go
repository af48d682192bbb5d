package crawl

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/slowdown"
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
func (v *views) Overview() Overview {
	s := v.Status()
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
func (c *commands) Ready() <-chan struct{} { return c.ready }

// Counters returns the counters of the store as of the last commit. Any goroutine may call it, until
// Close.
func (c *commands) Counters() storage.Counters { return c.store.Counters() }

// never is longer than a crawl waits for anything.
const never = 100 * 365 * 24 * time.Hour

// IsIdle reports whether nothing is under way, no fetcher has a lease, and the crawl's own workers will
// have nothing to fetch. Any goroutine may call it; the errors are those of Drain.
func (c *commands) IsIdle(ctx context.Context) (idle bool, err error) {
	err = c.mailbox.Load().call(ctx, func(d *dispatcher) { idle = d.isIdle() })
	return idle, err
}

// isQuiet reports whether nothing is under way and no fetcher has a lease.
func (pm *permits) isQuiet() bool {
	return pm.flights.count()+pm.remote.Len() == 0 && !pm.committing && pm.addition == nil && pm.pending.rows.Empty() &&
		pm.loads.IsEmpty() && pm.sweeps.isEmpty()
}

// isIdle is IsIdle.
func (pm *permits) isIdle() bool {
	if !pm.isQuiet() || pm.remote.isWanted() {
		return false
	}
	return pm.live.Load().Workers == 0 || pm.plan == nil && pm.f.Finished(pm.o.Now(), never)
}

// slowestListed is how many hosts a status names as the slowest.
const slowestListed = 10

// byWeight are the states of crawls that are parts of a larger one: the larger one is in the first that
// a part is in. It is stopping when all its parts are: a shard that goes to another node is only a part.
func byWeight() []string {
	return []string{"stalled", "running", "draining", "opened", "paused", "stopping", "finished"}
}

// Add makes s the status of a crawl that consists of the crawl of s and another one. The parts share no
// host, and no limit. The zero Status has no parts. The directories are those of the first part.
func (s *Status) Add(more *Status) {
	if s.State == "" {
		*s = Status{Started: more.Started, Since: more.Since, At: more.At, State: more.State, Reason: more.Reason,
			End: more.End, DataDir: more.DataDir, OutputDir: more.OutputDir, ProductToken: more.ProductToken}
	} else {
		s.addState(more)
	}
	addCounts(&s.URLs, more.URLs)
	addCounts(&s.Requisites, more.Requisites)
	addCounts(&s.HostStates, more.HostStates)
	addCounts(&s.Held, more.Held)
	addCounts(&s.Walls, more.Walls)
	addCounts(&s.WallMakers, more.WallMakers)
	addCounts(&s.Traps, more.Traps)
	addCounts(&s.Statuses, more.Statuses)
	addCounts(&s.Errors, more.Errors)
	addCounts(&s.Failed, more.Failed)
	s.Hosts, s.InFlight, s.Parked = s.Hosts+more.Hosts, s.InFlight+more.InFlight, s.Parked+more.Parked
	s.Requests, s.Bytes = s.Requests+more.Requests, s.Bytes+more.Bytes
	s.Run.Add(more.Run)
	s.Pace.Add(&more.Pace)
	s.Limits.add(&more.Limits)
	s.OptOuts = max(s.OptOuts, more.OptOuts) // all parts have the same
	s.PagesPerSec, s.BytesPerSec = s.PagesPerSec+more.PagesPerSec, s.BytesPerSec+more.BytesPerSec
	s.Finish = max(s.Finish, more.Finish)
	s.RequisitesFinish = max(s.RequisitesFinish, more.RequisitesFinish)
	s.Slowest = append(slices.Clip(s.Slowest), more.Slowest...)
	slices.SortStableFunc(s.Slowest, func(a, b SlowHost) int { return cmp.Compare(b.Finish, a.Finish) })
	s.Slowest = s.Slowest[:min(len(s.Slowest), slowestListed)]
	s.DeadSeeds = s.DeadSeeds.Add(more.DeadSeeds)
	s.Slowdowns = append(slices.Clip(s.Slowdowns), more.Slowdowns...)
	s.Slowdowns = s.Slowdowns[:min(len(s.Slowdowns), slowdown.Most)]
}

// addState merges the states, and the times.
func (s *Status) addState(more *Status) {
	if more.Started.Before(s.Started) {
		s.Started = more.Started
	}
	if more.At.Before(s.At) {
		s.At = more.At
	}
	a, b := slices.Index(byWeight(), s.State), slices.Index(byWeight(), more.State)
	switch {
	case b < a:
		s.State, s.Reason, s.Since, s.End = more.State, more.Reason, more.Since, more.End
	case a == b && more.Since.Before(s.Since):
		s.Since = more.Since
	}
	if a == b && s.Reason == waitsForURLs {
		s.Reason = more.Reason // all parts have to wait
	}
}

func addCounts[N int | uint64](to *map[string]N, more map[string]N) {
	for name, n := range more {
		if *to == nil {
			*to = make(map[string]N)
		}
		(*to)[name] += n
	}
}

// add adds the limits of another part.
func (l *Limits) add(more *Limits) {
	l.MaxRate, l.Bandwidth = l.MaxRate+more.MaxRate, l.Bandwidth+more.Bandwidth
	l.HostBandwidth = max(l.HostBandwidth, more.HostBandwidth)
	l.RateWait, l.BandwidthWait = l.RateWait+more.RateWait, l.BandwidthWait+more.BandwidthWait
	l.Received, l.ExitWhenDone = l.Received+more.Received, more.ExitWhenDone // all parts have the same
}
