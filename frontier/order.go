package frontier

import (
	"cmp"
	"slices"

	"github.com/amble-crawler/amble/storage"
)

// The order of a host's URLs, over the queues of all its origins: by falling
// priority; within a priority URLs that are due before those that were never
// touched, and each of them in the order in which they became so. A priority
// below 0 waits until nothing else can be asked, on disk or in memory.
//
// Among hosts the one that may be asked for longest comes first; where that is the same instant, the one whose next URL
// has the higher priority.

// compareDue orders due URLs.
func compareDue(a, b storage.Head) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if c := a.Last.Due.Compare(b.Last.Due); c != 0 {
		return c
	}
	return cmp.Compare(a.Ordinal, b.Ordinal)
}

// addDue puts a URL among those that are due.
func (q *queue) addDue(head storage.Head) {
	i, _ := slices.BinarySearchFunc(q.due, head, compareDue)
	q.due = slices.Insert(q.due, i, head)
}

// first says what the next URL of a queue is: its priority, and whether it is
// among the due ones; false if there is none in memory.
func (q *queue) first() (priority int8, due, ok bool) {
	switch {
	case len(q.due) > 0 && (q.due[0].Priority >= 0 || len(q.heads.list) == 0):
		return q.due[0].Priority, true, true
	case len(q.heads.list) > 0:
		return 0, false, true
	}
	return 0, false, false
}

// offers reports whether a queue has a URL in memory that may be asked as far
// as the order is concerned.
func (a *active) offers(q *queue) bool {
	priority, _, ok := q.first()
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
		if q := &a.queues[i]; !q.isBlocked() && q.heldUntil == always && len(q.heads.list) == 0 && q.next < a.tail {
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
		if priority, _, ok := a.queues[i].first(); ok {
			foremost = max(foremost, priority)
		}
	}
	return foremost
}

// pick chooses the queue whose turn it is. The patient one lets any other go first.
func (a *active) pick(now instant, patient *queue) *queue {
	var best *queue
	waits := false
	for i := range a.queues {
		q := &a.queues[i]
		switch {
		case q.isBlocked() || q.heldUntil > now || !a.offers(q):
		case q == patient:
			waits = true
		case best == nil || q.before(best):
			best = q
		}
	}
	if best == nil && waits {
		return patient
	}
	return best
}

// before reports whether the next URL of a queue comes before that of another.
func (q *queue) before(other *queue) bool {
	priority, due, _ := q.first()
	otherPriority, otherDue, _ := other.first()
	switch {
	case priority != otherPriority:
		return priority > otherPriority
	case due && otherDue:
		return compareDue(q.due[0], other.due[0]) < 0
	case due != otherDue:
		return due
	}
	return q.heads.first() < other.heads.first()
}
