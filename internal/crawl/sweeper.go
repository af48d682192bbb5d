package crawl

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// sweep is a walk over the URLs of one host in the background, which changes the outcome of some;
// or a step of a retry, over all hosts. A mark in the database holds how far it has come, so that a
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

// The prefixes of the marks of sweeps.
const (
	markRecheck = "recheck/" // denied URLs of an origin and its new rules
	markDrop    = "drop/"    // the queue of a host that is dropped
	markOffer   = "offer/"   // URLs of a host at which another version crashed
	markAdopt   = "adopt/"   // fetched pages of a host that have no recrawl planned
	// markCrash is the prefix of the marks that hold, for a host with crashed URLs, the version of
	// amble that crashed last. No sweep is under way for these.
	markCrash = "crash/"
)

// crashMark returns the name of the mark of a host.
func crashMark(host storage.HostID) string { return fmt.Sprintf("%s%d", markCrash, host) }

// sweepQueue is the sweeps that are not done. The dispatcher owns it.
type sweepQueue struct {
	waiting   []*sweep
	active    int              // with the sweeper
	adoptions []storage.HostID // hosts with pages to put on the recrawl plan, when nothing else waits
	retries   uint64           // the number of the last retry
}

// isActive reports whether there are sweeps, other than adoptions that have not begun.
func (q *sweepQueue) isActive() bool { return q.active+len(q.waiting) > 0 }

// handedOver takes note that the sweeper has the first sweep.
func (q *sweepQueue) handedOver() { q.waiting, q.active = q.waiting[1:], q.active+1 }

// markAfter returns the value of the mark of a sweep after a page: where a restart goes on. That is
// the beginning if another sweep for the same cause waits.
func (q *sweepQueue) markAfter(p *swept) []byte {
	i := slices.IndexFunc(q.waiting, func(s *sweep) bool { return s.mark == p.sweep.mark })
	switch {
	case i >= 0:
		return q.waiting[i].value(0)
	case p.end:
		return nil
	}
	return p.sweep.value(p.next)
}

// addSweep begins a sweep, on disk too.
func (d *dispatcher) addSweep(s *sweep) {
	d.sweeps.waiting = append(d.sweeps.waiting, s)
	d.pending.setMark(s.mark, s.value(0))
}

// nextSweep returns the channel and the sweep to offer to the sweeper.
func (d *dispatcher) nextSweep() (chan<- *sweep, *sweep) {
	q := &d.sweeps
	if !q.isActive() && len(q.adoptions) > 0 {
		q.waiting = append(q.waiting, d.newAdoption(q.adoptions[0]))
		q.adoptions = q.adoptions[1:]
	}
	if len(q.waiting) == 0 {
		return nil, nil
	}
	return d.toSweep, q.waiting[0]
}

// sweepPages returns the channel of the sweeper's pages. It is nil while the next batch is half
// full: a sweep goes no faster than the committer, and leaves room for the crawl's own work.
func (d *dispatcher) sweepPages() <-chan *swept {
	if d.pending.size > d.batchSize.Items()/2 {
		return nil
	}
	return d.swept
}

// takeSwept applies a page of a sweep.
func (d *dispatcher) takeSwept(p *swept) {
	if p.err != nil {
		d.fail(fmt.Errorf("change URLs of host %d: %w", p.sweep.host, p.err))
		return
	}
	d.pending.rows.Done = append(d.pending.rows.Done, p.done...)
	d.pending.size += len(p.done)
	if p.sweep.retry != nil {
		d.takeRetried(p)
		return
	}
	d.pending.setMark(p.sweep.mark, d.sweeps.markAfter(p))
	if p.end {
		d.sweeps.active--
		if p.sweep.over != nil {
			d.pending.swept = append(d.pending.swept, p.sweep)
		}
	}
}

// restoreSweeps goes on with the sweeps that an earlier process did not finish.
func (d *dispatcher) restoreSweeps() error {
	if err := d.restoreRetries(); err != nil {
		return err
	}
	for prefix, open := range map[string]func(name string) (*sweep, error){
		markRecheck: d.openRecheck, markDrop: openDrop, markOffer: openOffer,
	} {
		marks, err := d.store.Marks(prefix)
		if err != nil {
			return err
		}
		for name, value := range marks {
			s, err := open(name)
			if err != nil {
				return fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
			}
			if err := s.setValue(value); err != nil {
				return err
			}
			if prefix == markDrop {
				d.f.Drop(s.host, s.below, d.o.Now())
			}
			d.sweeps.waiting = append(d.sweeps.waiting, s)
		}
	}
	return d.offerCrashes()
}

// newRecheck returns the sweep that applies the rules of an origin to its denied URLs: those that
// are allowed now are due at once.
func newRecheck(rules *rulesReader, r frontier.Recheck) *sweep {
	s := &sweep{
		mark: fmt.Sprintf("%s%d/%d", markRecheck, r.Host, r.Origin),
		host: r.Host, when: storage.In(storage.Denied), below: unbounded,
	}
	s.ready = func() (_ decision, err error) {
		if r.Rules == nil {
			r.Rules, err = rules.stored(r.Host, r.Origin)
		}
		return func(h *storage.Head, now time.Time) (storage.Outcome, bool) {
			allowed := h.Origin == r.Origin && r.Rules.Match(h.RequestURI).Allowed
			o := h.Last // with what is remembered of the page
			o.State, o.Reason, o.Line, o.Attempts = storage.Retrying, storage.ReasonRobots, 0, 0
			o.At, o.Due = now, now
			return o, allowed
		}, err
	}
	return s
}

// openRecheck returns the sweep of a mark.
func (d *dispatcher) openRecheck(name string) (*sweep, error) {
	var r frontier.Recheck
	if _, err := fmt.Sscanf(strings.TrimPrefix(name, markRecheck), "%d/%d", &r.Host, &r.Origin); err != nil {
		return nil, err
	}
	return newRecheck(d.rules, r), nil
}

// newDrop returns the sweep that drops the queue of a host.
func newDrop(host storage.HostID, below uint32) *sweep {
	s := &sweep{
		mark: fmt.Sprintf("%s%d", markDrop, host), host: host, when: frontier.DropMatters(), below: below,
	}
	s.decide = func(_ *storage.Head, now time.Time) (storage.Outcome, bool) {
		return frontier.DropOutcome(now), true
	}
	s.over = func(f *frontier.Frontier, now time.Time) { f.Dropped(host, s.below, now) }
	return s
}

// openDrop returns the sweep of a mark.
func openDrop(name string) (*sweep, error) {
	var host storage.HostID
	_, err := fmt.Sscanf(strings.TrimPrefix(name, markDrop), "%d", &host)
	return newDrop(host, 0), err
}

// offerCrashes queues the URLs again at which another version crashed.
func (d *dispatcher) offerCrashes() error {
	marks, err := d.store.Marks(markCrash)
	if err != nil {
		return err
	}
	for name, version := range marks {
		if string(version) == d.o.Version {
			continue
		}
		s, err := openOffer(markOffer + strings.TrimPrefix(name, markCrash))
		if err != nil {
			return fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
		}
		d.addSweep(s)
		d.pending.setMark(name, nil)
	}
	return nil
}

// openOffer returns the sweep of a mark. It makes the crashed URLs of a host due at once.
func openOffer(name string) (*sweep, error) {
	s := &sweep{mark: name, when: storage.In(storage.Failed), below: unbounded}
	if _, err := fmt.Sscanf(strings.TrimPrefix(name, markOffer), "%d", &s.host); err != nil {
		return nil, err
	}
	s.decide = func(h *storage.Head, now time.Time) (storage.Outcome, bool) {
		o := h.Last
		o.State, o.Attempts, o.At, o.Due = storage.Retrying, 0, now, now
		return o, h.Last.Reason == storage.ReasonCrash
	}
	return s, nil
}
