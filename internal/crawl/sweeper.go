package crawl

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// sweep is a walk over the URLs of one host in the background, which changes the outcome of some; or
// a step of a retry, over all hosts. A mark in the database holds how far it has come, so that a
// restart goes on from there.
type sweep struct {
	mark   string
	host   storage.HostID
	when   storage.States // those whose outcome it may change
	from   uint32         // the ordinal at which it goes on
	below  uint32         // where it ends
	decide decision       // nil: to be got from ready
	ready  func() (decision, error)
	over   func(*frontier.Frontier, time.Time) // called when the end is on disk; nil: nothing to do
	retry  *retry                              // nil: it is none; else in place of host to ready
}

// decision returns the new outcome of a URL; false: it stays as it is.
type decision func(*storage.Head, time.Time) (storage.Outcome, bool)

// unbounded is the end of a sweep that takes in URLs found meanwhile.
const unbounded = math.MaxUint32

// value is what the mark holds while the sweep goes on from an ordinal.
func (s *sweep) value(from uint32) []byte {
	if s.retry != nil {
		return s.retry.encode()
	}
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, from), s.below)
}

// setValue takes over what a mark holds.
func (s *sweep) setValue(b []byte) error {
	switch len(b) {
	case 4: // of a version that had no end in it
		s.from, s.below = binary.BigEndian.Uint32(b), unbounded
	case 8:
		s.from, s.below = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	default:
		return fmt.Errorf("mark %s: %w", s.mark, storage.ErrCorrupt)
	}
	return nil
}

// swept is what one page of a sweep, or one step of a retry, found.
type swept struct {
	sweep *sweep
	done  []storage.Done
	next  uint32 // where the sweep goes on
	value []byte // of the mark, in place of next, of a retry
	end   bool
	err   error
}

// sweepPage is how many URLs of a host are read at a time.
const sweepPage = 1000

// sweeperStore is what the sweeper reads.
type sweeperStore interface {
	retryStore
	URLs(host storage.HostID, from uint32, most int, each func(storage.Head)) (next uint32, err error)
}

// sweeper makes the sweeps, one after the other. It changes nothing itself: the dispatcher commits
// what it finds.
type sweeper struct {
	store  sweeperStore
	log    *slog.Logger
	now    func() time.Time
	sweeps <-chan *sweep
	pages  chan<- *swept
}

// run makes sweeps until there are no more, or the context ends: a whole sweep at a time, and of a
// retry one step.
func (s *sweeper) run(ctx context.Context) {
	for c := range s.sweeps {
		for end := false; !end; {
			page := s.step(ctx, c)
			if ctx.Err() != nil {
				return
			}
			end = page.end || page.err != nil || c.retry != nil
			select {
			case s.pages <- page:
			case <-ctx.Done():
				return
			}
		}
	}
}

// step makes the next step of a sweep.
func (s *sweeper) step(ctx context.Context, c *sweep) *swept {
	if c.retry == nil {
		return s.page(ctx, c)
	}
	page := &swept{sweep: c}
	page.done, page.end, page.err = c.retry.step(ctx, s.store, s.now())
	page.value = c.retry.encode()
	return page
}

// page decides about the URLs of one page. They are read first: a decision may take long.
func (s *sweeper) page(ctx context.Context, c *sweep) *swept {
	page := &swept{sweep: c}
	if c.decide == nil {
		if c.decide, page.err = c.ready(); page.err != nil {
			return page
		}
	}
	now, wanted := s.now(), min(sweepPage, c.below-min(c.below, c.from))
	var heads []storage.Head
	page.next, page.err = s.store.URLs(c.host, c.from, int(wanted), func(h storage.Head) {
		if c.when.Has(h.Last.State) {
			heads = append(heads, h)
		}
	})
	for i := range heads {
		if ctx.Err() != nil {
			return page
		}
		h := &heads[i]
		if o, ok := s.decide(c, h, now); ok {
			page.done = append(page.done, storage.Done{
				Host: c.host, Ordinal: h.Ordinal, Origin: h.Origin, Priority: h.Priority, When: c.when, Outcome: o,
			})
		}
	}
	page.end = page.next-c.from < sweepPage
	c.from = page.next
	return page
}

// decide decides about a URL. One at which the decision panics stays as it is.
func (s *sweeper) decide(c *sweep, h *storage.Head, now time.Time) (o storage.Outcome, ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			s.log.Error("amble failed at a URL that it meant to change", "host", c.host, "ordinal", h.Ordinal,
				"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			ok = false
		}
	}()
	return c.decide(h, now)
}
