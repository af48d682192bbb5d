package frontier

import (
	"net/netip"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/optout"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// An opt-out is part of the scope, because all that adds or fetches URLs checks that. In addition to
// each URL, it decides about requests that are for no URL of a queue: those for a robots.txt, and all
// requests to an address.

// WithOptOuts returns the scope with other opt-outs. All of them must be in force.
func (s *Scope) WithOptOuts(list *optout.List) *Scope {
	other := *s
	other.optOuts = list
	return &other
}

// OptOuts returns the opt-outs in force.
func (s *Scope) OptOuts() *optout.List { return s.optOuts }

// OptOut returns the opt-out that covers a URL, if there is one.
func (s *Scope) OptOut(u weburl.URL) (optout.Entry, bool) { return s.optOuts.URL(u, time.Time{}) }

func (s *Scope) isOptedOut(u weburl.URL) bool {
	_, is := s.OptOut(u)
	return is
}

// optedOut returns the outcome of a URL that an opt-out covers.
func optedOut() storage.Outcome {
	return storage.Outcome{State: storage.Excluded, Reason: storage.ReasonOptOut}
}

// OptOutOutcome returns the outcome of a URL that opted out before it was fetched.
func OptOutOutcome(now time.Time) storage.Outcome {
	o := optedOut()
	o.At = now
	return o
}

// applyOptOuts puts other opt-outs in force for all active hosts. Others find them in force when they
// become active.
func (f *Frontier) applyOptOuts() {
	now := f.instant(f.clock)
	for h := range f.hosts.all {
		a := h.active
		if a == nil || !a.loaded {
			continue
		}
		f.setOptedOut(a)
		if a.failReason == storage.ReasonOptOut {
			a.failUntil, a.failReason = always, storage.ReasonNone
		}
		_, covers := f.scope.optOuts.Addr(a.pinned, time.Time{})
		if covers || a.optedOut {
			f.leaveLimits(h, now)
		}
		if covers {
			f.setLimit(h, byAddress, nil) // its name is looked up again
		}
		f.schedule(h, now)
	}
}

// leaveLimits gives up what an active host waits for among the shared limits, and what it has reserved:
// no turn there may lead to a request.
func (f *Frontier) leaveLimits(h *host, now instant) {
	if h.state == limited {
		for _, l := range h.active.limits {
			if l != nil {
				l.leave(h)
			}
		}
		h.state = empty
	}
	f.releaseReserved(h, now)
}

// leave removes a host from the waiters.
func (l *limit) leave(h *host) {
	for i := range l.waiters {
		l.waiters[i] = slices.DeleteFunc(l.waiters[i], func(w *host) bool { return w == h })
	}
}

// setOptedOut determines which queues of a host opted out.
func (f *Frontier) setOptedOut(a *active) {
	a.optedOut = false
	for i := range a.queues {
		q := &a.queues[i]
		q.optedOut = f.scope.isOptedOut(q.origin.URL("/robots.txt"))
		a.optedOut = a.optedOut || q.optedOut
	}
}

// failOptedOutJobs fails the jobs of a host for a robots.txt that may not be fetched.
func (f *Frontier) failOptedOutJobs(h *host, now instant) {
	a := h.active
	if f.scope.optOuts.Len() == 0 || len(a.jobs) == 0 {
		return
	}
	covered := func(e pendingJob) bool { return f.scope.isOptedOut(e.url) || f.scope.isOptedOut(e.job.Origin.URL("/")) }
	if !slices.ContainsFunc(a.jobs, covered) {
		return
	}
	jobs := a.jobs
	a.jobs = nil
	for i := range jobs {
		if covered(jobs[i]) {
			f.failJob(h, &jobs[i], robots.FailureBlocked, f.time(now))
		} else {
			a.jobs = append(a.jobs, jobs[i])
		}
	}
}

// leaveOut removes the addresses that opted out from an answer. If none is left, nothing of the host
// may be fetched.
func (r *ResolveReport) leaveOut(list *optout.List) {
	if list.Len() == 0 || len(r.Addresses) == 0 {
		return
	}
	isOut := func(a netip.Addr) bool {
		_, is := list.Addr(a, time.Time{})
		return is
	}
	r.Addresses = slices.DeleteFunc(slices.Clone(r.Addresses), isOut)
	if len(r.Addresses) == 0 {
		r.Final, r.Absent, r.Reason = true, false, storage.ReasonOptOut
	}
}
