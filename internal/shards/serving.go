package shards

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/journal"
	"github.com/amble-crawler/amble/internal/membership"
	"github.com/amble-crawler/amble/internal/routes"
)

// serving are the requests to the API that use the engine of a run.
type serving struct {
	mu     sync.Mutex // guards what follows, until the engine ends
	engine *crawl.Engine
	ctx    context.Context // ends before the engine is closed
	users  sync.WaitGroup
}

// begin lets requests use the engine until the function that it returns is called, which breaks them off
// and waits for them.
func (s *serving) begin(e *crawl.Engine) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	s.engine, s.ctx = e, ctx
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.engine = nil
		s.mu.Unlock()
		cancel()
		s.users.Wait()
	}
}

// use calls f with the engine, when it is ready. The context of f ends with the use of the engine. It
// reports whether there is one.
func (s *serving) use(ctx context.Context, f func(context.Context, *crawl.Engine)) bool {
	s.mu.Lock()
	e, over := s.engine, s.ctx
	if e == nil {
		s.mu.Unlock()
		return false
	}
	s.users.Add(1)
	s.mu.Unlock()
	defer s.users.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(over, cancel)()
	select {
	case <-e.Ready():
	case <-ctx.Done():
		return false
	}
	f(ctx, e)
	return true
}

// status returns the status of the engine. It reports whether there is one.
func (s *serving) status() (crawl.Status, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil {
		return crawl.Status{}, false
	}
	return s.engine.Status(), true
}

// Observe sets the observer of all engines. It is called before Run.
func (n *Node) Observe(o crawl.Observer) { n.engines.observer = o }

// Serve answers requests of all nodes, this one included, until the context ends. It is called once.
func (n *Node) Serve(ctx context.Context, h http.Handler) { n.routes.Serve(ctx, h) }

// Do sends a request to a node; of its URL path and query count. The errors are those of
// routes.Routes.Do.
func (n *Node) Do(node string, request *http.Request) (*http.Response, error) {
	return n.routes.Do(node, request)
}

// Use calls f with the engine of a shard. The context of f ends when the engine does; until f has
// returned the engine is not closed, and no other node crawls the shard. So f must not block after that.
// The error is routes.ErrNotOwner if this node has no engine of the shard.
func (n *Node) Use(ctx context.Context, s cluster.Shard, f func(context.Context, *crawl.Engine)) error {
	if r := n.engines.of(s); r == nil || !r.serving.use(ctx, f) {
		return errors.Join(fmt.Errorf("shard %d: %w", s, routes.ErrNotOwner), ctx.Err())
	}
	return nil
}

// Statuses returns the statuses of the engines of this node.
func (n *Node) Statuses() map[cluster.Shard]crawl.Status {
	all := make(map[cluster.Shard]crawl.Status)
	for h, r := range n.engines.all() {
		if status, ok := r.serving.status(); ok {
			all[h.Shard()] = status
		}
	}
	return all
}

// Survey returns what the NATS servers know of the cluster, and of the log of each shard.
func (n *Node) Survey(ctx context.Context) (*membership.Survey, []journal.Report, error) {
	names := n.engines.o.Names
	s, err := membership.ReadSurvey(ctx, n.js, names)
	if err != nil {
		return nil, nil, err
	}
	logs, err := journal.ReadReports(ctx, n.js, names, len(s.Shards))
	return s, logs, err
}

// Refused returns how often the log of a shard has refused this node.
func (n *Node) Refused() uint64 { return n.engines.refused.Load() }

// of returns the run of the engine of a shard, or nil.
func (e *engines) of(s cluster.Shard) *run {
	for h, r := range e.all() {
		if h.Shard() == s && h.Check() == nil {
			return r
		}
	}
	return nil
}

// all returns the runs.
func (e *engines) all() map[*membership.Holding]*run {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make(map[*membership.Holding]*run, len(e.open))
	for h, r := range e.open {
		all[h] = r
	}
	return all
}
