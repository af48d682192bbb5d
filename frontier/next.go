package frontier

import (
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Next returns a lease for the request that has been due longest; false if none is due. The owner
// calls it only while a worker is idle: a lease chosen ahead of time would be late for its host and
// early for the next one.
func (f *Frontier) Next(now time.Time) (Lease, bool) { return f.next(now, f.dueHost) }

// NextInTurn is Next for when requests are scarce and workers are not: the host that has been due
// longest comes first, in whichever lane it is.
func (f *Frontier) NextInTurn(now time.Time) (Lease, bool) { return f.next(now, f.longestDue) }

func (f *Frontier) next(now time.Time, due func(instant) *host) (Lease, bool) {
	f.readClock(now)
	if out := f.nextOf(now, due); out != nil {
		return out.lease, true
	}
	return Lease{}, false
}

func (f *Frontier) nextOf(now time.Time, due func(instant) *host) *outstanding {
	t := f.instant(now)
	f.activateDue(t)
	if out := f.nextMatch(); out != nil {
		return out
	}
	for h := due(t); h != nil; h = due(t) {
		if out := f.serve(h, now); out != nil {
			return out
		}
	}
	f.activateDue(t) // other hosts may have made room
	return nil
}

// serve returns a lease for a due host if it can have one now, and schedules the host again.
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

// take leases the next request to a due host. URLs that may not be fetched get their outcome on the
// way.
func (f *Frontier) take(h *host, now time.Time) *outstanding {
	if out := f.leaseJob(h, false, now); out != nil {
		return out
	}
	recorded := len(f.batch.Done)
	out := f.takeURL(h, now)
	if len(f.batch.Done) > recorded {
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
		decision := f.o.Robots.Decide(q.record, h.active.polite.Delay(now), now)
		switch {
		case decision.Kind == robots.DecisionFetch || decision.RefreshDue && h.deferred != q.Origin()+1:
			q.fetchingRobots, h.deferred = true, q.Origin()+1
			job := RobotsJob{
				Origin: q.origin, Owner: h.id, Previous: q.record, HostAnswers: h.active.otherOriginAnswers(q),
			}
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

// pick chooses the queue whose turn it is, and whether to fetch one of its pages to recrawl.
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

// leaseNew leases the first URL of a queue that may be fetched; nil if the turn passes to another
// queue before.
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

// leasePage leases a URL that was taken from its queue, or the match that decides whether it may be
// fetched. If it may not, its outcome is recorded, and there is no lease.
func (f *Frontier) leasePage(h *host, q *originQueue, head *storage.Head, recrawl bool, now time.Time) *outstanding {
	h.active.busy.Add(head.Ordinal)
	u := q.origin.URL(head.RequestURI)
	verdict, no, known := f.checkURL(q, head, u)
	if !known {
		return f.leaseMatch(h, q, head, recrawl)
	}
	if no.State != storage.Queued {
		no.At = now
		f.keepHistory(h, head, &no)
		f.recordOutcome(h, head, no)
		return nil
	}
	f.countPage(h, head)
	out := f.leaseRequest(h, Page, u, now)
	l := &out.lease
	l.Head, l.Verdict, l.Rules, l.Policy = *head, verdict, q.rules, q.record
	return out
}

// checkURL checks a URL against the scope and the robots rules. no is the outcome of a URL that may
// not be fetched; its state is Queued if it may. known is false if the match takes too long.
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
