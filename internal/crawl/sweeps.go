package crawl

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/storage"
)

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

// isUnplanned reports whether a host has pages that were fetched by a run without a recrawl plan.
func isUnplanned(h *storage.Host) bool {
	planned, _ := h.Renewing()
	return h.Of(storage.Fetched) > planned
}

// newAdoption returns the sweep that plans the recrawl of a host's pages that have none planned.
// Their first recrawls are spread over the time that one recrawl of each page takes.
func (d *dispatcher) newAdoption(id storage.HostID) *sweep {
	s := &sweep{
		mark: fmt.Sprintf("%s%d", markAdopt, id), host: id, when: storage.In(storage.Fetched), below: unbounded,
	}
	store, plan, rule := d.store, d.plan, &d.o.Renew.Rule
	s.ready = func() (decision, error) {
		host, err := store.HostByID(id)
		spread := adoptionTime(plan, rule, store.Counters().Of(storage.Fetched))
		return func(h *storage.Head, now time.Time) (storage.Outcome, bool) {
			page := revisit.Page{Host: host.Name, RequestURI: h.RequestURI}
			if !h.Last.Due.IsZero() || h.Last.History != (revisit.History{}) || !plan.Plans(&page) {
				return storage.Outcome{}, false
			}
			const parts = 1009 // a prime, so that neighbours come far apart
			o := h.Last
			o.Due = now.Add(spread * time.Duration((int(id)*31+int(h.Ordinal)*397)%parts) / parts)
			return o, true
		}, err
	}
	return s
}

// adoptionTime returns how long one recrawl of each page takes.
func adoptionTime(plan *revisit.Plan, rule *revisit.Rule, pages uint64) time.Duration {
	spread := rule.Interval
	if budget := plan.Budget(); budget > 0 {
		days := float64(pages) / budget
		spread = max(spread, time.Duration(days*float64(24*time.Hour)))
	}
	return min(max(spread, rule.Min), rule.Max)
}
