package frontier

import (
	"time"

	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Some robots.txt files take milliseconds for a verdict: tens of thousands of rules with stars. The owner of the Frontier cannot wait
// for that. A verdict that takes more than matchWork is a lease of its own: a worker puts the URL to the rules, and with the verdict
// the URL goes back to the head of its queue. Until then the queue stands still, and that host alone.

const (
	// matchWork is how much of the rules of a robots.txt may be looked at for a decision; see robots.Rules.MatchWithin. Of
	// 2,000 rules as they are it is a tenth.
	matchWork = 16 << 10
	// maxMatching is how many URLs are with workers for a verdict at a time, so that files that take long cannot keep all
	// workers, or all cores, from other hosts.
	maxMatching = 1
)

// MatchReport is the verdict of a Match lease.
type MatchReport struct {
	End     time.Time
	Verdict robots.Verdict
	Crashed bool // the rules could not be asked: the URL is given up
}

// judged is a URL of a queue whose verdict a worker has brought.
type judged struct {
	ordinal uint32
	rules   *robots.Rules // that gave it; nil: there is none
	verdict robots.Verdict
}

// match puts a URL to the rules of its queue; false where a worker has to.
func (f *Frontier) match(q *queue, head *storage.Head) (v robots.Verdict, ok bool) {
	if j := &q.judged; j.rules != nil && j.rules == q.rules && j.ordinal == head.Ordinal {
		return j.verdict, true
	}
	defer func() {
		if recover() != nil {
			ok = false // it will panic again where that costs the URL alone
		}
	}()
	return q.rules.MatchWithin(head.RequestURI, f.matchWork)
}

// matchTurn is a queue in line for a Match lease about its first URL.
type matchTurn struct {
	host    *host
	queue   uint8
	renewal bool // about its first renewal
}

// leaseMatch leases the question about a URL that was taken off its queue. Where too many are out the queue waits for its turn; then
// there is no lease, and the URL goes back.
func (f *Frontier) leaseMatch(h *host, q *queue, head *storage.Head, renewal bool) *outstanding {
	q.matching = true
	if f.matching >= maxMatching {
		f.matchLine = append(f.matchLine, matchTurn{h, q.index, renewal})
		return nil
	}
	f.matching++
	h.active.matching++
	out := f.lease(h, Match)
	l := &out.lease
	l.URL, l.Head, l.Rules, l.Policy = q.origin.URL(head.RequestURI), *head, q.rules, q.record
	return out
}

// nextMatch gives out the Match lease that waits longest.
func (f *Frontier) nextMatch() *outstanding {
	for len(f.matchLine) > 0 && f.matching < maxMatching {
		turn := f.matchLine[0]
		f.matchLine = f.matchLine[1:]
		h := turn.host
		q := &h.active.queues[turn.queue] // it stays active while a queue stands
		head, due, ok := q.takeFor(turn.renewal)
		if !ok { // it was dropped, or given up, meanwhile
			q.matching = false
			f.place(h, f.instant(f.clock))
			continue
		}
		h.active.busy.add(head.Ordinal)
		if !due && !turn.renewal {
			q.inFlight.add(head.Ordinal)
		}
		out := f.leaseMatch(h, q, &head, turn.renewal)
		out.due, out.renewal = due, turn.renewal
		return out
	}
	return nil
}

// takeFor removes the first URL of a queue, or its first renewal.
func (q *queue) takeFor(renewal bool) (head storage.Head, due, ok bool) {
	if renewal {
		if ok = len(q.renewals) > 0; ok {
			head, q.renewals = q.renewals[0], q.renewals[1:]
		}
		return head, false, ok
	}
	if _, _, ok = q.first(); ok {
		head, due = q.take()
	}
	return head, due, ok
}

// CompleteMatch ends a Match lease.
func (f *Frontier) CompleteMatch(id uint64, r MatchReport) error {
	out, err := f.settleLease(id, Match)
	if err != nil {
		return err
	}
	f.read(r.End)
	f.matching--
	h, head := out.host, &out.lease.Head
	h.active.matching--
	q := &h.active.queues[head.Origin]
	q.matching = false
	q.inFlight.remove(head.Ordinal)
	outcome := refused(r.Verdict)
	if r.Crashed {
		outcome = storage.Outcome{State: storage.Failed, Reason: storage.ReasonCrash}
	}
	switch {
	case q.rules != out.lease.Rules: // others are in force by now
		f.putBack(h, q, out)
	case r.Crashed || !r.Verdict.Allowed && f.o.Obey:
		outcome.At = r.End
		f.unplan(h, head, &outcome)
		f.settle(h, head, outcome)
		f.update(h, r.End, 0, 0)
	default:
		q.judged = judged{head.Ordinal, q.rules, r.Verdict}
		f.putBack(h, q, out)
	}
	f.applyDrop(h, r.End)
	f.place(h, f.instant(r.End))
	return nil
}

// refused is the outcome of a URL that a verdict does not allow.
func refused(v robots.Verdict) storage.Outcome {
	return storage.Outcome{State: storage.Denied, Reason: storage.ReasonRobots, Line: uint32(v.Line)}
}

// stands reports whether nothing of a queue can be leased for now: its robots.txt is being fetched, or a URL put to its rules.
func (q *queue) stands() bool { return q.asked || q.matching }
