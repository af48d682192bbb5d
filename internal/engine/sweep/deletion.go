//go:build !core

package sweep

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// DeletionStore is what deletions read.
type DeletionStore interface {
	HostsFrom(storage.HostID, int, func(*storage.Host) error) (storage.HostID, error)
	URLs(storage.HostID, uint32, int, func(storage.Head)) (uint32, error)
	PurgeRange(storage.HostID, uint64) (uint64, error)
}

// newHostDeletion returns the sweep that deletes URLs of a host from an ordinal on, up to another,
// and then clears the rows from a key on of what belongs to deleted URLs.
func newHostDeletion(host storage.HostID, from, below uint32, rows uint64) *Sweep {
	s := &Sweep{
		mark: fmt.Sprintf("%s%d", MarkDelete, host), host: host,
		at: storage.Position{Host: host, Ordinal: from}, below: below,
	}
	s.encode = func() []byte {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, s.at.Ordinal), s.below)
		return binary.BigEndian.AppendUint64(b, rows)
	}
	s.ended = func(f *frontier.Frontier, now time.Time) { f.Dropped(host, below, now) }
	s.advance = func(store DeletionStore, p *Step) error {
		if at := s.at.Ordinal; at < below {
			s.at.Ordinal += min(storage.MostPurged, below-at)
			p.Purges = []storage.Purge{{Host: host, Below: s.at.Ordinal}}
			return p.forget(store, host, at, s.at.Ordinal)
		}
		to, err := store.PurgeRange(host, rows)
		p.Purges = []storage.Purge{{Host: host, From: rows, To: to}}
		rows, p.End = to+1, to == math.MaxUint64
		return err
	}
	return s
}

// forgetPage is how many URLs are read in one transaction.
const forgetPage = 500

// forget takes note of the pages on the recrawl plan among URLs of a host.
func (p *Step) forget(store DeletionStore, host storage.HostID, from, below uint32) (err error) {
	for err == nil && from < below {
		from, err = store.URLs(host, from, int(min(forgetPage, below-from)), func(u storage.Head) {
			p.Forgotten = forget(p.Forgotten, host, &u, storage.Outcome{})
		})
	}
	return err
}

func openHostDeletion(name string, value []byte) (*Sweep, error) {
	var host storage.HostID
	if err := scanMark(name, MarkDelete, "%d", &host); err != nil {
		return nil, err
	}
	if len(value) != 16 {
		return nil, storage.ErrCorrupt
	}
	return newHostDeletion(host, binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:]),
		binary.BigEndian.Uint64(value[8:])), nil
}

// Deletion deletes URLs of one host, or of all hosts, which it finds first. Its exported fields are
// what its mark holds.
type Deletion struct {
	Before uint32         `json:"before,omitempty"` // Unix seconds: URLs discovered before; 0: all
	Host   storage.HostID `json:"host,omitempty"`   // where it goes on

	urls uint64        // to delete, in all; the sweeper's until the end
	left int           // hosts whose deletions are not done; the dispatcher's, as is over
	over bool          // all hosts were found
	done chan struct{} // closed when all is deleted
}

// NewDeletion returns the deletion of URLs that were discovered before a time; zero: of all.
func NewDeletion(before time.Time) *Deletion {
	return &Deletion{Before: storage.Seconds(before), done: make(chan struct{})}
}

// Done is closed when all is deleted, on disk too.
func (a *Deletion) Done() <-chan struct{} { return a.done }

// URLs returns how many URLs it deletes in all. The caller waits for Done first.
func (a *Deletion) URLs() uint64 { return a.urls }

// Of makes it the deletion of the URLs of one host, and returns its sweep; nil: there are none to
// delete.
func (a *Deletion) Of(store DeletionStore, h *storage.Host) (*Sweep, error) {
	a.over, a.left = true, 1
	return a.of(store, h)
}

// deletionHosts is how many hosts are read in one step.
const deletionHosts = 200

// All returns the sweep that walks over all hosts, and begins a deletion for each.
func (a *Deletion) All() *Sweep {
	s := &Sweep{mark: fmt.Sprintf("%s%d", MarkDeleteAll, a.Before)}
	s.encode = func() []byte {
		b, _ := json.Marshal(a) // of plain data
		return b
	}
	s.advance = func(store DeletionStore, p *Step) error {
		next, err := store.HostsFrom(a.Host, deletionHosts, func(h *storage.Host) error {
			x, err := a.of(store, h)
			if x != nil {
				p.Begins = append(p.Begins, x)
			}
			return err
		})
		a.Host, p.End = next, next == storage.NoHost
		return err
	}
	s.began = func(n int) { a.left += n }
	s.ended = func(*frontier.Frontier, time.Time) {
		a.over = true
		a.endIfDone()
	}
	return s
}

// of returns the sweep that deletes the URLs of one host; nil: there are none to delete.
func (a *Deletion) of(store DeletionStore, h *storage.Host) (*Sweep, error) {
	below := h.Tail
	if a.Before != 0 && h.First < h.Tail {
		var err error
		if below, err = firstSince(store, h, a.Before); err != nil {
			return nil, err
		}
	}
	if below <= h.First {
		return nil, nil
	}
	a.urls += uint64(below - h.First)
	s := newHostDeletion(h.ID, h.First, below, 0)
	ended := s.ended
	s.ended = func(f *frontier.Frontier, now time.Time) {
		ended(f, now)
		a.left--
		a.endIfDone()
	}
	return s, nil
}

// firstSince returns the ordinal of the first URL of a host that was discovered at a time or later,
// in Unix seconds; the host's tail if there is none. URLs are numbered in the order of their
// discovery, except for imported ones.
func firstSince(store DeletionStore, h *storage.Host, since uint32) (uint32, error) {
	for at := h.First; at < h.Tail; {
		found := false
		next, err := store.URLs(h.ID, at, forgetPage, func(u storage.Head) {
			if !found && storage.Seconds(u.FirstSeen) >= since {
				at, found = u.Ordinal, true
			}
		})
		if found || err != nil {
			return at, err
		}
		at = next
	}
	return h.Tail, nil
}

func (a *Deletion) endIfDone() {
	if a.over && a.left == 0 {
		close(a.done)
	}
}

func openDeletion(_ string, value []byte) (*Sweep, error) {
	a := &Deletion{done: make(chan struct{})}
	if err := json.Unmarshal(value, a); err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	return a.All(), nil
}
