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
	Postponed []Postponed // hosts with URLs that could not be fetched, most first
	Stopped   bool        // stopped before it was done
	Fresh     bool        // at least one request was made or one URL added
	Seeds     SeedReport
}

// ErrNothing says that there is nothing to crawl.
var ErrNothing = errors.New("there is nothing to crawl: the frontier is empty and no seed is given; " +
	"add URLs to crawl.seeds or crawl.seeds_file in the config file, or name them on the command line")

// Run crawls until everything is done, or until ctx ends: then requests in flight may finish within
// Options.ShutdownGrace, and Run commits and returns. Seeds that are known already cost nothing. An
// error means that it could not go on; what was committed is safe.
func (e *Engine) Run(ctx context.Context, seeds []Seed) (Summary, error) {
	before := e.store.Counters()
	d, c, err := e.prepare(ctx, seeds)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return Summary{Status: e.Status(), Stopped: true}, nil
		}
		return Summary{}, err
	}
	e.mailbox.Store(d.mailbox)
	err = c.run(ctx, d)
	after := e.store.Counters()
	s := d.summary(ctx, e.Status)
	if err == nil {
		s.Seeds, err = seedReport(e.store, seeds, s.Postponed)
	}
	s.Fresh = after.Requests != before.Requests || after.URLs != before.URLs
	return s, err
}

// prepare does what comes before the first request: it fixes the scope, commits the seeds, reads the
// hosts, and makes the roles. The error is that of ctx if that has ended.
func (e *Engine) prepare(ctx context.Context, seeds []Seed) (*dispatcher, *crew, error) {
	scope, err := newInitialScope(e.store, &e.o, seeds)
	if err != nil {
		return nil, nil, err
	}
	e.scope.Store(scope.scope)
	kept, forgiven, err := e.reconsider(ctx, scope.seeds)
	if err != nil {
		return nil, nil, err
	}
	if err := e.addSeeds(ctx, seeds, scope.fresh); err != nil {
		return nil, nil, err
	}
	if e.store.Counters().URLs == 0 {
		if e.live.Load().ExitWhenDone {
			return nil, nil, ErrNothing
		}
		e.log.Info("the frontier is empty: the crawl waits for URLs (amble import, POST /api/v1/urls)")
	}
	f, adoptions, err := e.newFrontier(ctx, scope.scope)
	if err != nil {
		return nil, nil, fmt.Errorf("read the hosts of %s: %w", e.o.DataDir, err)
	}
	d, c := e.newCrew(f, forgiveness{forgiven, e.opened})
	d.settings, d.seeds, d.sweeps.adoptions = kept, scope.seeds, adoptions
	return d, c, errors.Join(d.restoreSweeps(), d.restorePause())
}

// newFrontier makes the frontier and gives it every host that the store knows. adoptions are the
// hosts with pages to put on the recrawl plan.
func (e *Engine) newFrontier(ctx context.Context, scope *frontier.Scope) (
	f *frontier.Frontier, adoptions []storage.HostID, err error,
) {
	fo := e.o.Frontier
	fo.OwedSince, fo.Known, fo.Workers = e.heldSince, e.knownName, e.live.Load().Workers
	if f, err = frontier.New(fo, scope, e.o.Now()); err != nil {
		return nil, nil, err
	}
	err = e.store.Hosts(func(h *storage.Host) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.Restore(h, e.o.Now()); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		if e.plan != nil && isUnplanned(h) {
			adoptions = append(adoptions, h.ID)
		}
		return nil
	})
	return f, adoptions, err
}

// crew is the roles of a run other than the dispatcher.
type crew struct {
	worker    *worker // of all goroutines that work
	committer *committer
	loader    *loader
	sweeper   *sweeper
}

// newCrew makes the roles and wires them to each other.
func (e *Engine) newCrew(f *frontier.Frontier, forgiven forgiveness) (*dispatcher, *crew) {
	leases, results := make(chan *result), make(chan *result, e.o.Workers)
	batches, committed := make(chan *batch), make(chan *batch, 1)
	requests, loads := make(chan []frontier.LoadRequest), make(chan *load, 1)
	sweeps, pages := make(chan *sweep), make(chan *swept)
	stalls := make(chan error, 1)
	m, rules, recent := newMailbox(), e.rulesReader(), new(bodies)

	d := &dispatcher{
		o: &e.o, log: e.log, store: e.store, live: &e.live, scope: &e.scope, tally: &e.tally,
		connections: e.client, bodies: recent, space: e.space, rules: rules, plan: e.plan, mailbox: m,
		publish: e.publish,
		leases:  leases, results: results, toCommit: batches, committed: committed, stalls: stalls,
		toLoad: requests, loaded: loads, toSweep: sweeps, swept: pages,
		f: f, ledger: e.ledger, requests: e.requests, timer: time.NewTimer(time.Hour),
		batching: batching{pending: new(batch), offset: e.ledger.Place()},
		flights:  flights{all: make(map[uint64]*flight)}, suspects: e.suspects,
		reporter: reporter{started: e.o.Now()}, surveyor: surveyor{table: e.table},
	}
	w := e.newWorker(recent)
	w.leases, w.results, w.stalls, w.mailbox = leases, results, stalls, m
	c := e.newCommitter()
	c.batches, c.committed, c.stalls = batches, committed, stalls
	return d, &crew{
		worker: w, committer: c,
		loader: &loader{
			store: e.store, log: e.log, rules: rules, forgiven: forgiven, requests: requests, loads: loads,
		},
		sweeper: &sweeper{store: e.store, log: e.log, now: e.o.Now, sweeps: sweeps, pages: pages},
	}
}

// run starts the goroutines, drives the dispatcher, and returns when all have ended.
func (c *crew) run(ctx context.Context, d *dispatcher) error {
	work, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	walk, stopWalk := context.WithCancel(work) // of what a crawl that ends does not wait for
	defer stopWalk()
	var wg sync.WaitGroup
	d.working, d.naming = work, walk
	d.startWorker = func() { wg.Go(c.worker.run) }
	d.startLookup = func(res *result) { wg.Go(func() { c.worker.lookUpName(res) }) }
	d.startWorkers()
	wg.Go(func() { c.committer.run(work) })
	wg.Go(c.loader.run)
	wg.Go(func() { c.sweeper.run(walk) })

	d.dispatch(ctx)
	d.enterEnd()
	d.closeMailbox()
	stopWalk()
	grace := d.live.Load().ShutdownGrace
	if d.failed != nil {
		grace = 0
	}
	defer time.AfterFunc(grace, breakOff).Stop()
	d.shutDown()
	wg.Wait()
	return d.finish()
}
