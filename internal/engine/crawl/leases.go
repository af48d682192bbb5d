package crawl

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// maxRate limits the requests a second of the whole crawl, and those in flight: pages and robots.txt
// files, as they are handed to workers. The dispatcher owns it; what counts is in its share.
type maxRate struct {
	share *share
	next  time.Time // the earliest instant of the next request, as of the last one that had to wait

	scarce bool          // hosts were due when a request had to wait: requests are scarce, workers are not
	since  time.Time     // when a host that is due began to wait; zero: none does
	waited time.Duration // in which hosts were due and the limit held them
}

// validateMaxRate returns an error for what is no rate.
func validateMaxRate(perSecond float64) error {
	if !(perSecond >= 0) || math.IsInf(perSecond, 0) {
		return fmt.Errorf("crawl: MaxRate is %g, should be 0 (no limit) or more", perSecond)
	}
	return nil
}

// set puts other limits in force.
func (m *maxRate) set(l *Live, now time.Time) {
	m.share.change(l, now)
	*m = maxRate{share: m.share, waited: m.total(now)}
}

// allows reports whether a request may be handed out now, one of so many beyond those of workers, and
// notes when the next one may otherwise. The caller holds the lock of the share.
func (m *maxRate) allows(beyond int, now time.Time) bool {
	ok, next := m.share.admits(beyond, now)
	if !next.IsZero() {
		m.next = next
	}
	return ok
}

// took takes note of a lease that was handed out. A match makes no request. The caller holds the lock of the share.
func (m *maxRate) took(l *frontier.Lease, now time.Time) {
	if l.Kind != frontier.Match {
		m.share.of.rate.take(now)
	}
}

// hold takes note of whether hosts that are due wait for the limit.
func (m *maxRate) hold(held bool, now time.Time) {
	switch {
	case held && m.since.IsZero():
		m.since = now
	case !held && !m.since.IsZero():
		m.waited += now.Sub(m.since)
		m.since = time.Time{}
	}
}

// idle takes note that workers are what the crawl waits for, or that nothing may be handed out at all.
func (m *maxRate) idle(now time.Time) {
	m.scarce = false
	m.hold(false, now)
}

// total is for how long hosts that were due have waited for the limit.
func (m *maxRate) total(now time.Time) time.Duration {
	if m.since.IsZero() {
		return m.waited
	}
	return m.waited + now.Sub(m.since)
}

// nextLease takes the next request from the frontier, if the limits of the crawl allow one.
func (m *maxRate) nextLease(f *frontier.Frontier, now time.Time) (l frontier.Lease, ok bool) {
	m.share.lock()
	defer m.share.unlock()
	if !m.allows(0, now) {
		at, waits := f.NextWake()
		due := waits && !at.After(now)
		m.share.queue(due)
		m.scarce = due && !m.share.full
		m.hold(m.scarce, now)
		return l, false
	}
	m.share.queue(false)
	m.hold(false, now)
	if m.scarce {
		l, ok = f.NextInTurn(now)
	} else {
		l, ok = f.Next(now)
	}
	if m.scarce = m.scarce && ok; ok {
		m.share.begin()
		m.took(&l, now)
	}
	return l, ok
}

// stallCheckEvery is how often the dispatcher looks for requests that others should not wait for.
const stallCheckEvery = 250 * time.Millisecond

// flight is a lease while a worker has it.
type flight struct {
	offset   uint64 // in the start ledger
	progress fetch.Progress
	ctx      context.Context         // of the request and of all that is done with its response
	end      context.CancelCauseFunc // nil for a lookup
}

// flights are the leases that workers have, and those for names that are looked up. The dispatcher owns them.
type flights struct {
	leases      chan<- *result // unbuffered; a worker is idle whenever something is sent
	startWorker func()
	startLookup func(*lookup)
	working     context.Context // of requests
	naming      context.Context // of lookups

	entered []*result          // whose worker does not have them yet
	all     map[uint64]*flight // of workers, by lease
	checkAt time.Time          // the next look for stalled requests; zero: there are no requests
	workers int                // started; the others are idle
	busy    int                // workers with a lease
	lookups int                // of names
	pages   int                // page leases
}

// count is how many leases there are.
func (f *flights) count() int { return f.busy + f.lookups }

// enter makes a flight of a lease.
func (f *flights) enter(l *frontier.Lease, offset uint64, now time.Time) {
	f.busy++
	if l.Kind == frontier.Page {
		f.pages++
	}
	res := &result{lease: *l}
	f.add(res, offset, now)
	f.entered = append(f.entered, res)
}

// give gives a lease that was entered to an idle worker. It starts one if all have a lease.
func (f *flights) give(res *result) {
	if f.workers < f.busy {
		f.workers++
		f.startWorker()
	}
	f.leases <- res
}

// take takes a lease back that has ended.
func (f *flights) take(res *result) {
	if res.lease.Kind == frontier.Page {
		f.pages--
	}
	f.busy--
	f.remove(res)
}

// add starts a flight.
func (f *flights) add(res *result, offset uint64, now time.Time) {
	res.offset = offset
	res.ctx, res.end = context.WithCancelCause(f.working)
	f.all[res.lease.ID] = &res.flight
	if f.checkAt.IsZero() {
		f.checkAt = now.Add(stallCheckEvery)
	}
}

// remove ends a flight.
func (f *flights) remove(res *result) {
	delete(f.all, res.lease.ID)
	res.end(nil)
}

// completedOffset returns the offset in the ledger before which every request has ended, given that
// of the ledger's end.
func (f *flights) completedOffset(end uint64) uint64 {
	for _, fl := range f.all {
		end = min(end, fl.offset)
	}
	return end
}

// slowRequests is what tells requests that bring next to nothing.
type slowRequests interface {
	IsSlow(p *fetch.Progress, lasts, patience time.Duration) bool
}

// breakOffStalled breaks off requests that bring next to nothing while other hosts wait for a worker, and may get one.
func (f *flights) breakOffStalled(from *frontier.Frontier, slow slowRequests, paused bool, now time.Time) {
	f.checkAt = time.Time{}
	if len(f.all) == 0 {
		return
	}
	f.checkAt = now.Add(stallCheckEvery)
	if paused {
		return
	}
	isSlow := func(id uint64, lasts, stallTime time.Duration) bool {
		return slow.IsSlow(&f.all[id].progress, lasts, stallTime)
	}
	for _, id := range from.Stalled(now, isSlow) {
		f.all[id].end(fetch.ErrTooSlow)
	}
}

// handOut gives leases to idle workers for as long as hosts are due, and has names looked up.
func (d *dispatcher) handOut() {
	d.lookUpNames()
	defer d.lookUpNames() // of hosts whose turn came
	d.takeOptOuts()
	d.followBudget()
	d.lendPages()
	for d.flights.busy < d.live.Load().Workers && !d.isPaused() {
		now := d.o.Now()
		l, ok := d.maxRate.nextLease(d.f, now)
		d.collect()
		if !ok {
			d.depart(now)
			return
		}
		if d.enter(&l, now); len(d.flights.entered) == maxGroup {
			d.depart(now)
		}
	}
	d.depart(d.o.Now())
	d.share.leave()
	d.maxRate.idle(d.o.Now())
	d.wantPages()
}

// maxGroup is how many requests begin, and how many results are taken, one after the other: the ledger and the log get
// them in one write.
const maxGroup = 32

// enter makes the line of a request in the ledger. A match makes no request, and has the offset of the next one.
func (oc *outcomes) enter(l *frontier.Lease, now time.Time) {
	offset := oc.ledger.Offset()
	if l.Kind != frontier.Match {
		offset = oc.ledger.start(l, now)
	}
	oc.flights.enter(l, offset, now)
}

// depart gives workers the leases that were entered, when the ledger has them; false: it cannot be written. What ended
// before they begin is in the log first: after a kill an audit could take it for a request that was still in flight.
func (oc *outcomes) depart(now time.Time) bool {
	if len(oc.flights.entered) == 0 {
		return true
	}
	oc.requests.Flush()
	err := oc.ledger.Flush()
	for _, res := range oc.flights.entered {
		if err == nil || res.lease.Kind == frontier.Match {
			oc.flights.give(res)
			continue
		}
		oc.flights.take(res)
		oc.share.end()
		oc.notSent(&res.lease, now)
	}
	clear(oc.flights.entered)
	if oc.flights.entered = oc.flights.entered[:0]; err != nil {
		oc.fail(oc.stall.StartFailed(err, now))
		return false
	}
	oc.stall.Started()
	return true
}

// ending is what the dispatcher gets of a worker: the end of a lease, or before it that of its request alone.
type ending interface{ apply(*dispatcher) }

func (res *result) apply(d *dispatcher) { d.complete(res) }

// requestEnd is the end of the request of a page whose response is still being read. From then on the
// dispatcher owns the record of the request, and the worker the rest of the result.
type requestEnd struct {
	of  *result
	end frontier.RequestEnd
}

func (e *requestEnd) apply(d *dispatcher) {
	d.requestEnded(e.of, &e.end.Report)
	d.fail(d.f.EndRequest(e.of.lease.ID, e.end))
	d.collect()
}

// requestEnded takes what outlasts the process of a request that has ended: its record, and the wait
// that its host demands.
func (oc *outcomes) requestEnded(res *result, r *frontier.Report) {
	oc.logRequest(res, r)
	oc.fail(oc.ledger.wait(&res.lease, r))
}

// complete applies the result of a lease.
func (oc *outcomes) complete(res *result) {
	l := &res.lease
	if res.remote == nil {
		oc.flights.take(res)
		oc.share.end()
	} else {
		oc.endRemote(res)
		defer func() { oc.fail(oc.ledger.noteEnd(res)) }()
	}
	var err error
	switch l.Kind {
	case frontier.Robots:
		oc.requestEnded(res, &res.robots.Report)
		oc.addScopeSeeds(res)
		err = oc.f.CompleteRobots(l.ID, res.robots)
		oc.pending.add(res)
	case frontier.Visited:
		oc.requestEnded(res, &res.robots.Report)
		err = oc.f.CompleteRobots(l.ID, res.robots)
	case frontier.Page:
		err = oc.completePage(res)
	case frontier.Match:
		if res.match.Crashed {
			oc.markCrash(l.Host)
		}
		err = oc.f.CompleteMatch(l.ID, res.match)
	}
	if err != nil {
		oc.fail(fmt.Errorf("complete %s of %s: %w", l.Kind, l.URL, err))
	}
	oc.collect()
}

// logRequest logs the request of a result, with its report. Of clients that make their requests when
// they like there is nothing to log.
func (oc *outcomes) logRequest(res *result, r *frontier.Report) {
	if oc.o.IgnoreRobots {
		return
	}
	oc.requests.complete(res, r)
	oc.reporter.observe(res)
}

func (oc *outcomes) completePage(res *result) error {
	l := &res.lease
	if res.remote != nil && res.remote.lease.Overridden {
		oc.logRequest(res, &res.page.Report)
		return oc.completeOverridden(res)
	}
	if res.page.Outcome.State == storage.Fetched && !l.Head.IsRequisite() {
		oc.pending.pages++
		oc.uncommitted++
	}
	if !res.requestEnded {
		oc.requestEnded(res, &res.page.Report)
	}
	oc.addScopeSeeds(res)
	if res.page.Outcome.Reason == storage.ReasonCrash {
		oc.markCrash(l.Host)
	}
	res.page.OfWall = func() { oc.fail(res.dropOutput()) }
	err := oc.f.CompletePage(l.ID, res.page)
	oc.pending.add(res)
	if res.remote != nil && res.remote.committed != nil {
		oc.pending.waiting = append(oc.pending.waiting, res.remote.committed)
	}
	oc.bodies.Add(res.lease.URL.String(), res.payload)
	return err
}

// notSent ends a lease that never reached a worker.
func (g *gathering) notSent(l *frontier.Lease, now time.Time) {
	report := frontier.Report{End: now}
	var err error
	if l.Kind != frontier.Page {
		err = g.f.CompleteRobots(l.ID, frontier.RobotsReport{RequestEnd: frontier.RequestEnd{Report: report}})
	} else {
		err = g.f.CompletePage(l.ID, frontier.PageReport{RequestEnd: frontier.RequestEnd{Report: report}})
	}
	g.fail(err)
	g.collect()
}
