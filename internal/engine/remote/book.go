//go:build !core

package remote

import (
	"container/heap"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

const (
	// maxFetchers bounds the fetchers that are known and hold nothing.
	maxFetchers = 1000
	// maxEnded is how many ended leases are remembered, so that a late report can be told from an
	// unknown one.
	maxEnded = 10_000
	// saveAfter is how long a lease is in the start ledger only. One that is out for longer gets a mark in
	// the database, so that the ledger does not grow.
	saveAfter = 2 * time.Second
)

// Held is a lease while a fetcher has it.
type Held struct {
	Record
	FrontierID uint64
	At         storage.Position
	Began      time.Time // Given, with a monotonic reading
	Ends       time.Time // Deadline, with a monotonic reading
	Adopted    bool      // an earlier process gave it
	Overridden bool      // its URL was put since, and became another state
	Became     storage.State
	EndLine    uint64 // offset of the line of its report in the start ledger; 0: it has none

	index   int  // in the heap of deadlines; -1: it is not there
	ofHost  int  // index in the list of its host
	marked  bool // it has a mark, in the database or the batch
	saved   bool // the mark is as the last line in the start ledger
	claimed bool
}

// IsClaimed reports whether its report is being worked on.
func (l *Held) IsClaimed() bool { return l.claimed }

// IsMarked reports whether it has a mark, in the database or on the way there.
func (l *Held) IsMarked() bool { return l.marked }

// Describe adds to the record of a request what the lease says of it. An adopted lease was allowed by
// the robots.txt of its time.
func (l *Held) Describe(q *requestlog.Request) {
	q.Fetcher, q.Lease = l.Fetcher, l.ID
	if !l.Adopted {
		return
	}
	q.Allowed, q.Line = true, l.Line
	if v, err := robots.ParseVersion(l.Version); err == nil && v != q.Policy.Version {
		q.Policy = &requestlog.Policy{Version: v}
	}
}

// Book are the leases that are out. It belongs to one goroutine.
type Book struct {
	out       map[string]*Held
	byURL     map[storage.Position]*Held
	byHost    map[storage.HostID][]*Held
	byText    map[string]*Held // by the text of the URL
	deadlines deadlines
	unsaved   []savedLater // in the order of their offsets
	ended     map[string]bool
	endedList []string // a ring
	endedNext int
	fetchers  map[string]*Fetcher
	reported  map[*Held]bool // whose reports are worked on, with a line in the start ledger
	working   int            // claimed leases
}

// savedLater is a line of the start ledger whose lease may need a mark later.
type savedLater struct {
	lease  *Held
	offset uint64
}

// New returns a book without leases.
func New() *Book {
	return &Book{
		out: make(map[string]*Held), byURL: make(map[storage.Position]*Held),
		byHost: make(map[storage.HostID][]*Held), byText: make(map[string]*Held), reported: make(map[*Held]bool),
		ended: make(map[string]bool), fetchers: make(map[string]*Fetcher),
	}
}

// Len returns how many leases are out.
func (b *Book) Len() int { return len(b.out) }

// Working returns how many of them are claimed.
func (b *Book) Working() int { return b.working }

// All are the leases that are out, in no order.
func (b *Book) All() iter.Seq[*Held] { return maps.Values(b.out) }

// IsOut reports whether a lease is out.
func (b *Book) IsOut(l *Held) bool { return b.out[l.ID] == l }

// Find returns the lease with an id; nil: it is not out. wasOut reports whether it was, not long ago.
func (b *Book) Find(id string) (l *Held, wasOut bool) { return b.out[id], b.ended[id] }

// OfURL returns the lease of a URL; nil: none is out.
func (b *Book) OfURL(at storage.Position) *Held { return b.byURL[at] }

// OfText is OfURL by the text of the URL.
func (b *Book) OfText(url string) *Held { return b.byText[url] }

// OfHost returns the leases of a host. The slice is the caller's.
func (b *Book) OfHost(id storage.HostID) []*Held { return slices.Clone(b.byHost[id]) }

// Enter takes note of a lease that is out, whose line in the start ledger is at offset.
func (b *Book) Enter(l *Held, offset uint64) {
	l.Offset = offset
	b.add(l, l.Began)
	b.unsaved = append(b.unsaved, savedLater{l, offset})
}

// Adopt takes over a lease of an earlier process, which has a mark.
func (b *Book) Adopt(r Record, frontierID uint64, at storage.Position, now time.Time) {
	l := &Held{
		Record: r, FrontierID: frontierID, At: at, Began: now.Add(-max(now.Sub(r.Given), 0)),
		Ends: now.Add(r.Left(now)), marked: true, saved: true, Adopted: true,
	}
	b.add(l, now)
}

// add adds a lease of a fetcher that was seen last at an instant.
func (b *Book) add(l *Held, seen time.Time) {
	b.out[l.ID], b.byURL[l.At], b.byText[l.URL] = l, l, l
	l.ofHost = len(b.byHost[l.At.Host])
	b.byHost[l.At.Host] = append(b.byHost[l.At.Host], l)
	heap.Push(&b.deadlines, l)
	b.Fetcher(l.Fetcher, seen).Leases++
}

// Claim has the report of a lease worked on: it does not run out any more.
func (b *Book) Claim(l *Held) {
	l.claimed = true
	b.working++
	heap.Remove(&b.deadlines, l.index)
}

// Reported takes note of the line in the start ledger for the work on a report.
func (b *Book) Reported(l *Held, offset uint64) { l.EndLine, b.reported[l] = offset, true }

// Over returns the lease whose deadline passed first; nil: none has passed.
func (b *Book) Over(now time.Time) *Held {
	if len(b.deadlines) == 0 || now.Before(b.deadlines[0].Ends) {
		return nil
	}
	return b.deadlines[0]
}

// Postpone puts the end of a lease off that is over, but cannot end yet.
func (b *Book) Postpone(l *Held, until time.Time) {
	l.Ends = until
	heap.Fix(&b.deadlines, l.index)
}

// NextDeadline is when the next lease runs out; zero: none is out.
func (b *Book) NextDeadline() time.Time {
	if len(b.deadlines) == 0 {
		return time.Time{}
	}
	return b.deadlines[0].Ends
}

// End takes a lease back that has ended.
func (b *Book) End(l *Held) {
	delete(b.out, l.ID)
	delete(b.byURL, l.At)
	b.removeFromHost(l)
	delete(b.byText, l.URL)
	if l.index >= 0 {
		heap.Remove(&b.deadlines, l.index)
	}
	if f := b.fetchers[l.Fetcher]; f != nil {
		f.Leases--
	}
	if l.claimed {
		b.working--
		delete(b.reported, l)
	}
	if len(b.endedList) < maxEnded {
		b.endedList = append(b.endedList, l.ID)
	} else {
		delete(b.ended, b.endedList[b.endedNext])
		b.endedList[b.endedNext] = l.ID
		b.endedNext = (b.endedNext + 1) % maxEnded
	}
	b.ended[l.ID] = true
}

func (b *Book) removeFromHost(l *Held) {
	list := b.byHost[l.At.Host]
	last := list[len(list)-1]
	list[l.ofHost], last.ofHost = last, l.ofHost
	list[len(list)-1] = nil
	if b.byHost[l.At.Host] = list[:len(list)-1]; len(list) == 1 {
		delete(b.byHost, l.At.Host)
	}
}

// Save makes marks of leases that have been in the ledger for a while. Lines before those that remain
// need not be remembered.
func (b *Book) Save(setMark func(name string, value []byte), now time.Time) {
	n := 0
	for _, entry := range b.unsaved {
		l := entry.lease
		if b.IsOut(l) && !l.saved && l.Offset == entry.offset {
			if now.Sub(l.Began) < saveAfter {
				break
			}
			setMark(Mark+l.ID, l.Encode())
			l.marked, l.saved = true, true
		}
		n++
	}
	b.unsaved = b.unsaved[n:]
}

// OffsetBefore returns the offset in the ledger before which every lease has ended or has a mark, given
// that of other requests.
func (b *Book) OffsetBefore(others uint64) uint64 {
	for l := range b.reported {
		others = min(others, l.EndLine)
	}
	if len(b.unsaved) == 0 {
		return others
	}
	return min(others, b.unsaved[0].offset)
}

// deadlines is a heap of leases by their deadline.
type deadlines []*Held

// Len is part of heap.Interface.
func (h deadlines) Len() int { return len(h) }

// Less is part of heap.Interface.
func (h deadlines) Less(i, j int) bool { return h[i].Ends.Before(h[j].Ends) }

// Swap is part of heap.Interface.
func (h deadlines) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is part of heap.Interface.
func (h *deadlines) Push(x any) {
	l := x.(*Held)
	l.index = len(*h)
	*h = append(*h, l)
}

// Pop is part of heap.Interface.
func (h *deadlines) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	l.index = -1
	return l
}
