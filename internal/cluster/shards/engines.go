//go:build !core

package shards

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// common is what the engines of a node have in common.
type common struct {
	o        *Options
	log      *slog.Logger // of a run: with its shard
	streams  *journal.Streams
	shared   *crawl.Shared
	scope    *scope
	owners   *owners
	maxPages *pageQuota     // nil: there is no limit
	recrawls *recrawlBudget // nil: there is no limit
	trust    *membership.Trust
	observer crawl.Observer // of all engines; nil: nobody
	desired  *desired
	refused  *atomic.Uint64 // counts the logs that have refused a message of this node
}

// engines are those of the shards that the node owns. It implements membership.Engines.
type engines struct {
	common
	running sync.WaitGroup

	removing sync.Mutex // held while a database is removed; taken before mu

	mu      sync.Mutex // guards what follows; nothing blocks under it
	open    map[*membership.Holding]*run
	summary Summary  // of the engines that are not open any more
	ended   Progress // of the same
}

// Open is part of membership.Engines.
func (e *engines) Open(h *membership.Holding) {
	ctx, stop := context.WithCancel(h.Context())
	r := &run{common: e.common, holding: h, stop: stop, ended: e.count, undone: e.undone}
	r.log = e.log.With("shard", h.Shard())
	if e.recrawls != nil {
		r.part = &recrawlPart{shard: h.Shard(), mayWrite: r.mayWrite}
	}
	e.mu.Lock()
	e.open[h] = r
	e.mu.Unlock()
	e.running.Go(func() {
		e.waitForRemoval()
		err := r.drive(ctx)
		e.mu.Lock()
		delete(e.open, h)
		e.countLocked(&r.summary)
		e.mu.Unlock()
		stop()
		if f, ok := faultOf(err); ok {
			h.Failed(f)
		} else {
			h.Ended(err)
		}
	})
}

// count counts what an engine came to that is not open any more.
func (e *engines) count(s *crawl.Summary) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.countLocked(s)
}

func (e *engines) countLocked(s *crawl.Summary) {
	e.summary.add(s)
	e.ended.add(s.Status)
}

// finish notes that the crawl is over.
func (e *engines) finish() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.summary.Finished = true
	if e.maxPages != nil {
		all, _, _ := e.maxPages.latest()
		e.summary.MaxPages = all.sum() >= uint64(e.o.Crawl.MaxPages)
	}
}

// Close is part of membership.Engines. If the end is not orderly, the context of the holding has
// ended already.
func (e *engines) Close(h *membership.Holding, _ bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.open[h]; r != nil {
		r.stop()
	}
}

// Granted is part of membership.Engines.
func (e *engines) Granted(key string) {
	if k, ok := limitKey(key); ok {
		e.shared.Granted(k)
	}
}
