package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
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

// turn is the moment at which a due host may make a request.
type turn struct {
	host   *host
	now    time.Time
	at     instant                // now
	polite politeness.Explanation // of now
}

// serve returns a lease for a due host if it can have one now, and schedules the host again.
func (f *Frontier) serve(h *host, now time.Time) (out *outstanding) {
	t := turn{host: h, now: now, at: f.instant(now), polite: h.active.polite.Explain(f.clock)}
	switch {
	case !f.canLease(&t) || !h.active.resolved(t.at) && !h.hasReserved():
		f.releaseReserved(h, t.at)
		f.schedule(h, t.at)
	case f.acquireLimits(h, t.at):
		var admitted *GateRequest
		if f.o.Gate != nil {
			if admitted = f.passGate(&t); admitted == nil {
				return nil
			}
		}
		if out = f.take(&t); admitted != nil {
			f.passed(h, admitted, out)
		}
		f.releaseReserved(h, t.at)
		f.schedule(h, t.at)
	}
	return out
}

// canLease reports whether a host may have a lease as far as the host is concerned.
func (f *Frontier) canLease(t *turn) bool {
	a, polite := t.host.active, max(f.instant(t.polite.Until), t.host.active.notBefore, f.nextBatchAt(t.host))
	wake, work := f.workAt(t.host, polite)
	due := work && wake <= t.at || f.recrawlAllowed(t.at) && f.recrawlAt(t.host, polite) <= t.at
	return due && !f.isFull(a)
}

// take leases the next request to a due host. URLs that may not be fetched get their outcome on the
// way.
func (f *Frontier) take(t *turn) *outstanding {
	if out := f.leaseJob(t, false); out != nil {
		return out
	}
	h, recorded := t.host, len(f.batch.Done)
	out := f.takeURL(t)
	if len(f.batch.Done) > recorded {
		f.update(h, t.now, 0, 0)
	}
	if out == nil {
		return f.leaseJob(t, true)
	}
	h.active.sinceForeignJob = min(h.active.sinceForeignJob+1, jobShare)
	return out
}

func (f *Frontier) takeURL(t *turn) (out *outstanding) {
	h := t.host
	for out == nil {
		q, recrawl := f.pick(h, t.at)
		if q == nil {
			return nil
		}
		decision := f.decide(t, q)
		switch {
		case decision.Kind == robots.DecisionFetch || decision.RefreshDue && h.deferred != q.Origin()+1:
			q.fetchingRobots, h.deferred = true, q.Origin()+1
			job := RobotsJob{
				Origin: q.origin, Owner: h.id, Previous: *q.record, HostAnswers: h.active.otherOriginAnswers(q),
			}
			return f.leaseRobots(t, q.origin.URL("/robots.txt"), &job)
		case f.holdsOrigin(decision, q.rules):
			q.hold(decision, max(f.instant(decision.Until), t.at+1))
		case recrawl:
			out = f.leaseRecrawl(t, q)
		default:
			out = f.leaseNew(t, q)
		}
	}
	return out
}

// pick chooses the queue whose turn it is, and whether to fetch one of its pages to recrawl.
func (f *Frontier) pick(h *host, now instant) (q *originQueue, recrawl bool) {
	if !f.isOverBudget(h) {
		q = h.active.pick(now, f.deferredQueue(h))
	}
	if f.recrawlAllowed(now) && !f.hasCompleted(h) && (q == nil || f.recrawlsFirst()) {
		if r := h.active.pickRecrawl(now); r != nil {
			return r, true
		}
	}
	return q, false
}

// leaseNew leases the first URL of a queue that may be fetched; nil if the turn passes to another
// queue before.
func (f *Frontier) leaseNew(t *turn, q *originQueue) *outstanding {
	h := t.host
	for first, _ := q.First(); ; {
		if priority, ok := q.First(); !ok || priority != first {
			return nil
		}
		head, kind := h.takeNext(q)
		out := f.leasePage(t, q, &head, false)
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
// fetched. If it may not, its outcome is recorded, and there is no lease; nor is there one while a
// put of it is under way.
func (f *Frontier) leasePage(t *turn, q *originQueue, head *storage.Head, recrawl bool) *outstanding {
	h := t.host
	u := q.origin.URL(head.RequestURI)
	if f.holds(h, head, u.String) {
		return nil
	}
	h.active.busy.Add(head.Ordinal)
	verdict, no, known := f.checkURL(q, head, u)
	if !known {
		return f.leaseMatch(h, q, head, recrawl)
	}
	if no.State != storage.Queued {
		no.At = t.now
		f.keepHistory(h, head, &no)
		f.recordOutcome(h, head, no)
		return nil
	}
	f.countPage(h, head)
	out := f.leaseRequest(t, Page, u)
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
	switch inScope(u) {
	case InScope:
	case OptedOut:
		return v, optedOut(), true
	default:
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

// A robots.txt with tens of thousands of wildcard rules takes milliseconds for one verdict, which
// is too long for the owner of the Frontier. A verdict that takes more than matchWork becomes a
// lease of its own: a worker matches the URL, and the URL goes back to the head of its queue with
// the verdict. Until then only that queue is blocked.

const (
	// matchWork bounds the work of a verdict, in the unit of robots.Rules.MatchWithin. 2,000 usual
	// rules take less than a tenth of it.
	matchWork = 16 << 10
	// maxMatching bounds the Match leases in flight, so that large files leave the other workers
	// and cores to other hosts.
	maxMatching = 1
)

// MatchReport is the verdict of a Match lease.
type MatchReport struct {
	End     time.Time
	Verdict robots.Verdict
	Crashed bool // the match panicked: the URL fails
}

// workerVerdict is the verdict that a worker has found for a URL of a queue.
type workerVerdict struct {
	ordinal uint32
	rules   *robots.Rules // that gave the verdict
	verdict robots.Verdict
}

// match matches a URL against the rules of its queue; ok is false if a worker has to do it.
func (f *Frontier) match(q *originQueue, head *storage.Head) (v robots.Verdict, ok bool) {
	if j := q.verdict; j != nil && j.rules == q.rules && j.ordinal == head.Ordinal {
		return j.verdict, true
	}
	defer func() {
		if recover() != nil {
			ok = false // in a worker the same panic costs only this URL
		}
	}()
	return q.rules.MatchWithin(head.RequestURI, f.matchWork)
}

// matchTurn is a queue that waits for a Match lease of its first URL.
type matchTurn struct {
	host    *host
	queue   uint8
	recrawl bool // of its first page to recrawl
}

// leaseMatch leases the match of a URL that was taken from its queue. If too many are in flight, it
// returns nil: the queue waits for its turn, and the caller puts the URL back.
func (f *Frontier) leaseMatch(h *host, q *originQueue, head *storage.Head, recrawl bool) *outstanding {
	q.matching = true
	if f.matching >= maxMatching {
		f.matchLine = append(f.matchLine, matchTurn{h, q.Origin(), recrawl})
		return nil
	}
	f.matching++
	h.active.matching++
	out := f.lease(h, Match)
	l := &out.lease
	l.URL, l.Head, l.Rules, l.Policy = q.origin.URL(head.RequestURI), *head, q.rules, q.record
	return out
}

// nextMatch leases the match that has waited longest.
func (f *Frontier) nextMatch() *outstanding {
	for len(f.matchLine) > 0 && f.matching < maxMatching {
		turn := f.matchLine[0]
		f.matchLine = f.matchLine[1:]
		h := turn.host
		q := &h.active.queues[turn.queue] // its host stays active because the queue is blocked
		head, kind, ok := q.takeNext(turn.recrawl, h.active.newFirst())
		if !ok { // it was dropped, or it failed, meanwhile
			q.matching = false
			f.schedule(h, f.instant(f.clock))
			continue
		}
		h.active.busy.Add(head.Ordinal)
		out := f.leaseMatch(h, q, &head, turn.recrawl)
		out.urlKind = kind
		return out
	}
	return nil
}

// takeNext removes the first page to recrawl of a queue, or its first other URL.
func (q *originQueue) takeNext(recrawl, newFirst bool) (head storage.Head, k queue.Kind, ok bool) {
	if recrawl {
		if _, ok = q.RecrawlDue(); ok {
			head = q.TakeRecrawl()
		}
		return head, queue.Recrawl, ok
	}
	if _, ok = q.First(); ok {
		head, k = q.Take(newFirst)
	}
	return head, k, ok
}

// CompleteMatch ends a Match lease. The error is ErrUnknownLease.
func (f *Frontier) CompleteMatch(id uint64, r MatchReport) error {
	out, err := f.endLease(id, Match)
	if err != nil {
		return err
	}
	f.readClock(r.End)
	f.matching--
	h, head := out.host, &out.lease.Head
	h.active.matching--
	q := &h.active.queues[head.Origin]
	q.matching = false
	outcome := refused(r.Verdict)
	if r.Crashed {
		outcome = storage.Outcome{State: storage.Failed, Reason: storage.ReasonCrash}
	}
	switch {
	case q.rules != out.lease.Rules: // the rules have changed since
		f.putBack(h, q, out)
	case r.Crashed || !r.Verdict.Allowed && f.o.Obey:
		outcome.At = r.End
		f.keepHistory(h, head, &outcome)
		f.recordOutcome(h, head, outcome)
		q.Done(head.Ordinal)
		f.update(h, r.End, 0, 0)
	default:
		q.verdict = &workerVerdict{head.Ordinal, q.rules, r.Verdict}
		f.putBack(h, q, out)
	}
	f.applyDrop(h, r.End)
	f.schedule(h, f.instant(r.End))
	return nil
}

// refused returns the outcome of a URL that a verdict disallows.
func refused(v robots.Verdict) storage.Outcome {
	return storage.Outcome{State: storage.Denied, Reason: storage.ReasonRobots, Line: uint32(v.Line)}
}
