package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Next returns a lease for the request that has been due longest; false if none is due. The owner
// calls it only while a worker is idle: a lease chosen ahead of time would be late for its host and
// early for the next one.
func (f *Frontier) Next(now time.Time) (Lease, bool) { return f.next(now, f.lanes.dueHost) }

// NextInTurn is Next for when requests are scarce and workers are not: the host that has been due
// longest comes first, in whichever lane it is.
func (f *Frontier) NextInTurn(now time.Time) (Lease, bool) { return f.next(now, f.lanes.longestDue) }

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
	s      *scheduler
	host   *host
	now    time.Time
	at     instant                // now
	polite politeness.Explanation // of now
}

// serve returns a lease for a due host if it can have one now, and schedules the host again.
func (s *scheduler) serve(h *host, now time.Time) (out *outstanding) {
	s.paceVisit(h)
	t := turn{s: s, host: h, now: now, at: s.instant(now), polite: h.active.polite.Explain(s.clock)}
	switch {
	case !t.canLease() || !h.active.resolved(t.at) && !h.hasReserved():
		s.releaseReserved(h, t.at)
		s.schedule(h, t.at)
	case s.acquireLimits(h, t.at):
		var admitted *GateRequest
		if s.o.Gate != nil {
			if admitted = t.passGate(); admitted == nil {
				return nil
			}
		}
		if out = t.take(); admitted != nil {
			s.gate.passed(h, admitted, out)
		}
		s.releaseReserved(h, t.at)
		s.schedule(h, t.at)
	}
	return out
}

// canLease reports whether a host may have a lease as far as the host is concerned.
func (t *turn) canLease() bool {
	a, polite := t.host.active, max(t.s.instant(t.polite.Until), t.host.active.notBefore, t.s.nextBatchAt(t.host))
	wake, work := t.s.memory.workAt(t.host, polite)
	due := work && wake <= t.at || t.s.recrawls.allowed(t.at) && t.s.memory.recrawlAt(t.host, polite) <= t.at
	return due && !t.s.leases.isFull(a)
}

// take leases the next request to a due host. URLs that may not be fetched get their outcome on the
// way.
func (t *turn) take() *outstanding {
	if out := t.leaseJob(false); out != nil {
		return out
	}
	h, recorded := t.host, len(t.s.results.batch.Done)
	out := t.takeURL()
	if len(t.s.results.batch.Done) > recorded {
		t.s.results.update(h, t.now, 0, 0)
	}
	if out == nil {
		return t.leaseJob(true)
	}
	h.active.sinceForeignJob = min(h.active.sinceForeignJob+1, jobShare)
	return out
}

func (t *turn) takeURL() (out *outstanding) {
	h := t.host
	for out == nil {
		q, recrawl := t.s.pick(h, t.at)
		if q == nil {
			return nil
		}
		decision := t.s.decide(t, q)
		switch {
		case decision.Kind == robots.DecisionFetch || decision.RefreshDue && h.deferred != q.Origin()+1:
			q.fetchingRobots, h.deferred = true, q.Origin()+1
			job := RobotsJob{
				Origin: q.origin, Owner: h.id, Previous: *q.record, HostAnswers: h.active.otherOriginAnswers(q),
			}
			return t.s.leases.robots(t, q.origin.URL("/robots.txt"), &job)
		case t.s.holdsOrigin(decision, q.rules):
			q.hold(decision, max(t.s.instant(decision.Until), t.at+1))
		case recrawl:
			out = t.leaseRecrawl(q)
		default:
			q.heldUntil = always
			out = t.leaseNew(q)
		}
	}
	return out
}

// pick chooses the queue whose turn it is, and whether to fetch one of its pages to recrawl.
func (s *scheduler) pick(h *host, now instant) (q *originQueue, recrawl bool) {
	if !s.budgets.isOver(h) {
		q = h.active.pick(now, s.deferredQueue(h), s.budgets.leastPriority(h))
	}
	if s.recrawls.allowed(now) && !s.budgets.hasCompleted(h) && (q == nil || s.recrawls.first()) {
		if r := h.active.pickRecrawl(now); r != nil {
			return r, true
		}
	}
	return q, false
}

// leaseNew leases the first URL of a queue that may be fetched; nil if the turn passes to another
// queue before.
func (t *turn) leaseNew(q *originQueue) *outstanding {
	h := t.host
	for first, _ := q.First(); ; {
		if priority, ok := q.First(); !ok || priority != first {
			return nil
		}
		head, kind := h.takeNext(q)
		out := t.leasePage(q, &head, false)
		switch {
		case out == nil && (q.matching || q.heldUntil > t.at):
			h.active.busy.Remove(head.Ordinal)
			q.Return(head, kind)
			return nil
		case out == nil:
			q.Done(head.Ordinal)
			continue
		case out.lease.Kind == Page:
			t.s.recrawls.countNew()
		}
		out.urlKind, h.deferred = kind, 0
		return out
	}
}

// leasePage leases a URL that was taken from its queue, or the match that decides whether it may be
// fetched. If it may not, its outcome is recorded, and there is no lease; nor is there one while a
// put of it is under way, or while the queue waits for other pages of its seed.
func (t *turn) leasePage(q *originQueue, head *storage.Head, recrawl bool) *outstanding {
	h := t.host
	u := q.origin.URL(head.RequestURI)
	if t.s.puts.holds(h, head, u.String) {
		return nil
	}
	h.active.busy.Add(head.Ordinal)
	verdict, no, known := t.s.matches.checkURL(q, head, u)
	if !known {
		return t.s.matches.lease(h, q, head, recrawl)
	}
	pages, most := t.s.pages.find(u, head)
	switch {
	case no.State != storage.Queued || pages == nil || pages.fetched+pages.inFlight < most:
	case pages.fetched >= most:
		no = storage.Outcome{State: storage.Excluded, Reason: storage.ReasonSeedPages}
	default: // the outcomes of those in flight decide
		q.heldUntil, q.matchUntil, q.holdReason = t.at+seedPagesWait, always, 0
		return nil
	}
	if no.State == storage.Queued && !t.s.budgets.countSitemap(h, head) {
		no = storage.Outcome{State: storage.Excluded, Reason: storage.ReasonSitemaps}
	}
	if no.State != storage.Queued {
		no.At = t.now
		t.s.recrawls.keepHistory(h, head, &no)
		t.s.results.recordOutcome(h, head, no)
		return nil
	}
	t.s.budgets.countPage(h, head)
	out := t.s.leases.request(t, Page, u)
	out.pages = t.s.pages.begin(pages, head)
	l := &out.lease
	l.Head, l.Verdict, l.Rules, l.Policy = *head, verdict, q.rules, q.record
	q.firstInFlight = head.Priority == FirstPriority
	return out
}

// checkURL checks a URL against the scope and the robots rules. no is the outcome of a URL that may
// not be fetched; its state is Queued if it may. known is false if the match takes too long.
func (m *matches) checkURL(
	q *originQueue, head *storage.Head, u weburl.URL,
) (v robots.Verdict, no storage.Outcome, known bool) {
	switch m.scope.CheckHead(u, &head.Entry) {
	case InScope:
	case OptedOut:
		return v, optedOut(), true
	default:
		return v, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonScope}, true
	}
	seed := m.scope.Seeds().Of(u, RefOf(&head.Entry))
	goesOn := head.Sitemap || head.IsRequisite() || RefOf(&head.Entry) == seeds.Checked
	if head.Depth > seed.Depth(m.o.MaxDepth) && !goesOn {
		return v, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonDepth}, true
	}
	if v, known = m.match(q, head); known && !v.Allowed && m.o.Obey {
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

// matches checks URLs against the scope and the robots rules.
type matches struct {
	*base
	leases   *leases
	work     int // the constant matchWork, except in tests
	inFlight int // Match leases
	line     []matchTurn
}

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
func (m *matches) match(q *originQueue, head *storage.Head) (v robots.Verdict, ok bool) {
	if j := q.verdict; j != nil && j.rules == q.rules && j.ordinal == head.Ordinal {
		return j.verdict, true
	}
	defer func() {
		if recover() != nil {
			ok = false // in a worker the same panic costs only this URL
		}
	}()
	return q.rules.MatchWithin(head.RequestURI, m.work)
}

// matchTurn is a queue that waits for a Match lease of its first URL.
type matchTurn struct {
	host    *host
	queue   uint8
	recrawl bool // of its first page to recrawl
}

// lease leases the match of a URL that was taken from its queue. If too many are in flight, it
// returns nil: the queue waits for its turn, and the caller puts the URL back.
func (m *matches) lease(h *host, q *originQueue, head *storage.Head, recrawl bool) *outstanding {
	q.matching = true
	if m.inFlight >= maxMatching {
		m.line = append(m.line, matchTurn{h, q.Origin(), recrawl})
		return nil
	}
	m.inFlight++
	h.active.matching++
	out := m.leases.add(h, Match)
	l := &out.lease
	l.URL, l.Head, l.Rules, l.Policy = q.origin.URL(head.RequestURI), *head, q.rules, q.record
	return out
}

// nextMatch leases the match that has waited longest.
func (s *scheduler) nextMatch() *outstanding {
	for len(s.matches.line) > 0 && s.matches.inFlight < maxMatching {
		turn := s.matches.line[0]
		s.matches.line = s.matches.line[1:]
		h := turn.host
		q := &h.active.queues[turn.queue] // its host stays active because the queue is blocked
		head, kind, ok := q.takeNext(turn.recrawl, h.active.newFirst())
		if !ok { // it was dropped, or it failed, meanwhile
			q.matching = false
			s.schedule(h, s.instant(s.clock))
			continue
		}
		h.active.busy.Add(head.Ordinal)
		out := s.matches.lease(h, q, &head, turn.recrawl)
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
	out, err := f.leases.end(id, Match)
	if err != nil {
		return err
	}
	f.readClock(r.End)
	f.matches.inFlight--
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
		f.recrawls.putBack(h, q, out)
	case r.Crashed || !r.Verdict.Allowed && f.o.Obey:
		outcome.At = r.End
		f.recrawls.keepHistory(h, head, &outcome)
		f.results.recordOutcome(h, head, outcome)
		q.Done(head.Ordinal)
		f.results.update(h, r.End, 0, 0)
	default:
		q.verdict = &workerVerdict{head.Ordinal, q.rules, r.Verdict}
		f.recrawls.putBack(h, q, out)
	}
	f.commands.applyDrop(h, r.End)
	f.schedule(h, f.instant(r.End))
	return nil
}

// refused returns the outcome of a URL that a verdict disallows.
func refused(v robots.Verdict) storage.Outcome {
	return storage.Outcome{State: storage.Denied, Reason: storage.ReasonRobots, Line: uint32(v.Line)}
}
