package crawl

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// sweep is a walk over the URLs of one host in the background, which changes what becomes of some of them; or a step of a retry, over all
// hosts. How far it has come is a mark in the store, so that a restart goes on from there.
type sweep struct {
	mark   string
	host   storage.HostID
	when   storage.States // those whose outcome it may change
	from   uint32         // where it goes on
	below  uint32         // where it ends
	decide decision       // nil: to be got from ready
	ready  func() (decision, error)
	over   func(now time.Time) // told the dispatcher when the end is on disk; nil: nobody
	retry  *retry              // in place of host, when, from, below, decide and ready; nil: it is none
}

// decision is what is to become of a URL; false: nothing.
type decision func(*storage.Head, time.Time) (storage.Outcome, bool)

// unbounded is the end of a sweep that takes in URLs that are found meanwhile.
const unbounded = math.MaxUint32

// value is what the mark holds while the sweep goes on from an ordinal.
func (c *sweep) value(from uint32) []byte {
	if c.retry != nil {
		return c.retry.encode()
	}
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, from), c.below)
}

// setValue takes over what a mark holds.
func (c *sweep) setValue(b []byte) error {
	switch len(b) {
	case 4: // of a version that had no end in it
		c.from, c.below = binary.BigEndian.Uint32(b), unbounded
	case 8:
		c.from, c.below = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	default:
		return fmt.Errorf("mark %s: %w", c.mark, storage.ErrCorrupt)
	}
	return nil
}

// swept is what one page of a sweep found.
type swept struct {
	sweep *sweep
	done  []storage.Done
	next  uint32 // where the sweep goes on
	value []byte // of the mark, in place of next, of a retry
	end   bool
	err   error
}

// sweepPage is how many URLs of a host are looked at in one read.
const sweepPage = 1000

// openSweeps finds the sweeps that an earlier process did not finish.
func (r *run) openSweeps() error {
	if err := r.openRetries(); err != nil {
		return err
	}
	for prefix, open := range map[string]func(name string) (*sweep, error){
		markRecheck: r.openRecheck, markDrop: r.openDrop, markOffer: r.openOffer,
	} {
		marks, err := r.store.Marks(prefix)
		if err != nil {
			return err
		}
		for name, value := range marks {
			c, err := open(name)
			if err != nil {
				return fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
			}
			if err := c.setValue(value); err != nil {
				return err
			}
			if prefix == markDrop {
				r.f.Drop(c.host, c.below, r.now())
			}
			r.sweeps = append(r.sweeps, c)
		}
	}
	return nil
}

// addSweep begins a sweep, on disk too.
func (r *run) addSweep(c *sweep) {
	r.sweeps = append(r.sweeps, c)
	r.pending.setMark(c.mark, c.value(0))
}

// nextSweep is the channel and the sweep to offer to the sweeper.
func (r *run) nextSweep() (chan<- *sweep, *sweep) {
	if len(r.sweeps) == 0 && len(r.adoptions) > 0 && r.sweeping == 0 {
		r.sweeps = append(r.sweeps, r.newAdoption(r.adoptions[0]))
		r.adoptions = r.adoptions[1:]
	}
	if len(r.sweeps) == 0 {
		return nil, nil
	}
	return r.toSweep, r.sweeps[0]
}

// takeSwept takes in a page of a sweep.
func (r *run) takeSwept(p *swept) {
	if p.err != nil {
		r.fail(fmt.Errorf("change URLs of host %d: %w", p.sweep.host, p.err))
		return
	}
	r.pending.batch.Done = append(r.pending.batch.Done, p.done...)
	r.pending.size += len(p.done)
	if p.sweep.retry != nil {
		r.takeRetried(p)
		return
	}
	r.pending.setMark(p.sweep.mark, r.sweepMark(p))
	if p.end {
		r.sweeping--
		if p.sweep.over != nil {
			r.pending.swept = append(r.pending.swept, p.sweep)
		}
	}
}

// sweepMark is where a restart would have to go on: from the begin, where another
// sweep for the same cause waits.
func (r *run) sweepMark(p *swept) []byte {
	i := slices.IndexFunc(r.sweeps, func(c *sweep) bool { return c.mark == p.sweep.mark })
	switch {
	case i >= 0:
		return r.sweeps[i].value(0)
	case p.end:
		return nil
	}
	return p.sweep.value(p.next)
}

// endSweeps tells whose sweeps are on disk with a job.
func (j *job) endSweeps(now time.Time) {
	for _, c := range j.swept {
		c.over(now)
	}
}

// sweepAll is the sweeper: it makes one sweep after the other, and of a retry one step.
func (r *run) sweepAll(ctx context.Context) {
	for c := range r.toSweep {
		for end := false; !end; {
			page := r.sweepStep(ctx, c)
			if ctx.Err() != nil {
				return
			}
			end = page.end || page.err != nil || c.retry != nil
			select {
			case r.swept <- page:
			case <-ctx.Done():
				return
			}
		}
	}
}

// sweepStep makes the next step of a sweep.
func (r *run) sweepStep(ctx context.Context, c *sweep) *swept {
	if c.retry != nil {
		return r.retryStep(ctx, c)
	}
	return r.sweepPage(ctx, c)
}

// sweepPage decides about the URLs of one page. They are read first: a decision may take long.
func (r *run) sweepPage(ctx context.Context, c *sweep) *swept {
	page := &swept{sweep: c}
	if c.decide == nil {
		if c.decide, page.err = c.ready(); page.err != nil {
			return page
		}
	}
	now, wanted := r.now(), min(sweepPage, c.below-min(c.below, c.from))
	var heads []storage.Head
	page.next, page.err = r.store.URLs(c.host, c.from, int(wanted), func(h storage.Head) {
		if c.when.Has(h.Last.State) {
			heads = append(heads, h)
		}
	})
	for i := range heads {
		if ctx.Err() != nil {
			return page
		}
		h := &heads[i]
		if o, ok := r.decide(c, h, now); ok {
			page.done = append(page.done, storage.Done{Host: c.host, Ordinal: h.Ordinal, Origin: h.Origin, Priority: h.Priority, When: c.when, Outcome: o})
		}
	}
	page.end = page.next-c.from < sweepPage
	c.from = page.next
	return page
}

// decide asks a sweep about a URL. One at which it panics stays as it is.
func (r *run) decide(c *sweep, h *storage.Head, now time.Time) (o storage.Outcome, ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			r.log.Error("amble failed at a URL that it meant to change", "host", c.host, "ordinal", h.Ordinal, "panic",
				fmt.Sprint(cause), "stack", string(debug.Stack()))
			ok = false
		}
	}()
	return c.decide(h, now)
}
