// Package queue keeps the URLs of one origin that are fetched next.
//
// A queue lies on disk. In memory are its cursor and a few URLs of three kinds, each in the order
// in which it is fetched: those that were never fetched, in the order of discovery; those that are
// due, because they are tried again or have a priority; and the pages to recrawl. The owner loads
// more when a kind runs low.
//
// A URL that Take or TakeRecrawl removes belongs to the caller, who gives it back with Return, or
// says with Done that its outcome is recorded. Until then the cursor stays at or before it, so that
// a process that starts again finds it in the queue.
//
// The order of the new and the due URLs is by falling priority; within a priority those that are
// due come before those that were never fetched, and each kind in the order in which it became so.
// URLs of a negative priority come after all others. The owner may let new URLs come before due ones
// of their priority.
//
// The package knows nothing of hosts, robots.txt and time. A Queue is not safe for concurrent use.
package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// Kind says why a URL is fetched.
type Kind uint8

// The kinds of URLs.
const (
	New     Kind = iota // never fetched, of the default priority
	Due                 // tried again, or of a priority other than the default
	Recrawl             // fetched before
)

// Queue is the queue of one origin.
type Queue struct {
	fresh    entries        // loaded and not taken, in the order of discovery
	due      []storage.Head // loaded and not taken, in their order
	recrawls []storage.Head // loaded and not taken, the longest overdue first
	inFlight Ordinals       // new URLs that were taken

	next         uint32 // ordinal to load from
	origin       uint8
	moreDue      bool // more are due than were loaded
	moreRecrawls bool
}

// Make returns an empty queue of the origin with the given index among those of its host. New URLs
// are loaded from the given ordinal on.
func Make(origin uint8, from uint32) Queue { return Queue{origin: origin, next: from} }

// Origin returns the index of the origin among those of its host.
func (q *Queue) Origin() uint8 { return q.origin }

// ReadTo returns the ordinal from which new URLs are not loaded yet.
func (q *Queue) ReadTo() uint32 { return q.next }

// Cursor returns the lowest ordinal that may be of a new URL without a recorded outcome.
func (q *Queue) Cursor() uint32 {
	n := q.next
	if len(q.fresh.list) > 0 {
		n = q.fresh.first()
	}
	if len(q.inFlight) > 0 {
		n = min(n, q.inFlight[0])
	}
	return n
}

// Len returns the number of URLs of a kind that are in memory.
func (q *Queue) Len(k Kind) int {
	switch k {
	case New:
		return len(q.fresh.list)
	case Due:
		return len(q.due)
	}
	return len(q.recrawls)
}

// First returns the priority of the URL that Take would return; ok is false if there is none in memory.
func (q *Queue) First() (priority int8, ok bool) {
	if len(q.due) > 0 && (q.due[0].Priority >= 0 || len(q.fresh.list) == 0) {
		return q.due[0].Priority, true
	}
	return 0, len(q.fresh.list) > 0
}

// kind returns the kind of the URL that Take(newFirst) would return. There must be one.
func (q *Queue) kind(newFirst bool) Kind {
	priority, _ := q.First()
	if len(q.fresh.list) > 0 && priority == 0 && (newFirst || len(q.due) == 0 || q.due[0].Priority < 0) {
		return New
	}
	return Due
}

// Before reports whether the URL that q.Take(newFirst) would return comes before that of other. Both
// have one.
func (q *Queue) Before(other *Queue, newFirst bool) bool {
	priority, _ := q.First()
	otherPriority, _ := other.First()
	k, otherKind := q.kind(newFirst), other.kind(newFirst)
	switch {
	case priority != otherPriority:
		return priority > otherPriority
	case k == Due && otherKind == Due:
		return compareDue(q.due[0], other.due[0]) < 0
	case k != otherKind:
		return newFirst == (k == New)
	}
	return q.fresh.first() < other.fresh.first()
}

// Take removes the first new or due URL; with newFirst, a new one of the same priority instead of one
// that is due. There must be one.
func (q *Queue) Take(newFirst bool) (storage.Head, Kind) {
	if q.kind(newFirst) == Due {
		head := q.due[0]
		q.due = q.due[1:]
		return head, Due
	}
	head := storage.Head{Entry: q.fresh.take(q.origin)}
	q.inFlight.Add(head.Ordinal)
	return head, New
}

// Prefers says whether a URL is preferred, by its path and query, and the time of its last outcome, if it has one.
type Prefers func(requestURI string, last time.Time) bool

// TakePreferred is Take, but a URL in memory comes before others of its priority if it is preferred, by the first
// of the lists if that prefers any, and so on. There must be a URL.
func (q *Queue) TakePreferred(lists ...Prefers) (storage.Head, Kind) {
	for _, prefers := range lists {
		if head, k, ok := q.takePreferred(prefers); ok {
			return head, k
		}
	}
	return q.Take(false)
}

func (q *Queue) takePreferred(prefers Prefers) (head storage.Head, k Kind, ok bool) {
	priority, _ := q.First()
	for i := 0; i < len(q.due) && q.due[i].Priority == priority; i++ {
		if head := q.due[i]; prefers(head.RequestURI, head.Last.At) {
			q.due = slices.Delete(q.due, i, i+1)
			return head, Due, true
		}
	}
	for i := 0; i < len(q.fresh.list) && priority == 0; i++ {
		if prefers(q.fresh.textOf(i), time.Time{}) {
			head := storage.Head{Entry: q.fresh.takeAt(i, q.origin)}
			q.inFlight.Add(head.Ordinal)
			return head, New, true
		}
	}
	return head, k, false
}

// RecrawlDue returns when the first page to recrawl became due; ok is false if there is none in
// memory.
func (q *Queue) RecrawlDue() (due time.Time, ok bool) {
	if len(q.recrawls) == 0 {
		return time.Time{}, false
	}
	return q.recrawls[0].Last.Due, true
}

// TakeRecrawl removes the first page to recrawl. There must be one.
func (q *Queue) TakeRecrawl() storage.Head {
	head := q.recrawls[0]
	q.recrawls = q.recrawls[1:]
	return head
}

// Return puts a URL that was taken back to where it was.
func (q *Queue) Return(head storage.Head, k Kind) {
	switch k {
	case Recrawl:
		q.recrawls = slices.Insert(q.recrawls, 0, head)
	case Due:
		q.addDue(head)
	default:
		q.inFlight.Remove(head.Ordinal)
		q.fresh.insert(head)
	}
}

// Done lets the cursor pass a URL that was taken: its outcome is recorded.
func (q *Queue) Done(ordinal uint32) { q.inFlight.Remove(ordinal) }

// Remove removes a URL that is in memory, if there is one of the ordinal: its outcome is recorded.
func (q *Queue) Remove(ordinal uint32) {
	is := func(head storage.Head) bool { return head.Ordinal == ordinal }
	q.due, q.recrawls = slices.DeleteFunc(q.due, is), slices.DeleteFunc(q.recrawls, is)
	byOrdinal := func(e entry, ordinal uint32) int { return cmp.Compare(e.ordinal, ordinal) }
	if i, found := slices.BinarySearchFunc(q.fresh.list, ordinal, byOrdinal); found {
		q.fresh.takeAt(i, q.origin)
	}
}

// DropBelow removes the new and the due URLs with an ordinal below the given one and returns them.
// Due URLs stay for whose last outcome stays returns true.
func (q *Queue) DropBelow(ordinal uint32, stays func(last *storage.Outcome) bool) (dropped []storage.Head) {
	for len(q.fresh.list) > 0 && q.fresh.first() < ordinal {
		dropped = append(dropped, storage.Head{Entry: q.fresh.take(q.origin)})
	}
	q.due = slices.DeleteFunc(q.due, func(head storage.Head) bool {
		drops := head.Ordinal < ordinal && !stays(&head.Last)
		if drops {
			dropped = append(dropped, head)
		}
		return drops
	})
	return dropped
}

// DropRecrawlsBelow removes the pages to recrawl with an ordinal below the given one and returns
// them.
func (q *Queue) DropRecrawlsBelow(ordinal uint32) (dropped []storage.Head) {
	q.recrawls = slices.DeleteFunc(q.recrawls, func(head storage.Head) bool {
		if head.Ordinal < ordinal {
			dropped = append(dropped, head)
		}
		return head.Ordinal < ordinal
	})
	return dropped
}

// HasSeed reports whether one of the new and due URLs in memory is a seed.
func (q *Queue) HasSeed() bool {
	return slices.ContainsFunc(q.fresh.list, func(e entry) bool { return e.seed }) ||
		slices.ContainsFunc(q.due, func(head storage.Head) bool { return head.Seed })
}

// Bytes estimates the memory of the URLs.
func (q *Queue) Bytes() int {
	n := q.fresh.bytes()
	for i := range q.due {
		n += 200 + len(q.due[i].RequestURI) + len(q.due[i].Stripped)
	}
	for i := range q.recrawls {
		n += 230 + len(q.recrawls[i].RequestURI) + len(q.recrawls[i].Stripped)
	}
	return n
}

// compareDue orders due URLs.
func compareDue(a, b storage.Head) int {
	byPriority, byDue := cmp.Compare(b.Priority, a.Priority), a.Last.Due.Compare(b.Last.Due)
	return cmp.Or(byPriority, byDue, cmp.Compare(a.Ordinal, b.Ordinal))
}

func (q *Queue) addDue(head storage.Head) {
	i, _ := slices.BinarySearchFunc(q.due, head, compareDue)
	q.due = slices.Insert(q.due, i, head)
}
