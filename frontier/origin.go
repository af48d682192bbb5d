package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
)

// originQueue is the queue of one origin of an active host, with its robots rules.
type originQueue struct {
	queue.Queue
	origin    weburl.Origin
	record    robots.Record
	rules     *robots.Rules
	verdict   workerVerdict
	heldUntil instant // nothing of it is fetched before; always: it is not held

	known          bool // a robots.txt was read, now or in an earlier process
	fetchingRobots bool // its robots.txt is being fetched
	matching       bool // one of its URLs is being matched by a worker, or waits for that
	holdReason     robots.Reason
}

// stands reports whether a queue is blocked: its robots.txt is being fetched, or its first URL
// matched.
func (q *originQueue) isBlocked() bool { return q.fetchingRobots || q.matching }

// hold keeps a whole queue until an instant.
func (q *originQueue) hold(s robots.Standing, until instant) {
	q.heldUntil, q.holdReason = min(until, never-1), s.Reason
	if s.Kind == robots.StandingAsk {
		q.holdReason = robots.ReasonRule // Disallow: /
	}
}

// holding is why robots.txt holds all that the host has to do; ReasonNone if it
// does not.
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

// originIndex is the place of an origin among the host's; -1 if it has none.
func (a *active) originIndex(o weburl.Origin) int {
	for i := range a.queues {
		if a.queues[i].origin == o {
			return i
		}
	}
	return -1
}

// The order of a host's URLs, over the queues of all its origins: by falling
// priority; within a priority URLs that are due before those that were never
// touched, and each of them in the order in which they became so. A priority
// below 0 waits until nothing else can be asked, on disk or in memory.
//
// Among hosts the one that may be asked for longest comes first; where that is the same instant, the one whose next URL
// has the higher priority.

// offers reports whether a queue has a URL in memory that may be asked as far
// as the order is concerned.
func (a *active) offers(q *originQueue) bool {
	priority, _, ok := q.First()
	return ok && (priority >= 0 || !a.expectsMore())
}

// expects reports whether there may be URLs of the default priority that are not in
// memory: those that a page has brought and that are not on disk yet, and those
// still to be read for a queue that could go on at once.
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

// foremost is the highest priority of the URLs in memory.
func (a *active) topPriority() int8 {
	foremost := int8(-128)
	if len(a.jobs) > 0 {
		foremost = 0 // whatever else it has to do: others wait for a robots.txt
	}
	for i := range a.queues {
		if priority, _, ok := a.queues[i].First(); ok {
			foremost = max(foremost, priority)
		}
	}
	return foremost
}

// pick chooses the queue whose turn it is. The patient one lets any other go first.
func (a *active) pick(now instant, patient *originQueue) *originQueue {
	var best *originQueue
	waits := false
	for i := range a.queues {
		q := &a.queues[i]
		switch {
		case q.isBlocked() || q.heldUntil > now || !a.offers(q):
		case q == patient:
			waits = true
		case best == nil || q.Before(&best.Queue):
			best = q
		}
	}
	if best == nil && waits {
		return patient
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
