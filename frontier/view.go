package frontier

import (
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Finished reports whether nothing is left that can be asked soon: no lease is
// out, and every host with work either cannot be asked before within has
// passed, or could not be asked for at least that long.
func (f *Frontier) Finished(now time.Time, within time.Duration) bool {
	if len(f.leases)+f.lookups.queued()+len(f.wants)+len(f.jobsByName) > 0 {
		return false
	}
	// The hosts that are due first mostly say it all.
	for l := range lanes {
		for _, h := range [...]*host{f.ready[l].top(), f.dormant[l].top()} {
			if h != nil && !f.postponed(h, f.instant(now), instant(within)) {
				return false
			}
		}
	}
	for h := range f.hosts.all {
		if !f.postponed(h, f.instant(now), instant(within)) {
			return false
		}
	}
	return true
}

func (f *Frontier) postponed(h *host, now, within instant) bool {
	switch h.state {
	case empty, waitingForRobots, recrawlOnly, waitingToRecrawl:
		return true
	case overBudget:
		return f.isOverBudget(h)
	case dormant, woken, waiting:
		return h.readyAt > now+within || h.failingSince != never && now-h.failingSince >= within
	}
	return false
}

// held is why robots.txt holds all that a host has to do; ReasonNone: it does not.
func (f *Frontier) robotsHold(h *host) robots.Reason {
	switch {
	case h.active != nil && len(h.active.jobs) == 0:
		return h.active.robotsHold()
	case h.active == nil && len(f.dormantJobs[h.id]) == 0:
		return h.robotsReason
	}
	return robots.ReasonNone
}

// Waiting is where a host stands, and how long it will be there.
type Waiting struct {
	Host    storage.HostID
	Name    string        // empty while the host is dormant
	Left    int           // URLs that wait
	Until   time.Time     // when it is asked next, if all stays as it is; zero: an event decides
	Delay   time.Duration // between requests
	Finish  time.Duration // until the last of them is fetched, at the delay in force; 0: nothing waits, or nobody knows because the operator has paused it
	Reason  politeness.Reason
	Robots  robots.Reason // why robots.txt holds all of it; ReasonNone: it does not
	Parked  bool          // it asked to be left alone for more than politeness.ParkedAfter
	Paused  bool          // by the operator
	Trouble bool          // it cannot be asked after errors that are not over
	Budget  bool          // its budget of pages is spent, or its domain's
	Place   string
}

// Waiting calls each for every host that has work.
func (f *Frontier) Waiting(now time.Time, each func(Waiting)) {
	f.Walk(0, len(f.hosts.hosts), now, func(w *Waiting) {
		if w.Left > 0 || w.Place != empty.String() && w.Place != recrawlOnly.String() && w.Place != waitingToRecrawl.String() {
			each(*w)
		}
	})
}

// Walk calls each for the hosts that the frontier knows of n successive ids, with work or without, and returns the id to go on from; 0: that
// was the last. So all hosts can be looked at in short steps. What each is given it may use until it returns.
func (f *Frontier) Walk(from storage.HostID, n int, now time.Time, each func(*Waiting)) (next storage.HostID) {
	t := f.instant(now)
	end := min(int(from)+n, len(f.hosts.hosts))
	for _, h := range f.hosts.hosts[min(int(from), end):end] {
		if h != nil {
			w := f.view(h, t)
			each(&w)
		}
	}
	if end == len(f.hosts.hosts) {
		return 0
	}
	return storage.HostID(end)
}

// waits is where a host stands.
func (f *Frontier) view(h *host, now instant) Waiting {
	left := int(h.queued) + int(h.due)
	w := Waiting{
		Host: h.id, Left: left, Place: h.state.String(), Delay: time.Duration(float64(h.delay) * float64(time.Second)), Reason: h.waitReason, Parked: h.parked,
		Paused: h.waitReason == politeness.ReasonPause && h.workAt > f.instant(f.clock), Trouble: h.failingSince != never, Robots: f.robotsHold(h), Budget: f.isOverBudget(h),
	}
	start := now
	if h.state == waiting || h.state == dormant || h.state == woken {
		start = max(f.nextFetch(h), now)
		w.Until = f.timeOrZero(start)
	}
	if a := h.active; a != nil {
		w.Name = a.name
		if a.polite != nil {
			e := a.polite.Explain(f.clock)
			w.Reason, w.Parked, w.Paused = e.Reason, e.Parked, e.Reason == politeness.ReasonPause
		}
	}
	if left > 0 && !w.Paused && start <= never/2 {
		all := float64(start-now) + float64(max(f.withinBudget(h, left)-1, 0))*float64(w.Delay)
		w.Finish = time.Duration(min(all, float64(never/2))) // a million URLs at three hours each is more than fits
	}
	return w
}

// asked is when a host that waits is asked next, if all stays as it is.
func (f *Frontier) nextFetch(h *host) instant {
	if h.active == nil {
		return h.readyAt + lead
	}
	return max(h.readyAt, f.instant(h.active.polite.Ready(f.clock)))
}

// Places counts the hosts by their states, by the names that the API has for them.
func (f *Frontier) Places() map[string]int {
	var n [states]int
	for h := range f.hosts.all {
		n[h.state]++
	}
	places := make(map[string]int, len(n))
	for s, count := range n {
		if count > 0 {
			places[state(s).String()] = count
		}
	}
	return places
}
