package frontier

import (
	"github.com/amble-crawler/amble/frontier/internal/queue"
)

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
