package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// originQueue is the queue of one origin of an active host, with its robots rules.
type originQueue struct {
	queue.Queue
	origin     weburl.Origin
	heldUntil  instant // nothing of it is fetched before; always: it is not held
	matchUntil instant // the robots decision is to match until then, at least
	rules      *robots.Rules
	record     *robots.Record // read-only
	verdict    *workerVerdict // nil: there is none

	known          bool // a robots.txt was read, by this process or an earlier one
	optedOut       bool // nothing of it is fetched
	fetchingRobots bool // its robots.txt is being fetched
	matching       bool // a worker matches its first URL, or the queue waits for that
	firstInFlight  bool // a URL of FirstPriority is in flight
	awaitsRead     bool // what was found with its robots.txt is on disk and not in memory
	awaits         int  // host updates that are to be on disk until then
	holdReason     robots.Reason
}

// decide is the robots decision about a queue. Until a record expires or has to be refreshed the
// decision is to match, whatever the delay in force is, so the record need not be read again.
func (b *base) decide(t *turn, q *originQueue) robots.Decision {
	if t.at < q.matchUntil || b.o.NoRobots {
		return robots.Decision{Kind: robots.DecisionMatch}
	}
	d := b.o.Robots.Decide(*q.record, t.polite.Delay, t.now)
	if d.Kind == robots.DecisionMatch && q.record.Class != robots.ClassUnreachable {
		// The record may have wall times only, which count from now: the clock may have been set
		// since the epoch.
		left := min(q.record.Expires.Sub(t.now), q.record.Refresh.Sub(t.now), time.Duration(never))
		q.matchUntil = max(t.at+instant(left), always)
	}
	return d
}

// setRules puts a robots.txt in force.
func (q *originQueue) setRules(record robots.Record, rules *robots.Rules) {
	q.record, q.rules, q.matchUntil, q.verdict = &record, rules, always, nil
}

// FirstPriority is that of URLs that decide about all others of their origin: while one is in flight, no other is
// fetched.
const FirstPriority int8 = 127

// isBlocked reports whether the queue waits for its robots.txt, for what was found with that, or for a match.
func (q *originQueue) isBlocked() bool {
	return q.fetchingRobots || q.matching || q.firstInFlight || q.awaits > 0 || q.awaitsRead
}

// hold lets the whole queue wait until an instant, at which another decision is made.
func (q *originQueue) hold(s robots.Decision, until instant) {
	q.heldUntil, q.matchUntil, q.holdReason = min(until, never-1), always, s.Reason
	if s.Kind == robots.DecisionMatch {
		q.holdReason = robots.ReasonRule // Disallow: /
	}
}

// robotsHold is why robots.txt holds all the work of the host; ReasonNone if it does not.
func (a *active) robotsHold() robots.Reason {
	why := robots.ReasonNone
	for i := range a.queues {
		q := &a.queues[i]
		switch {
		case q.Len(queue.New)+q.Len(queue.Due)+q.Len(queue.Recrawl) == 0:
		case q.heldUntil == always || q.isBlocked():
			return robots.ReasonNone
		default:
			why = q.holdReason
		}
	}
	return why
}

func (h *host) queueOf(o weburl.Origin) *originQueue {
	if h == nil || h.active == nil {
		return nil
	}
	if i := h.active.originIndex(o); i >= 0 {
		return &h.active.queues[i]
	}
	return nil
}

// originIndex is the index of an origin among those of the host; -1 if it has none.
func (a *active) originIndex(o weburl.Origin) int {
	for i := range a.queues {
		if a.queues[i].origin == o {
			return i
		}
	}
	return -1
}

// The order of a host's URLs, over the queues of all its origins, is that of package queue. URLs of
// a negative priority wait until nothing else can be fetched, on disk or in memory. Among hosts the
// one that has been due longest comes first; at the same instant the one whose next URL has the
// higher priority.

// offers reports whether a queue has a URL in memory, of a least priority, whose turn may have come.
func (a *active) offers(q *originQueue, least int8) bool {
	priority, ok := q.First()
	return ok && priority >= least && (priority >= 0 || !a.expectsMore())
}

// expectsMore reports whether there may be URLs of the default priority that are not in memory:
// discoveries that are not committed, and those of a queue that has to be loaded.
func (a *active) expectsMore() bool {
	if len(a.busy) > 0 || a.uncommitted > 0 {
		return true
	}
	for i := range a.queues {
		if q := &a.queues[i]; !q.isBlocked() && q.heldUntil == always && q.Len(queue.New) == 0 && q.ReadTo() < a.tail {
			return true
		}
	}
	return false
}

// topPriority is the highest priority of the URLs in memory.
func (a *active) topPriority() int8 {
	top := int8(-128)
	if len(a.jobs) > 0 {
		top = 0 // others wait for a robots.txt
	}
	for i := range a.queues {
		if priority, ok := a.queues[i].First(); ok {
			top = max(top, priority)
		}
	}
	return top
}

// newFirst reports whether the host's URLs that were never fetched come before those of their priority
// that are due: after a failure, so that a host is not judged by one page that fails again and again.
func (a *active) newFirst() bool { return a.polite.Failing() }

// pick chooses the queue whose turn it is, of those with a URL of a least priority. The deferred one lets any other
// go first.
func (a *active) pick(now instant, deferred *originQueue, least int8) *originQueue {
	var best *originQueue
	hasDeferred, newFirst := false, a.newFirst()
	for i := range a.queues {
		q := &a.queues[i]
		switch {
		case q.isBlocked() || q.heldUntil > now || !a.offers(q, least):
		case q == deferred:
			hasDeferred = true
		case best == nil || q.Before(&best.Queue, newFirst):
			best = q
		}
	}
	if best == nil && hasDeferred {
		return deferred
	}
	return best
}

// pickRecrawl chooses the queue with the page to recrawl that is overdue longest.
func (a *active) pickRecrawl(now instant) *originQueue {
	var best *originQueue
	var longest time.Time
	for i := range a.queues {
		q := &a.queues[i]
		due, ok := q.RecrawlDue()
		if !ok || q.isBlocked() || q.heldUntil > now {
			continue
		}
		if best == nil || due.Before(longest) {
			best, longest = q, due
		}
	}
	return best
}

// deferredQueue is the queue whose robots.txt was unreachable when it last had a turn, and which
// has no other rules; nil: there is none. It lets others go first, because the host would otherwise
// get requests for nothing but that file.
func (b *base) deferredQueue(h *host) *originQueue {
	if h.deferred == 0 || int(h.deferred) > len(h.active.queues) {
		return nil
	}
	q := &h.active.queues[h.deferred-1]
	if q.record.Failures == 0 {
		return nil
	}
	decision := b.o.Robots.Decide(*q.record, h.active.polite.Delay(b.clock), b.clock)
	if decision.Kind == robots.DecisionMatch {
		return nil
	}
	return q
}
