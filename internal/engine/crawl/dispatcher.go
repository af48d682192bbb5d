package crawl

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/bodies"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/gates"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/load"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/quota"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/maze"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/storage"
)

// sweepEvery is how often forgotten addresses are dropped.
const sweepEvery = time.Minute

// dispatcherStore is what the dispatcher reads itself: a few rows at a time.
type dispatcherStore interface {
	sweep.SourceStore
	Counters() storage.Counters
	load.RulesStore
	Mark(name string) ([]byte, error)
	Marks(prefix string) (map[string][]byte, error)
	MarkNames(prefix, after string, most int) ([]string, error)
}

// dispatcher gives leases to idle workers, gathers the results for the committer, and serves the mailbox. Run's
// goroutine drives it and is the only one that touches it. It consists of layers: what belongs to one is touched by
// this layer and those above it only.
//
//	gathering   takes what the frontier has for the store, the loader and the sweeper
//	exclusions  keeps opt-outs, and the settings that decide about URLs
//	permits     says whether requests may begin, and when the crawl is done
//	outcomes    takes what leases came to, into logs and commits
//	lender      lends URLs to fetchers outside of the process
type dispatcher struct {
	lender
	results <-chan workerEvent // holds two of each worker
	timer   *time.Timer        // rings when the next thing is due
}

// gathering is what takes over from the frontier, and the frontier itself.
type gathering struct {
	// Shared with others: immutable, or safe for concurrent use.
	o     *Options
	log   *slog.Logger
	store dispatcherStore
	live  *atomic.Pointer[inForce]
	scope *atomic.Pointer[frontier.Scope]

	f             *frontier.Frontier
	quota         *quota.Engine // of the process
	shared        *Shared
	gate          gates.Gate // nil: there is one engine
	phase                    // how far the run has come
	batching                 // what gathers for the next commit
	stall         disk.Stall // why nothing can be dispatched
	loads         load.Queue
	sweeps        sweepQueue
	robotsQueries robotsQueries
	mazes         *maze.Branches
}

// exclusions are what no request may be made for by command or by the scope.
type exclusions struct {
	gathering
	settings    *keptSettings // those that decide about URLs
	optOuts     optOuts       // all of them
	sharedScope sharedScope
}

// permits are what requests need to begin.
type permits struct {
	exclusions
	plan      *recrawl.Plan // of recrawls; nil: there are none
	flights   flights       // leases that workers have
	remote    remoteLeases
	keptDelay *time.Duration // of hosts, in place of that of the options; nil: clients have set none
}

// outcomes are what comes of leases: for the logs, the next commit and the status.
type outcomes struct {
	permits
	mailbox     *mailbox
	connections slowRequests
	bodies      *bodies.Recent
	space       *disk.Space
	ledger      startLedger // what begins
	requests    *requestLog // what has ended
	reporter                // the status, and the survey of all hosts
	suspects    bool        // the database has a mark of URLs that were in flight at deaths

	// Ends of channels. toCommit is unbuffered, and used in the select of the dispatcher's loops only.
	toCommit  chan<- *batch
	committed <-chan *batch // holds one
}

// dispatch is the loop of the dispatcher: give out what is due, wait for whatever happens next,
// apply it. It returns when the crawl is done, stopped or failed.
func (d *dispatcher) dispatch(ctx context.Context) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	defer d.timer.Stop()
	d.surveyor.Begin(d.postponedAfter())
	for d.goesOn() && ctx.Err() == nil {
		d.handOut()
		d.collect()
		if d.isDone() {
			d.end = cmp.Or(d.limit(), EndDone)
			return
		}
		d.setTimer()
		d.requests.Flush()
		toCommit, batch := d.nextBatch()
		toLoad, loads := d.loads.Next()
		toSweep, next := d.sweeps.next()
		select {
		case <-ctx.Done():
			return
		case <-d.timer.C:
			d.timeIs(d.o.Now())
		case <-second.C:
			d.everySecond()
		case e := <-d.results:
			d.takeResults(e)
		case toCommit <- batch:
			d.handedOver(batch)
		case b := <-d.committed:
			d.takeCommitted(b)
		case err := <-d.stall.Reports:
			d.fail(d.stall.CommitFailed(err))
		case toLoad <- loads:
			d.loads.HandedOver()
		case l := <-d.loads.Loaded:
			d.takeLoad(l)
		case toSweep <- next:
			d.sweeps.handedOver()
		case step := <-d.sweepSteps():
			d.takeStep(step)
		case a := <-d.additions(d.mailbox):
			d.takeAddition(a)
		case puts := <-d.putsFrom(d.mailbox):
			d.takePuts(puts)
		case call := <-d.mailbox.calls:
			call(d)
		case <-d.quota.Wake:
			d.mayBegin()
		case <-d.sharedScope.more:
			d.followSeeds()
		case <-d.surveyor.Onward():
			d.surveyor.Step(d.postponedAfter())
		}
	}
}

// shutDown takes no more from outside, lets what is in flight end, and commits all there is. If the
// disk stays full, what is not committed is given up; those requests are made again.
func (d *dispatcher) shutDown() {
	d.quota.Leave()
	d.enterEnd()
	d.refuseAll(d.mailbox)
	d.remote.refuseAll()
	d.shuttingDown = true
	d.space.UseReserve()
	d.report("stopping")
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for d.collect(); d.flights.count()+d.remote.Working()+d.loads.Active() > 0 || d.committing ||
		d.hasToCommit() && !d.broken; d.collect() {
		d.requests.Flush()
		toCommit, batch := d.nextBatch()
		select {
		case e := <-d.results:
			d.takeResults(e)
		case toCommit <- batch:
			d.handedOver(batch)
		case b := <-d.committed:
			d.takeCommitted(b)
		case err := <-d.stall.Reports:
			d.fail(d.stall.CommitFailed(err))
		case l := <-d.loads.Loaded:
			d.takeLoad(l)
		case <-second.C:
			d.report("stopping")
		}
	}
	d.pending.answer(ErrNotRunning) // no commit took it
	close(d.flights.leases)
	close(d.toCommit)
	d.loads.Close()
	close(d.sweeps.toSweep)
}

// finish gives back what no commit took, when all other goroutines have ended.
func (d *dispatcher) finish() error {
	d.leaveGate()
	if err := d.pending.close(); err != nil {
		d.log.Warn("cannot close what was not written", "error", err)
	}
	d.report("finished")
	return d.failed
}

// takeResults takes a result, and others that are there too: with many requests in flight those of workers that are
// ready to run, so that one turn of the loop, one write to the ledger and one to the log serve a group of them.
func (d *dispatcher) takeResults(e workerEvent) {
	if d.flights.busy > maxGroup/2 {
		runtime.Gosched()
	}
	e.apply(d)
	for range min(len(d.results), maxGroup) {
		(<-d.results).apply(d)
	}
}

// setTimer sets the timer to the next instant at which something is due. A request is never early
// by it: the timer rings at its instant or after it, and the frontier decides by the clock.
func (d *dispatcher) setTimer() {
	at := earliest(d.flights.checkAt, d.pauseEnd)
	if next, ok := d.f.NextWake(); ok && !d.isPaused() && d.flights.busy < d.live.Load().Workers {
		if next, ok = d.quota.Next(next); ok {
			at = earliest(at, next)
		}
	}
	at = earliest(at, d.remote.next(d.isPaused()))
	if at.IsZero() {
		d.timer.Stop()
	} else {
		d.timer.Reset(at.Sub(d.o.Now()))
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
	d.runOut(now)
	if at := d.flights.checkAt; !at.IsZero() && !now.Before(at) {
		d.flights.breakOffStalled(d.f, d.connections, d.isPaused(), now)
	}
}

// takeAddition takes an addition for the next commit, unless the crawl takes no URLs any more.
func (d *dispatcher) takeAddition(a *addition) {
	if a.user && d.mailbox.draining.Load() {
		a.answer <- lists.Added{Err: ErrDraining}
		return
	}
	d.addition = a
}

func (d *dispatcher) everySecond() {
	now := d.o.Now()
	d.meter.Tick(now, d.tally.Rates())
	d.endOptOuts(now)
	d.slow.Find(d.log, now)
	d.releasePages()
	d.report("running")
	if now.Sub(d.started)%sweepEvery < time.Second {
		d.f.Sweep(now)
	}
}

// collect takes over what the frontier has for the store, the loader and the sweeper. The dispatcher does so before it
// waits; who calls it earlier needs to see what there is.
func (g *gathering) collect() {
	g.pending.merge(g.f.TakeBatch())
	g.loads.Add(g.f.TakeWants(), g.f.ReadsPuts)
	for _, r := range g.f.TakeRechecks() {
		g.sweeps.addRecheck(r, g.pending)
	}
	g.addWalls(g.f.TakeWalls())
	g.crossShards()
}

// isPaused reports whether nothing may be given out at the moment.
func (pm *permits) isPaused() bool {
	return !pm.pausedSince.IsZero() || pm.stall.Holds(pm.o.Now) || pm.batching.isFull() || pm.limit() != "" ||
		pm.hasAllPages() || !pm.isPermitted()
}

// limit returns which limit of the crawl is reached, counting the pages in flight; empty: none.
func (pm *permits) limit() End {
	if most := pm.live.Load().MaxPages; most > 0 && pm.fetchedPages() >= most {
		return EndMaxPages
	}
	return pm.limits.Reached(pm.store.Counters().Bytes, pm.o.Now)
}

// fetchedPages counts the pages that are fetched, over all runs, and those in flight. Requisites do not count when they
// are fetched.
func (pm *permits) fetchedPages() uint64 {
	return pm.store.Counters().Pages() + uint64(pm.flights.pages+pm.uncommitted)
}

// isDone reports whether the crawl is over.
func (pm *permits) isDone() bool {
	if !pm.isQuiet() {
		return false
	}
	return pm.limit() != "" || pm.endsWhenDone() && pm.f.Finished(pm.o.Now(), pm.live.Load().GiveUpAfter)
}

// sweepSteps returns the channel of the sweeper's steps. It is nil while the next batch is half
// full: a sweep goes no faster than the committer, and leaves room for the crawl's own work.
func (g *gathering) sweepSteps() <-chan *sweep.Step {
	if g.pending.size > g.batchSize.Items()/2 {
		return nil
	}
	return g.sweeps.steps
}

// takeLoad applies what the loader read.
func (d *dispatcher) takeLoad(l *load.Result) {
	d.loads.Came(l.Load.Host.ID)
	if l.Err == nil {
		l.Err = d.f.Loaded(&l.Load, d.o.Now())
	} else {
		d.f.LoadFailed(l.Load.Host.ID, d.o.Now())
	}
	if l.Err != nil {
		d.fail(fmt.Errorf("read the queue of host %d: %w", l.Load.Host.ID, l.Err))
	}
	d.collect()
	d.loads.Forget()
	d.unpark()
}

// restore goes on with what an earlier process did not finish: sweeps, and the pause of the operator.
func (pm *permits) restore() error {
	if err := pm.restoreSweeps(); err != nil {
		return err
	}
	if err := pm.restoreOptOuts(); err != nil {
		return err
	}
	mark, err := pm.store.Mark(marks.Paused)
	if err == nil {
		err = pm.restorePause(mark)
	}
	if p := pm.o.Paused; err == nil && p != nil && *p == pm.pausedSince.IsZero() {
		pm.pending.setMark(marks.Paused, pm.pause(*p, pm.o.Now()))
	}
	if err == nil && !pm.pausedSince.IsZero() {
		pm.log.Warn("the crawl is paused: nothing is fetched until it is resumed", "since", pm.pausedSince)
	}
	return err
}

// enterEnd records that the process is shutting down: in the start ledger if something is in flight
// or uncommitted, and in the last commit if a death before had requests in flight.
func (oc *outcomes) enterEnd() {
	if oc.suspects {
		oc.pending.setMark(marks.Deaths, nil)
	}
	if oc.flights.busy == 0 && oc.pending.isEmpty() {
		return
	}
	if err := oc.ledger.AppendEnd(oc.o.Now()); err != nil {
		oc.log.Debug("cannot write that no more requests begin", "error", err)
	}
}
