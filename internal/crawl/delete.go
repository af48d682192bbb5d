package crawl

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/recrawl"
	"github.com/amble-crawler/amble/storage"
)

// Deletion selects URLs to delete. The zero value is all URLs.
type Deletion struct {
	Host string // canonical name; empty: all hosts
	// Before selects those that were discovered before a time; zero: all of them. Of a host these are
	// its first URLs, up to the first that is younger.
	Before time.Time
}

// Delete deletes URLs, whatever their state, so that they are new when they are found again. What
// is known of their hosts stays. It returns how many URLs it deletes, when they are gone. If ctx or
// the crawl ends before, the deletion goes on all the same, also after a restart. The error is
// inspect.ErrUnknown for an unknown host, ErrNotRunning, that of ctx, or why the command could not
// be committed. Any goroutine may call it.
func (e *Engine) Delete(ctx context.Context, o Deletion) (urls uint64, err error) {
	m := e.mailbox.Load()
	if !m.isOpen() {
		return 0, ErrNotRunning
	}
	all := &deleteAll{Before: unixSeconds(o.Before), done: make(chan struct{})}
	begin := func(d *dispatcher) error { d.sweeps.add(all.sweep(), d.pending); return nil }
	if o.Host != "" {
		host, err := e.store.HostByName(o.Host)
		if errors.Is(err, storage.ErrNotFound) {
			return 0, fmt.Errorf("host %s: %w", o.Host, inspect.ErrUnknown)
		}
		if err != nil {
			return 0, err
		}
		x, err := all.of(e.store, &host)
		if x == nil || err != nil {
			return 0, err
		}
		all.over, all.left = true, 1
		begin = func(d *dispatcher) error { d.delete(x); return nil }
	}
	if err := m.submit(ctx, begin); err != nil {
		return 0, err
	}
	select {
	case <-all.done:
		return all.urls, nil
	case <-m.closed:
		return 0, fmt.Errorf("delete URLs: %w; the next run goes on with it", ErrNotRunning)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// unixSeconds returns a time as the store compares it; 0 for the zero time.
func unixSeconds(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(min(max(t.Unix(), 1), math.MaxUint32))
}

// fromUnixSeconds is the inverse of unixSeconds.
func fromUnixSeconds(s uint64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(min(s, math.MaxUint32)), 0)
}

// delete begins to delete URLs of a host.
func (d *dispatcher) delete(s *sweep) {
	d.sweeps.add(s, d.pending)
	d.f.Delete(s.host, s.below, d.o.Now())
	if d.o.IgnoreRobots {
		d.fail(d.takeBack(s.host, s.below))
	}
	d.collect()
}

// takeSwept takes the step of a sweep.
func (d *dispatcher) takeSwept(p *swept) {
	d.fail(d.sweeps.take(p, d.pending))
	for _, s := range p.begins {
		d.delete(s)
	}
	if d.plan != nil {
		for _, page := range p.forgotten {
			d.plan.Forget(page.history, page.importance)
		}
	}
}

// deletionStore is what deletions read.
type deletionStore interface {
	HostsFrom(storage.HostID, int, func(*storage.Host) error) (storage.HostID, error)
	URLs(storage.HostID, uint32, int, func(storage.Head)) (uint32, error)
	PurgeRange(storage.HostID, uint64) (uint64, error)
}

// plannedPage is a page that is taken off the recrawl plan.
type plannedPage struct {
	history    recrawl.History
	importance recrawl.Importance
}

// newHostDeletion returns the sweep that deletes URLs of a host from an ordinal on, up to another,
// and then clears the rows from a key on of what belongs to deleted URLs.
func newHostDeletion(host storage.HostID, from, below uint32, rows uint64) *sweep {
	s := &sweep{
		mark: fmt.Sprintf("%s%d", markDelete, host), host: host,
		at: storage.Position{Host: host, Ordinal: from}, below: below,
	}
	s.encode = func() []byte {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, s.at.Ordinal), s.below)
		return binary.BigEndian.AppendUint64(b, rows)
	}
	s.ended = func(f *frontier.Frontier, now time.Time) { f.Dropped(host, below, now) }
	s.advance = func(store deletionStore, p *swept) error {
		if at := s.at.Ordinal; at < below {
			s.at.Ordinal += min(storage.MostPurged, below-at)
			p.purges = []storage.Purge{{Host: host, Below: s.at.Ordinal}}
			return p.forget(store, host, at, s.at.Ordinal)
		}
		to, err := store.PurgeRange(host, rows)
		p.purges = []storage.Purge{{Host: host, From: rows, To: to}}
		rows, p.end = to+1, to == math.MaxUint64
		return err
	}
	return s
}

// forgetPage is how many URLs are read in one transaction.
const forgetPage = 500

// forget takes note of the pages on the recrawl plan among URLs of a host.
func (p *swept) forget(store deletionStore, host storage.HostID, from, below uint32) (err error) {
	for err == nil && from < below {
		from, err = store.URLs(host, from, int(min(forgetPage, below-from)), func(u storage.Head) {
			if h := recrawl.History(u.Last.History); u.Last.State != storage.Retrying && !u.Last.Due.IsZero() {
				p.forgotten = append(p.forgotten, plannedPage{h, recrawl.ImportanceOf(u.Priority, u.Depth)})
			}
		})
	}
	return err
}

func openHostDeletion(name string, value []byte) (*sweep, error) {
	var host storage.HostID
	if err := scanMark(name, markDelete, "%d", &host); err != nil {
		return nil, err
	}
	if len(value) != 16 {
		return nil, storage.ErrCorrupt
	}
	return newHostDeletion(host, binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:]),
		binary.BigEndian.Uint64(value[8:])), nil
}

// deleteAll finds the hosts that have URLs to delete. Its exported fields are what its mark holds.
type deleteAll struct {
	Before uint32         `json:"before,omitempty"` // Unix seconds: URLs discovered before; 0: all
	Host   storage.HostID `json:"host,omitempty"`   // where it goes on

	urls uint64        // to delete, in all; the sweeper's until the end
	left int           // hosts whose deletions are not done; the dispatcher's, as is over
	over bool          // all hosts were found
	done chan struct{} // closed when all is deleted
}

// deletionHosts is how many hosts are read in one step.
const deletionHosts = 200

// sweep returns the sweep that walks over all hosts.
func (a *deleteAll) sweep() *sweep {
	s := &sweep{mark: fmt.Sprintf("%s%d", markDeleteAll, a.Before)}
	s.encode = func() []byte {
		b, _ := json.Marshal(a) // of plain data
		return b
	}
	s.advance = func(store deletionStore, p *swept) error {
		next, err := store.HostsFrom(a.Host, deletionHosts, func(h *storage.Host) error {
			x, err := a.of(store, h)
			if x != nil {
				p.begins = append(p.begins, x)
			}
			return err
		})
		a.Host, p.end = next, next == storage.NoHost
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
func (a *deleteAll) of(store deletionStore, h *storage.Host) (*sweep, error) {
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
func firstSince(store deletionStore, h *storage.Host, since uint32) (uint32, error) {
	for at := h.First; at < h.Tail; {
		found := false
		next, err := store.URLs(h.ID, at, forgetPage, func(u storage.Head) {
			if !found && unixSeconds(u.FirstSeen) >= since {
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

func (a *deleteAll) endIfDone() {
	if a.over && a.left == 0 {
		close(a.done)
	}
}

func openDeleteAll(_ string, value []byte) (*sweep, error) {
	a := &deleteAll{done: make(chan struct{})}
	if err := json.Unmarshal(value, a); err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	return a.sweep(), nil
}
