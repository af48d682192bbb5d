package frontier

import (
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Next gives out the request that is due longest; false if none is due. It is to
// be called only while a worker is idle: a lease chosen ahead of time would be
// late for its host and early for the next.
func (f *Frontier) Next(now time.Time) (Lease, bool) {
	f.readClock(now)
	if out := f.next(now); out != nil {
		return out.lease, true
	}
	return Lease{}, false
}

func (f *Frontier) next(now time.Time) *outstanding {
	t := f.instant(now)
	f.activateDue(t)
	if out := f.nextMatch(); out != nil {
		return out
	}
	for h := f.dueHost(t); h != nil; h = f.dueHost(t) {
		if out := f.serve(h, now); out != nil {
			return out
		}
	}
	f.activateDue(t) // where others made room
	return nil
}

// serve gives a lease to a host whose turn it is, if it can have one now, and puts it where it belongs.
func (f *Frontier) serve(h *host, now time.Time) (out *outstanding) {
	t := f.instant(now)
	switch {
	case !f.canLease(h, t) || !h.active.resolved(t) && !h.hasReserved():
		f.releaseReserved(h, t)
		f.schedule(h, t)
	case f.acquireLimits(h, t):
		out = f.take(h, now)
		f.releaseReserved(h, t)
		f.schedule(h, t)
	}
	return out
}

// take finds the next thing to ask of a host whose turn it is. URLs that may not
// be asked are settled on the way. Each round settles, holds or asks, so it ends.
func (f *Frontier) take(h *host, now time.Time) *outstanding {
	if out := f.leaseJob(h, false, now); out != nil {
		return out
	}
	settled := len(f.out.Done)
	out := f.takeURL(h, now)
	if len(f.out.Done) > settled {
		f.update(h, now, 0, 0)
	}
	if out == nil {
		return f.leaseJob(h, true, now)
	}
	h.active.sinceForeignJob = min(h.active.sinceForeignJob+1, jobShare)
	return out
}

func (f *Frontier) takeURL(h *host, now time.Time) *outstanding {
	t := f.instant(now)
	for {
		q, recrawl := f.pick(h, t)
		if q == nil {
			return nil
		}
		decision := f.o.Robots.Standing(q.record, h.active.polite.Delay(now), now)
		switch {
		case decision.Kind == robots.StandingFetch || decision.RefreshDue && h.deferred != q.Origin()+1:
			q.fetchingRobots, h.deferred = true, q.Origin()+1
			job := RobotsJob{Origin: q.origin, Owner: h.id, Previous: q.record, HostAnswers: h.active.otherOriginAnswers(q)}
			return f.leaseRobots(h, q.origin.URL("/robots.txt"), &job, now)
		case f.holdsOrigin(decision, q.rules):
			q.hold(decision, max(f.instant(decision.Until), t+1))
			continue
		}
		take := f.leaseNew
		if recrawl {
			take = f.leaseRecrawl
		}
		if out := take(h, q, now); out != nil {
			return out
		}
	}
}

// pick chooses the queue whose turn it is, and whether it is to make a renewal.
func (f *Frontier) pick(h *host, now instant) (q *originQueue, recrawl bool) {
	if !f.isOverBudget(h) {
		q = h.active.pick(now, f.deferredQueue(h))
	}
	if f.recrawlAllowed(now) && (q == nil || f.recrawlsFirst()) {
		if r := h.active.pickRecrawl(now); r != nil {
			return r, true
		}
	}
	return q, false
}

// patient is the queue whose robots.txt could not be read the last time it had a turn, and which has no other rules to go by: it lets others go
// first, else the host would be asked for nothing but that file. nil: there is none.
func (f *Frontier) deferredQueue(h *host) *originQueue {
	if h.deferred == 0 || int(h.deferred) > len(h.active.queues) {
		return nil
	}
	q := &h.active.queues[h.deferred-1]
	if q.record.Failures == 0 || f.o.Robots.Standing(q.record, h.active.polite.Delay(f.clock), f.clock).Kind == robots.StandingAsk {
		return nil
	}
	return q
}

// hold keeps a whole queue until an instant.
func (q *originQueue) hold(s robots.Standing, until instant) {
	q.heldUntil, q.holdReason = min(until, never-1), s.Reason
	if s.Kind == robots.StandingAsk {
		q.holdReason = robots.ReasonRule // Disallow: /
	}
}

// takePage leases the first URL of a queue that may be asked; nil if the turn
// is another queue's before there is one.
func (f *Frontier) leaseNew(h *host, q *originQueue, now time.Time) *outstanding {
	for turn, _, _ := q.First(); ; {
		if priority, _, ok := q.First(); !ok || priority != turn {
			return nil
		}
		head, kind := q.Take()
		out := f.leasePage(h, q, &head, false, now)
		switch {
		case out == nil && q.matching:
			h.active.busy.Remove(head.Ordinal)
			q.Return(head, kind)
			return nil
		case out == nil:
			q.Done(head.Ordinal)
			continue
		case out.lease.Kind == Page:
			f.countNew()
		}
		out.urlKind, h.deferred = kind, 0
		return out
	}
}

// leasePage leases a URL that was taken off its queue, if it may be asked, or the question whether
// it may. One that may not is settled; then there is no lease.
func (f *Frontier) leasePage(h *host, q *originQueue, head *storage.Head, recrawl bool, now time.Time) *outstanding {
	h.active.busy.Add(head.Ordinal)
	u := q.origin.URL(head.RequestURI)
	verdict, no, known := f.checkURL(q, head, u)
	if !known {
		return f.leaseMatch(h, q, head, recrawl)
	}
	if no.State != storage.Queued {
		no.At = now
		f.keepPlan(h, head, &no)
		f.recordOutcome(h, head, no)
		return nil
	}
	f.countPage(h, head)
	out := f.leaseRequest(h, Page, u, now)
	l := &out.lease
	l.Head, l.Verdict, l.Rules, l.Policy = *head, verdict, q.rules, q.record
	return out
}

// judge asks the scope and the robots rules about a URL. The outcome is that of
// a URL which may not be asked; its state is Queued when it may. known is false
// where the rules take too long.
func (f *Frontier) checkURL(
	q *originQueue, head *storage.Head, u weburl.URL,
) (v robots.Verdict, no storage.Outcome, known bool) {
	inScope := f.scope.Check
	if head.Sitemap {
		inScope = f.scope.CheckSitemap
	}
	if inScope(u) != InScope {
		return v, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonScope}, true
	}
	if f.o.MaxDepth > 0 && head.Depth > f.o.MaxDepth && !head.Sitemap {
		return v, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonDepth}, true
	}
	if v, known = f.match(q, head); known && !v.Allowed && f.o.Obey {
		no = refused(v)
	}
	return v, no, known
}

// leaseRequest leases a request to a host: it counts against the host's and
// the address's limits until it is completed.
func (f *Frontier) leaseRequest(h *host, kind Kind, u weburl.URL, now time.Time) *outstanding {
	a := h.active
	a.inFlight++
	a.served++
	for _, limit := range a.limits {
		if limit != nil {
			limit.polite.Begin()
		}
	}
	out := f.lease(h, kind)
	f.beginInLane(out, f.instant(now))
	l, why := &out.lease, a.polite.Explain(now)
	l.URL, l.Address = u, a.pinned
	l.At, l.Delay, l.DelayReason, l.DelaySource = now, why.Delay, why.DelayReason, why.DelaySource
	l.Reason, l.Source, l.Learned = why.Reason, why.Source, a.learned()
	l.LastEnd, l.Ready = a.polite.LastEnd(), why.Until
	return out
}

// leaseRobots leases a fetch of robots.txt, or of what it redirects to.
func (f *Frontier) leaseRobots(h *host, u weburl.URL, job *RobotsJob, now time.Time) *outstanding {
	out := f.leaseRequest(h, Robots, u, now)
	out.lease.Robots = *job
	return out
}

// learned reports whether a robots.txt of the host was ever read.
func (a *active) learned() bool {
	for i := range a.queues {
		if a.queues[i].known {
			return true
		}
	}
	return false
}

func (f *Frontier) lease(h *host, kind Kind) *outstanding {
	f.lastLease++
	if len(f.spare) == 0 {
		f.spare = append(f.spare, new(outstanding))
	}
	last := len(f.spare) - 1
	out := f.spare[last]
	f.spare = f.spare[:last]
	*out = outstanding{host: h, limits: h.active.limits}
	out.lease.ID, out.lease.Kind, out.lease.Host, out.lease.HostName = f.lastLease, kind, h.id, h.active.name
	f.leases[f.lastLease] = out
	return out
}
