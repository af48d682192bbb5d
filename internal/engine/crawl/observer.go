package crawl

import (
	"context"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/bodies"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/rules/consent"
)

// Observer is told what a crawl does while it does it: for metrics, and for people who watch. Workers and the
// committer call it at the same time, so its methods have to be safe for that, and must not wait for anything.
type Observer interface {
	// Requested is called for each request that left, once it has ended. The log has not numbered
	// it yet, and knows more of it: Place, Again, For, Policy and the verdict are not set.
	Requested(requestlog.Request)
	// Committed is called for each commit: how long it took, and how many outcomes and discoveries it held.
	Committed(took time.Duration, items int)
}

// Observers are called one after the other.
type Observers []Observer

// Requested is part of Observer.
func (o Observers) Requested(q requestlog.Request) {
	for _, each := range o {
		each.Requested(q)
	}
}

// Committed is part of Observer.
func (o Observers) Committed(took time.Duration, items int) {
	for _, each := range o {
		each.Committed(took, items)
	}
}

// Observe sets the observer from the next Run on; nil: none.
func (e *Engine) Observe(o Observer) { e.observer = o }

// workers are the goroutines that work, and where they take and put.
type workers struct {
	*work.Worker
	leases  <-chan *work.Result
	results chan<- workerEvent
}

// run does the work of one lease after the other until there are no more.
func (w *workers) run() {
	for res := range w.leases {
		w.Serve(res)
		w.results <- completion{res}
	}
}

// lookUp does the work of a lookup.
func (w *workers) lookUp(l *lookup) {
	l.report = w.Resolve(l.ctx, l.host, l.every)
	w.results <- l
}

// newWorkers returns the workers of a run.
func (e *Engine) newWorkers(
	m *mailbox, leases <-chan *work.Result, results chan<- workerEvent, stalls chan<- error,
) *workers {
	o := &work.Options{
		Now: e.o.Now, URLs: e.o.URLs, Traps: e.o.Traps, Frontier: e.o.Frontier, Fetch: e.o.Fetch, Extract: e.o.Extract,
		Archive: e.o.Archive, Sitemaps: e.o.Sitemaps, Requisites: e.o.Requisites, NoFollow: e.o.NoFollow,
		TDMFiles: e.o.TDMFiles, Terms: e.o.Terms, Owns: e.o.owns,
	}
	if e.plan != nil {
		o.SimilarBits = e.o.SimilarBits
	}
	t := &work.Tools{
		Log: e.log, Client: e.client, Store: e.store, Tally: &e.tally, Encoder: e.encoder, Recent: e.bodies,
		Crashes: e.crashes, Scope: e.scope.Load, Consent: func() consent.Policy { return e.live.Load().Consent },
		Walls: e.shared.marks, Seen: e.newSeen(), Sessions: frontier.NewSessions(e.o.SessionNames),
		Hosts: e.domainHosts, Mazes: e.mazes, Stamps: e.o.stamps(), Parsers: e.shared.parsers, Room: e.shared.room,
		Recrawls: e.plan != nil, Stalls: stalls,
		EndRequest: func(res *work.Result, end frontier.RequestEnd) { results <- &requestEnd{res, end} },
		Add: func(ctx context.Context, rows lists.Rows) (lists.Added, error) {
			return m.add(ctx, &addition{Rows: rows})
		},
	}
	if e.observer != nil {
		t.Observer = e.observer
	}
	if e.o.Permits != nil {
		t.Begin = e.o.Permits.Begin
	}
	if e.o.Cluster != nil {
		o.FetchRobots = e.o.Cluster.FetchRobots
	}
	return &workers{Worker: work.New(o, t), leases: leases, results: results}
}

// newSeen returns a memory of the bodies of all responses from now on: all of the crawl, if it has had none yet.
func (e *Engine) newSeen() *bodies.Seen {
	if e.store.Counters().Requests == 0 {
		return bodies.NewSeen(time.Time{})
	}
	return bodies.NewSeen(e.o.Now())
}
