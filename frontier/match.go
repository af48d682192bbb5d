package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

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
		head, kind, ok := q.takeNext(turn.recrawl)
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
func (q *originQueue) takeNext(recrawl bool) (head storage.Head, k queue.Kind, ok bool) {
	if recrawl {
		if _, ok = q.RecrawlDue(); ok {
			head = q.TakeRecrawl()
		}
		return head, queue.Recrawl, ok
	}
	if _, _, ok = q.First(); ok {
		head, k = q.Take()
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
