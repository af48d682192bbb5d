package crawl

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/recrawl"
	"github.com/amble-crawler/amble/storage"
)

// sweepEvery is how often forgotten addresses are dropped.
const sweepEvery = time.Minute

// dispatcherStore is what the dispatcher reads itself: a few rows at a time.
type dispatcherStore interface {
	retryStore
	rulesStore
	Counters() storage.Counters
	Mark(name string) ([]byte, error)
	Marks(prefix string) (map[string][]byte, error)
}

// ledger is what the dispatcher needs of the start ledger.
type ledger interface {
	Append(storage.Start) (offset uint64, err error)
	AppendWait(storage.Wait) error
	AppendEnd(time.Time) error
	Offset() uint64
	Trim(committed uint64) error
	Close() error
}

// connections is what the dispatcher needs of the client.
type connections interface {
	IsSlow(p *fetch.Progress, lasts, patience time.Duration) bool
	CloseIdle() bool
	SetBandwidth(all int64, ofHost func(host string) int64)
}

// dispatcher owns the frontier, the start ledger and the request log. It gives leases to idle
// workers, gathers the results for the committer, and serves the mailbox. Run's goroutine drives it
// and is the only one that touches it.
type dispatcher struct {
	// Shared with others: immutable, or safe for concurrent use.
	o           *Options
	log         *slog.Logger
	store       dispatcherStore
	live        *atomic.Pointer[inForce]
	scope       *atomic.Pointer[frontier.Scope]
	tally       *tally
	connections connections
	bodies      *bodies
	space       *diskSpace
	rules       *rulesReader
	plan        *recrawl.Plan // of recrawls; nil: there are none
	mailbox     *mailbox
	publish     func(Status)

	// The ends of its channels. Those to the committer, the loader and the sweeper are unbuffered,
	// and used in the select of its loops only.
	leases    chan<- *result // unbuffered; a worker is idle whenever something is sent
	results   <-chan *result // holds one of each worker
	toCommit  chan<- *batch
	committed <-chan *batch // holds one
	stalls    <-chan error  // holds one: why the committer or a worker cannot write
	toLoad    chan<- []frontier.LoadRequest
	loaded    <-chan *load // holds one
	toSweep   chan<- *sweep
	swept     <-chan *swept

	// Starting goroutines.
	startWorker func()
	startLookup func(*result)
	working     context.Context // of requests
	naming      context.Context // of lookups

	// Its own.
	f        *frontier.Frontier
	ledger   ledger
	requests *requestLog
	timer    *time.Timer // rings when the next thing is due
	maxRate  maxRate
	batching
	flights  flights
	workers  int // started; those beyond Live.Workers are idle
	busy     int // workers with a lease
	lookups  int // of names, in flight
	pages    int // page leases in flight
	loads    []frontier.LoadRequest
	loading  int // requests with the loader
	sweeps   sweepQueue
	settings settingValues // those in the database
	seeds    int           // that the scope was made of at the start
	suspects bool          // the database has a mark of URLs that were in flight at deaths

	draining     bool      // by the operator: the crawl ends when all is done
	stopped      bool      // by the operator
	shuttingDown bool      // no request begins any more
	pausedSince  time.Time // by the operator; zero: it is not
	noCommit     error     // why nothing can be committed; the committer tries again by itself
	noStart      error     // why the ledger cannot be written; the next lease tries again
	noStartAt    time.Time
	failed       error // the end of the crawl
	reporter
	surveyor surveyor
}

// dispatch is the loop of the dispatcher: give out what is due, wait for whatever happens next,
// apply it. It returns when the crawl is done, stopped or failed.
func (d *dispatcher) dispatch(ctx context.Context) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	defer d.timer.Stop()
	d.beginSurvey(d.o.Now())
	for d.failed == nil && !d.stopped && ctx.Err() == nil {
		d.handOut()
		if d.isDone() {
			return
		}
		d.setTimer()
		toCommit, batch := d.nextBatch()
		toLoad, loads := d.nextLoads()
		toSweep, sweep := d.nextSweep()
		select {
		case <-ctx.Done():
			return
		case <-d.timer.C:
			d.timeIs(d.o.Now())
		case <-second.C:
			d.everySecond()
		case res := <-d.results:
			d.complete(res)
		case toCommit <- batch:
			d.handedOver(batch)
		case b := <-d.committed:
			d.takeCommitted(b)
		case err := <-d.stalls:
			d.stall(&d.noCommit, err)
		case toLoad <- loads:
			d.loading, d.loads = d.loading+len(loads), nil
		case l := <-d.loaded:
			d.takeLoad(l)
		case toSweep <- sweep:
			d.sweeps.handedOver()
		case page := <-d.sweepPages():
			d.takeSwept(page)
		case d.addition = <-d.additions():
		case call := <-d.mailbox.calls:
			call(d)
		case <-d.surveyor.onward:
			d.continueSurvey()
		}
	}
}

// shutDown takes no more from outside, lets what is in flight end, and commits all there is. If the
// disk stays full, what is not committed is given up; those requests are made again.
func (d *dispatcher) shutDown() {
	d.shuttingDown = true
	d.space.useReserve()
	d.report("stopping")
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for d.busy+d.lookups+d.loading > 0 || d.committing || !d.pending.isEmpty() && !d.broken {
		toCommit, batch := d.nextBatch()
		select {
		case res := <-d.results:
			d.complete(res)
		case toCommit <- batch:
			d.handedOver(batch)
		case b := <-d.committed:
			d.takeCommitted(b)
		case err := <-d.stalls:
			d.stall(&d.noCommit, err)
		case l := <-d.loaded:
			d.takeLoad(l)
		case <-second.C:
			d.report("stopping")
		}
	}
	d.pending.answer(ErrNotRunning) // no commit took it
	close(d.leases)
	close(d.toCommit)
	close(d.toLoad)
	close(d.toSweep)
}

// closeMailbox turns away whoever comes now, and the addition that no commit has taken.
func (d *dispatcher) closeMailbox() {
	close(d.mailbox.closed)
	if d.addition != nil {
		d.addition.answer <- added{err: ErrNotRunning}
		d.addition = nil
	}
}

// finish gives back what no commit took, when all other goroutines have ended.
func (d *dispatcher) finish() error {
	if err := d.pending.close(); err != nil {
		d.log.Warn("cannot close what was not written", "error", err)
	}
	d.report("finished")
	return d.failed
}

// setTimer sets the timer to the next instant at which something is due. A request is never early
// by it: the timer rings at its instant or after it, and the frontier decides by the clock.
func (d *dispatcher) setTimer() {
	at := earliest(d.flights.checkAt, d.pauseEnd)
	if next, ok := d.f.NextWake(); ok && !d.isPaused() && d.busy < d.live.Load().Workers {
		if next.Before(d.maxRate.next) {
			next = d.maxRate.next
		}
		at = earliest(at, next)
	}
	if at.IsZero() {
		d.timer.Stop()
	} else {
		d.timer.Reset(time.Until(at))
	}
}

// earliest returns the earlier of two instants; zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// timeIs does what is due, except for requests: those are given out whatever rang.
func (d *dispatcher) timeIs(now time.Time) {
	if !d.pauseEnd.IsZero() && !now.Before(d.pauseEnd) {
		d.pauseEnd = time.Time{}
	}
	if at := d.flights.checkAt; !at.IsZero() && !now.Before(at) {
		d.breakOffStalled(now)
	}
}

func (d *dispatcher) everySecond() {
	now := d.o.Now()
	d.meter.tick(now, d.tally.load())
	d.report("running")
	if now.Sub(d.started)%sweepEvery < time.Second {
		d.f.Sweep(now)
	}
}

// handOut gives leases to idle workers for as long as hosts are due, and has names looked up.
func (d *dispatcher) handOut() {
	d.lookUpNames()
	defer d.lookUpNames() // of hosts whose turn came
	for d.busy < d.live.Load().Workers && !d.isPaused() {
		now := d.o.Now()
		l, ok := d.nextLease(now)
		d.collect()
		if !ok {
			return
		}
		offset, entered := d.enter(&l, now)
		if !entered {
			continue
		}
		d.maxRate.took(&l, now)
		d.busy++
		if l.Kind == frontier.Page {
			d.pages++
		}
		res := &result{lease: l}
		d.flights.add(d.working, res, offset, now)
		d.leases <- res
	}
	d.maxRate.idle(d.o.Now())
}

// enter writes the start of a request into the ledger, and returns its offset there. A match makes
// no request, and has the offset of the next one.
func (d *dispatcher) enter(l *frontier.Lease, now time.Time) (offset uint64, ok bool) {
	if l.Kind == frontier.Match {
		return d.ledger.Offset(), true
	}
	start := storage.Start{
		Host: l.HostName, Address: l.Address.String(), At: now, Delay: -1, Note: startNote(l),
	}
	if l.Learned {
		start.Delay = l.Delay
	}
	offset, err := d.ledger.Append(start)
	if err != nil {
		d.notSent(l, now)
		d.stall(&d.noStart, err)
		d.noStartAt = now
		return 0, false
	}
	d.unstall(&d.noStart)
	return offset, true
}

// lookUpNames begins the lookups that are due, each in a goroutine of its own: name servers take
// longest to say that there is no such name, and no worker waits for that.
func (d *dispatcher) lookUpNames() {
	for !d.isPaused() {
		l, ok := d.f.NextName(d.o.Now())
		if !ok {
			return
		}
		d.lookups++
		d.startLookup(&result{lease: l, flight: flight{ctx: d.naming}})
	}
}

// startWorkers starts the workers that are missing. Those that are too many wait for leases that do
// not come.
func (d *dispatcher) startWorkers() {
	for ; d.workers < d.live.Load().Workers; d.workers++ {
		d.startWorker()
	}
}

// collect takes over what the frontier has for the store, the loader and the sweeper.
func (d *dispatcher) collect() {
	d.pending.merge(d.f.TakeBatch())
	d.loads = append(d.loads, d.f.TakeWants()...)
	for _, r := range d.f.TakeRechecks() {
		d.addSweep(newRecheck(d.rules, r))
	}
}

// isPaused reports whether nothing may be given out at the moment.
func (d *dispatcher) isPaused() bool {
	return !d.pausedSince.IsZero() || d.noCommit != nil || d.batching.isFull() ||
		d.noStart != nil && time.Since(d.noStartAt) < retryFull || d.hasMaxPages()
}

// hasMaxPages reports whether max_pages is reached, counting the pages in flight.
func (d *dispatcher) hasMaxPages() bool {
	most := d.live.Load().MaxPages
	return most > 0 && d.store.Counters().Of(storage.Fetched)+uint64(d.pages+d.uncommitted) >= most
}

// isDone reports whether the crawl is over.
func (d *dispatcher) isDone() bool {
	if d.busy+d.lookups > 0 || d.committing || d.addition != nil || !d.pending.rows.Empty() ||
		d.loading+len(d.loads) > 0 || d.sweeps.isActive() {
		return false
	}
	return d.hasMaxPages() || d.endsWhenDone() && d.f.Finished(d.o.Now(), d.live.Load().GiveUpAfter)
}

// fail ends the crawl; the first error counts.
func (d *dispatcher) fail(err error) {
	if d.failed == nil {
		d.failed = err
	}
}
