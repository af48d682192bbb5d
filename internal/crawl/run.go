package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// Summary is what a Run came to.
type Summary struct {
	Status    Status
	Postponed []Postponed // hosts with URLs that could not be asked, most first
	Stopped   bool        // asked to stop before it was done
	Fresh     bool        // at least one request was made or one URL added
	Seeds     SeedReport
}

// maxPendingBytes is how many bytes of output may gather for the next commit before dispatching pauses.
const maxPendingBytes = 32 << 20

// sweepEvery is how often forgotten addresses are dropped.
const sweepEvery = time.Minute

// ErrNothing says that there is nothing to crawl.
var ErrNothing = errors.New("there is nothing to crawl: the frontier is empty and no seed is given; add URLs to crawl.seeds or crawl.seeds_file in the config file, or name them on the command line")

// run is the state of the dispatcher.
type run struct {
	*Engine
	f       *frontier.Frontier
	parsers parsers
	vias    vias
	bodies  bodies

	leases    chan *result
	results   chan *result
	toCommit  chan *job
	committed chan *job
	toLoad    chan []frontier.LoadRequest
	loaded    chan *load
	toSweep   chan *sweep
	swept     chan *swept
	stalls    chan error
	desk      *desk
	alarm     alarm
	maxRate   maxRate

	pending    *job // gathers for the next commit
	spare      *job // to be used again; nil: none
	gathering  gathering
	portion    storage.Portion    // how much may gather for the next commit before dispatching pauses
	committing bool               // a job is with the committer
	stallCheck <-chan time.Time   // the next look for requests that keep others waiting; nil: none is planned
	settled    uint64             // ledger place of the last job that was handed over
	adding     *addition          // waits for a commit of its own
	addedLast  bool               // the last job handed over was an addition
	flights    map[uint64]*flight // by lease
	busy       int                // workers with a lease
	lookups    int                // of names, under way
	pages      int                // page leases out
	unsettled  int                // pages fetched and not yet committed
	loads      []frontier.LoadRequest
	loading    int
	sweeps     []*sweep // not handed to the sweeper yet
	sweeping   int      // with the sweeper
	retries    uint64   // marks of retries so far
	noCommit   error    // why the committer cannot write; it tries again by itself
	noStart    error    // why the ledger could not be written; the next lease tries again
	noStartAt  time.Time
	draining   bool

	running *sync.WaitGroup // goroutines
	working context.Context // of the workers
	naming  context.Context // of the lookups
	workers int             // started; those beyond Live.Workers are idle
	winding bool            // the operator wants it to end when all is done
	stopped bool            // by the operator

	pausedSince time.Time // by the operator; zero: it is not
	state       string    // as last reported
	stateSince  time.Time
	failed      error
	torn        bool // a commit failed for good
	unnamed     bool // an output file could not get its name; the committer's
	started     time.Time
	meter       meter
	surveyor    surveyor
}

// Run crawls until everything is done, or until ctx ends: then it lets what is
// in flight finish within Options.ShutdownGrace, commits and returns. Seeds that
// are known already cost nothing. An error means that it could not go on; what
// was committed is safe.
func (e *Engine) Run(ctx context.Context, seeds []Seed) (Summary, error) {
	scope, fresh, err := e.initialScope(seeds)
	if err != nil {
		return Summary{}, err
	}
	e.scope.Store(scope)
	before := e.store.Counters()
	if err := e.reconsider(ctx); err != nil {
		return e.unbegun(ctx, err)
	}
	if err := e.addSeeds(ctx, seeds, fresh); err != nil {
		return e.unbegun(ctx, err)
	}
	if e.store.Counters().URLs == 0 {
		if e.force.Load().ExitWhenDone {
			return Summary{}, ErrNothing
		}
		e.log.Info("the frontier is empty: the crawl waits for URLs (amble import, POST /api/v1/urls)")
	}
	f, err := e.newFrontier(ctx, scope)
	if err != nil {
		return e.unbegun(ctx, fmt.Errorf("read the hosts of %s: %w", e.o.DataDir, err))
	}
	r := &run{
		Engine: e, f: f, parsers: newParsers(), started: e.now(), pending: newJob(), flights: make(map[uint64]*flight),
		leases: make(chan *result), results: make(chan *result, e.o.Workers),
		toCommit: make(chan *job), committed: make(chan *job, 1),
		toLoad: make(chan []frontier.LoadRequest), loaded: make(chan *load, 1),
		toSweep: make(chan *sweep), swept: make(chan *swept), stalls: make(chan error, 1),
		desk: newDesk(), settled: e.ledger.Place(), maxRate: newMaxRate(e.force.Load().MaxRate),
	}
	if err := errors.Join(r.openSweeps(), r.openPause()); err != nil {
		return Summary{}, err
	}
	if r.alarm, err = e.newAlarm(); err != nil {
		return Summary{}, err
	}
	e.desk.Store(r.desk)
	err = r.run(ctx)
	after := e.store.Counters()
	s := r.summary(ctx)
	if err == nil {
		s.Seeds, err = r.seedReport(seeds, s.Postponed)
	}
	s.Fresh = after.Requests != before.Requests || after.URLs != before.URLs
	return s, err
}

// unbegun is the end of a Run that did not come to its first request: stopped
// is no error.
func (e *Engine) unbegun(ctx context.Context, err error) (Summary, error) {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return Summary{Status: e.Status(), Stopped: true}, nil
	}
	return Summary{}, err
}

// run starts the goroutines, dispatches, and waits until all have ended.
func (r *run) run(ctx context.Context) error {
	work, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	walk, stopWalk := context.WithCancel(work) // of what a crawl that ends does not wait for
	defer stopWalk()
	var wg sync.WaitGroup
	r.running, r.working, r.naming = &wg, work, walk
	r.grow()
	wg.Go(func() { r.commitAll(work) })
	wg.Go(func() { r.loadAll() })
	wg.Go(func() { r.sweepAll(walk) })
	wg.Go(r.alarm.watch)

	r.dispatch(ctx)
	r.closeDesk()
	stopWalk()
	grace := r.force.Load().ShutdownGrace
	if r.failed != nil {
		grace = 0
	}
	defer time.AfterFunc(grace, breakOff).Stop()
	r.drain()
	r.flush()
	r.pending.answerOrders(ErrNotRunning) // of a job that no commit took
	close(r.leases)
	close(r.toCommit)
	close(r.toLoad)
	close(r.toSweep)
	if err := r.alarm.close(); err != nil {
		r.log.Warn("cannot close the timer", "error", err)
	}
	wg.Wait()
	if err := r.pending.close(); err != nil { // what could not be committed
		r.log.Warn("cannot close what was not written", "error", err)
	}
	r.pending.answerDrops(ErrNotRunning)
	r.report("finished")
	return r.failed
}

// dispatch is the loop of the dispatcher: hand out what is due, wait for
// whatever happens next, apply it.
func (r *run) dispatch(ctx context.Context) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	r.beginSurvey(r.now())
	for r.failed == nil && !r.stopped && ctx.Err() == nil {
		r.handOut()
		if r.done() {
			return
		}
		r.arm()
		toCommit, next := r.nextJob()
		toLoad, wants := r.nextLoads()
		toSweep, sweep := r.nextSweep()
		swept := r.swept
		if r.pending.size > r.portion.Items()/2 {
			swept = nil // the sweep goes no faster than the committer, and leaves room for what the crawl itself brings
		}
		select {
		case <-ctx.Done():
			return
		case <-r.alarm.rings():
			r.alarm.rang()
		case <-second.C:
			r.everySecond()
		case <-r.stallCheck:
			r.breakOffStalled(r.now())
		case res := <-r.results:
			r.complete(res)
		case toCommit <- next:
			r.handedToCommitter(next)
		case j := <-r.committed:
			r.applied(j)
		case <-r.gathering.over:
			r.gathering.end()
		case err := <-r.stalls:
			r.stall(&r.noCommit, err)
		case toLoad <- wants:
			r.loading += len(wants)
			r.loads = nil
		case l := <-r.loaded:
			r.takeLoad(l)
		case toSweep <- sweep:
			r.sweeps, r.sweeping = r.sweeps[1:], r.sweeping+1
		case p := <-swept:
			r.takeSwept(p)
		case r.adding = <-r.additions():
		case q := <-r.desk.looks:
			r.look(q)
		case q := <-r.desk.drops:
			r.drop(q)
		case o := <-r.desk.orders:
			r.follow(o)
		case <-r.surveyor.onward:
			r.surveyHosts()
		case c := <-r.desk.changes:
			r.change(c)
		case q := <-r.desk.steers:
			r.steer(q)
		}
	}
}

// arm sets the alarm to the next instant at which a host may be asked and maxRate allows a request.
func (r *run) arm() {
	var err error
	if at, ok := r.f.NextWake(); ok && !r.paused() && r.busy < r.force.Load().Workers {
		if at.Before(r.maxRate.next) {
			at = r.maxRate.next
		}
		err = r.alarm.set(at)
	} else {
		err = r.alarm.stop()
	}
	if err != nil {
		r.fail(fmt.Errorf("set the timer of the next request: %w", err))
	}
}

// paused reports whether nothing may be handed out at the moment.
func (r *run) paused() bool {
	return !r.pausedSince.IsZero() || r.noCommit != nil || r.pending.bytes > maxPendingBytes || r.noStart != nil && time.Since(r.noStartAt) < retryFull || r.pending.size > r.portion.Items() || r.full()
}

// full reports whether max_pages is reached, counting the pages in flight.
func (r *run) full() bool {
	most := r.force.Load().MaxPages
	return most > 0 && r.store.Counters().Of(storage.Fetched)+uint64(r.pages+r.unsettled) >= most
}

// handOut gives leases to idle workers for as long as hosts are due, and has names looked up.
func (r *run) handOut() {
	r.lookUpNames()
	defer r.lookUpNames() // of hosts whose turn came
	for r.busy < r.force.Load().Workers && !r.paused() {
		now := r.now()
		l, ok := r.nextLease(now)
		r.collect()
		if !ok {
			return
		}
		place, entered := r.enter(l, now)
		if !entered {
			continue
		}
		r.maxRate.took(now)
		r.busy++
		if l.Kind == frontier.Page {
			r.pages++
		}
		r.takeOff(&l, place)
	}
	r.maxRate.idle(r.now())
}

// enter writes the start of a request into the ledger, and returns its place there.
func (r *run) enter(l frontier.Lease, now time.Time) (place uint64, ok bool) {
	start := storage.Start{Host: l.HostName, Address: l.Address.String(), At: now, Delay: -1, Note: startNote(&l)}
	if l.Learned {
		start.Delay = l.Delay
	}
	place, err := r.ledger.Append(start)
	if err != nil {
		r.notSent(l, now)
		r.stall(&r.noStart, err)
		r.noStartAt = now
		return 0, false
	}
	r.unstall(&r.noStart)
	return place, true
}

// collect takes over what the frontier has for the store and the loader.
func (r *run) collect() {
	r.pending.merge(r.f.TakeBatch())
	r.loads = append(r.loads, r.f.TakeWants()...)
	r.addRechecks(r.f.TakeRechecks())
}

// done reports whether the crawl is over.
func (r *run) done() bool {
	if r.busy+r.lookups > 0 || r.committing || r.adding != nil || !r.pending.batch.Empty() || r.loading+len(r.loads)+r.sweeping+len(r.sweeps) > 0 {
		return false
	}
	return r.full() || r.ends() && r.f.Finished(r.now(), r.force.Load().GiveUpAfter)
}

func (r *run) everySecond() {
	now := r.now()
	r.meter.tick(now, r.tally.load())
	r.report("running")
	if now.Sub(r.started)%sweepEvery < time.Second {
		r.f.Sweep(now)
	}
}
