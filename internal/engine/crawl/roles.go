package crawl

import (
	"context"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/backup"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/ends"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/load"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/seedbook"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/survey"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/sweep"
)

// roles are those of a run other than the dispatcher.
type roles struct {
	workers        *workers
	committer      *committer
	loader         *load.Loader
	sweeper        *sweep.Sweeper
	incoming       *incoming     // nil: there is no journal
	backups        *backup.Maker // nil: there is no second copy
	restoreDomains func(context.Context) error
}

// newRoles makes the roles and wires them to each other.
func (e *Engine) newRoles(f *frontier.Frontier, forgiven load.Forgiveness) (*dispatcher, *roles) {
	leases, results := make(chan *work.Result), make(chan workerEvent, 2*e.o.Workers)
	batches, committed := make(chan *batch), make(chan *batch, 1)
	requests, loads := make(chan []frontier.LoadRequest), make(chan *load.Result, 1)
	sweeps, steps := make(chan *sweep.Sweep), make(chan *sweep.Step)
	stalls := make(chan error, 1)
	m, rules := newMailbox(), e.rulesReader()

	g := gathering{
		o: &e.o, log: e.log, store: e.store, live: &e.live, scope: &e.scope, f: f,
		quota: e.quota, shared: e.shared, gate: e.gate,
		phase:         phase{limits: ends.NewLimits(e.o.MaxBytes, e.o.MaxTime, e.o.Now())},
		batching:      batching{pending: new(batch), offset: e.ledger.Offset()},
		stall:         disk.Stall{Log: e.log, CloseIdle: e.shared.client.CloseIdle, Reports: stalls},
		loads:         load.NewQueue(requests, loads),
		mazes:         e.mazes,
		robotsQueries: robotsQueries{waiting: make(map[uint64]chan<- frontier.RobotsAnswer)},
		sweeps: sweepQueue{
			source:  sweep.Source{Store: e.store, Log: e.log, Rules: rules.Stored, Scope: e.scope.Load},
			toSweep: sweeps, steps: steps, encoder: e.encoder,
		},
	}
	p := permits{
		exclusions: exclusions{gathering: g}, plan: e.plan, keptDelay: e.keptDelay,
		flights: flights{leases: leases, all: make(map[uint64]*work.Result)},
	}
	d := &dispatcher{results: results, timer: time.NewTimer(time.Hour), lender: lender{outcomes{
		permits: p, mailbox: m, connections: e.shared.client, bodies: e.bodies, space: e.space,
		ledger: startLedger{e.ledger}, requests: e.requests, suspects: e.suspects,
		reporter: reporter{
			send: e.publish, tally: &e.tally, started: e.o.Now(),
			surveyor: survey.Surveyor{Frontier: f, Store: e.store, Now: e.o.Now, Table: e.table},
			dead:     seedbook.DeadFinder{Store: e.store, Owns: e.o.owns, Held: heldFor(f), Began: e.o.Now()},
		},
		toCommit: batches, committed: committed,
	}}}
	w := e.newWorkers(m, leases, results, stalls)
	wireLending(e, d, w)
	c := e.newCommitter()
	c.batches, c.committed, c.stalls = batches, committed, stalls
	return d, &roles{
		workers: w, committer: c, backups: e.newBackups(),
		restoreDomains: func(ctx context.Context) error { return e.domainHosts.Restore(ctx, e.store.Hosts) },
		loader: &load.Loader{
			Store: e.store, Log: e.log, Rules: rules, Forgiven: forgiven, Requests: requests, Loads: loads,
		},
		sweeper: &sweep.Sweeper{Store: e.store, Log: e.log, Now: e.o.Now, Sweeps: sweeps, Steps: steps},
	}
}

// run starts the goroutines, drives the dispatcher, and returns when all have ended.
func (c *roles) run(ctx context.Context, d *dispatcher) error {
	work, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	walk, stopWalk := context.WithCancel(work) // of what a crawl that ends does not wait for
	defer stopWalk()
	var wg sync.WaitGroup
	d.flights.working, d.flights.naming = work, walk
	d.flights.startWorker = func() { wg.Go(c.workers.run) }
	d.flights.startLookup = func(l *lookup) { wg.Go(func() { c.workers.lookUp(l) }) }
	d.robotsQueries.start = func(q frontier.RobotsQuery) {
		wg.Go(func() {
			if res, ok := c.workers.QueryRobots(walk, &q); ok {
				_ = d.mailbox.call(walk, func(d *dispatcher) { d.completeQuery(q.ID, res) }) // else the crawl ends
			}
		})
	}
	wg.Go(func() { c.committer.run(work) })
	wg.Go(c.loader.Run)
	wg.Go(func() { c.sweeper.Run(walk) })
	wg.Go(func() {
		if err := protect(d.o, d.log, func() error { return c.restoreDomains(walk) }); err != nil {
			d.log.Error("links may lead to more hosts of a domain than traps.domain_hosts says", "error", err)
		}
	})
	if c.incoming != nil {
		wg.Go(func() { c.incoming.run(walk) })
	}
	if c.backups != nil {
		wg.Go(func() { c.backups.Run(walk) })
	}

	d.protect(func() { d.dispatch(ctx) })
	stopWalk()
	grace := d.live.Load().ShutdownGrace
	if d.failed != nil {
		grace = 0
	}
	defer time.AfterFunc(grace, breakOff).Stop()
	if !d.protect(d.shutDown) {
		return d.failed // the other goroutines have nothing to do any more, and some wait for ever
	}
	wg.Wait()
	return d.finish()
}

// protect calls a part of the dispatcher. After a panic in it nothing is committed any more; false: it is one.
func (g *gathering) protect(f func()) bool {
	err := protect(g.o, g.log, func() error {
		f()
		return nil
	})
	if err != nil {
		g.failed, g.broken = err, true
	}
	return err == nil
}
