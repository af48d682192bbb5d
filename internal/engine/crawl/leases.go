package crawl

import (
	"context"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// stallCheckEvery is how often the dispatcher looks for requests that others should not wait for.
const stallCheckEvery = 250 * time.Millisecond

// flights are the leases that workers have, and those for names that are looked up. The dispatcher owns them.
type flights struct {
	leases      chan<- *work.Result // unbuffered; a worker is idle whenever something is sent
	startWorker func()
	startLookup func(*lookup)
	working     context.Context // of requests
	naming      context.Context // of lookups

	entered []*work.Result          // whose worker does not have them yet
	spare   []*work.Result          // empty, to be used again; each has a context that has not ended
	all     map[uint64]*work.Result // of workers, by lease
	checkAt time.Time               // the next look for stalled requests; zero: there are no requests
	workers int                     // started; the others are idle
	busy    int                     // workers with a lease
	lookups int                     // of names
	pages   int                     // page leases
}

// count is how many leases there are.
func (f *flights) count() int { return f.busy + f.lookups }

// enter makes a flight of a lease.
func (f *flights) enter(l *frontier.Lease, offset uint64, now time.Time) {
	f.busy++
	if l.Kind == frontier.Page {
		f.pages++
	}
	if len(f.spare) == 0 {
		res := new(work.Result)
		res.Ctx, res.End = context.WithCancelCause(f.working)
		f.spare = append(f.spare, res)
	}
	last := len(f.spare) - 1
	res := f.spare[last]
	f.spare = f.spare[:last]
	res.Lease, res.Offset = *l, offset
	f.all[l.ID] = res
	if f.checkAt.IsZero() {
		f.checkAt = now.Add(stallCheckEvery)
	}
	f.entered = append(f.entered, res)
}

// give gives a lease that was entered to an idle worker. It starts one if all have a lease.
func (f *flights) give(res *work.Result) {
	if f.workers < f.busy {
		f.workers++
		f.startWorker()
	}
	f.leases <- res
}

// take takes a lease back that has ended.
func (f *flights) take(res *work.Result) {
	if res.Lease.Kind == frontier.Page {
		f.pages--
	}
	f.busy--
	delete(f.all, res.Lease.ID)
}

// reuse takes a result whose lease was taken back, and which nobody reads any more.
func (f *flights) reuse(res *work.Result) {
	if ctx, end := res.Ctx, res.End; ctx.Err() == nil {
		*res = work.Result{}
		res.Ctx, res.End = ctx, end
		f.spare = append(f.spare, res)
	}
}

// completedOffset returns the offset in the ledger before which every request has ended, given that
// of the ledger's end.
func (f *flights) completedOffset(end uint64) uint64 {
	for _, fl := range f.all {
		end = min(end, fl.Offset)
	}
	return end
}

// slowRequests is what tells requests that bring next to nothing.
type slowRequests interface {
	IsSlow(p *fetch.Progress, lasts, stallTime time.Duration) bool
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
		return slow.IsSlow(&f.all[id].Progress, lasts, stallTime)
	}
	for _, id := range from.Stalled(now, isSlow) {
		f.all[id].End(fetch.ErrTooSlow)
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
		l, ok := d.quota.NextLease(d.f, now)
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
	d.quota.Leave()
	d.quota.Idle(d.o.Now())
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
		if err == nil || res.Lease.Kind == frontier.Match {
			oc.flights.give(res)
			continue
		}
		oc.flights.take(res)
		oc.quota.End()
		oc.notSent(&res.Lease, now)
		oc.flights.reuse(res)
	}
	clear(oc.flights.entered)
	if oc.flights.entered = oc.flights.entered[:0]; err != nil {
		oc.fail(oc.stall.StartFailed(err, now))
		return false
	}
	oc.stall.Started()
	return true
}

// workerEvent is what the dispatcher gets of a worker: the end of a lease, or before it that of its request alone.
type workerEvent interface{ apply(*dispatcher) }

// completion is the end of a lease.
type completion struct{ of *work.Result }

func (c completion) apply(d *dispatcher) {
	d.complete(c.of)
	d.flights.reuse(c.of)
}

// requestEnd is the end of the request of a page whose response is still being read. From then on the
// dispatcher owns the record of the request, and the worker the rest of the result.
type requestEnd struct {
	of  *work.Result
	end frontier.RequestEnd
}

func (e *requestEnd) apply(d *dispatcher) {
	d.requestEnded(e.of, &e.end.Report)
	d.fail(d.f.EndRequest(e.of.Lease.ID, e.end))
}

// requestEnded takes what outlasts the process of a request that has ended: its record, and the wait
// that its host demands.
func (oc *outcomes) requestEnded(res *work.Result, r *frontier.Report) {
	oc.logRequest(res, r)
	oc.fail(oc.ledger.wait(&res.Lease, r))
}

// complete applies the result of a lease.
func (oc *outcomes) complete(res *work.Result) {
	l := &res.Lease
	if res.Remote == nil {
		oc.flights.take(res)
		oc.quota.End()
	} else {
		defer oc.endRemote(res)()
	}
	var err error
	switch l.Kind {
	case frontier.Robots:
		oc.requestEnded(res, &res.Robots.Report)
		oc.addScopeSeeds(res)
		err = oc.f.CompleteRobots(l.ID, res.Robots)
		oc.pending.add(res)
	case frontier.Visited:
		oc.requestEnded(res, &res.Robots.Report)
		err = oc.f.CompleteRobots(l.ID, res.Robots)
	case frontier.Page:
		err = oc.completePage(res)
	case frontier.Match:
		if res.Match.Crashed {
			oc.markCrash(l.Host)
		}
		err = oc.f.CompleteMatch(l.ID, res.Match)
	}
	if err != nil {
		oc.fail(fmt.Errorf("complete %s of %s: %w", l.Kind, l.URL, err))
	}
}

// logRequest logs the request of a result, with its report. Of clients that make their requests when
// they like there is nothing to log.
func (oc *outcomes) logRequest(res *work.Result, r *frontier.Report) {
	if oc.o.IgnoreRobots {
		return
	}
	oc.requests.complete(res, r)
	oc.reporter.observe(res)
}

func (oc *outcomes) completePage(res *work.Result) error {
	l := &res.Lease
	if is, err := oc.completeOverridden(res); is {
		return err
	}
	if res.Page.Outcome.State == storage.Fetched && !l.Head.IsRequisite() {
		oc.pending.pages++
		oc.uncommitted++
	}
	if !res.RequestEnded {
		oc.requestEnded(res, &res.Page.Report)
	}
	oc.addScopeSeeds(res)
	if res.Page.Outcome.Reason == storage.ReasonCrash {
		oc.markCrash(l.Host)
	}
	res.Page.OfWall = func() { oc.fail(res.DropOutput()) }
	err := oc.f.CompletePage(l.ID, res.Page)
	oc.pending.add(res)
	if res.Committed != nil {
		oc.pending.waiting = append(oc.pending.waiting, res.Committed)
	}
	oc.bodies.Add(res.Lease.URL.String(), res.Payload)
	return err
}

// notSent ends a lease that never reached a worker.
func (g *gathering) notSent(l *frontier.Lease, now time.Time) {
	if end := (frontier.RequestEnd{Report: frontier.Report{End: now}}); l.Kind == frontier.Page {
		g.fail(g.f.CompletePage(l.ID, frontier.PageReport{RequestEnd: end}))
	} else {
		g.fail(g.f.CompleteRobots(l.ID, frontier.RobotsReport{RequestEnd: end}))
	}
}
