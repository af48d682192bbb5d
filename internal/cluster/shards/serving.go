//go:build !core

package shards

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/routes"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// lent is something that requests of other nodes use until it ends. It may be used concurrently.
type lent[T any] struct {
	mu    sync.Mutex // guards what follows
	value T
	ctx   context.Context // nil: there is nothing now. It ends before the value does
	users sync.WaitGroup
}

// begin lets requests use a value until the function that it returns is called, which breaks them off and waits
// for them.
func (l *lent[T]) begin(value T) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	l.mu.Lock()
	l.value, l.ctx = value, ctx
	l.mu.Unlock()
	return func() {
		l.mu.Lock()
		l.ctx = nil
		l.mu.Unlock()
		cancel()
		l.users.Wait()
	}
}

// use calls f with the value. The context of f ends with the use of the value. It reports whether there is one.
func (l *lent[T]) use(ctx context.Context, f func(context.Context, T)) bool {
	l.mu.Lock()
	value, over := l.value, l.ctx
	if over == nil {
		l.mu.Unlock()
		return false
	}
	l.users.Add(1)
	l.mu.Unlock()
	defer l.users.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(over, cancel)()
	f(ctx, value)
	return true
}

// Observe sets the observer of all engines. It is called before Run.
func (n *Node) Observe(o crawl.Observer) { n.engines.observer = o }

// serve answers the requests of all nodes, this one included, until the context ends: its own, and those that
// Serve has a handler for.
func (n *Node) serve(ctx context.Context) {
	mux := http.NewServeMux()
	mux.Handle("POST "+queryRest.path("{shard}"), n.engines.answers((*run).answerRest))
	mux.Handle("POST "+queryRobots.path("{shard}"), n.engines.answers((*run).answerRobots))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !n.handler.use(r.Context(), func(ctx context.Context, h http.Handler) {
			defer context.AfterFunc(ctx, func() { routes.BreakOff(r.Context()) })()
			h.ServeHTTP(w, r.WithContext(ctx))
		}) {
			http.Error(w, "the node does not serve its API now", http.StatusServiceUnavailable)
		}
	})
	n.routes.Serve(ctx, mux)
}

// Serve has a handler answer the requests of all nodes, this one included, until the context ends. Then it breaks
// them off. They are answered while Run runs. It is called once.
func (n *Node) Serve(ctx context.Context, h http.Handler) {
	end := n.handler.begin(h)
	<-ctx.Done()
	end()
}

// Do sends a request to a node; of its URL path and query count. The errors are those of
// routes.Routes.Do.
func (n *Node) Do(node string, request *http.Request) (*http.Response, error) {
	return n.routes.Do(node, request)
}

// Use calls f with the engine of a shard. The context of f ends when the engine does; until f has
// returned the engine is not closed, and no other node crawls the shard. So f must not block after that.
// The error is routes.ErrNotOwner if this node has no engine of the shard.
func (n *Node) Use(ctx context.Context, s cluster.Shard, f func(context.Context, *crawl.Engine)) error {
	return n.engines.use(ctx, s, func(ctx context.Context, _ *run, e *crawl.Engine) { f(ctx, e) })
}

// use calls f with the run and the engine of a shard: see Node.Use.
func (e *engines) use(ctx context.Context, s cluster.Shard, f func(context.Context, *run, *crawl.Engine)) error {
	r, used := e.of(s), false
	if r != nil {
		r.lent.use(ctx, func(ctx context.Context, engine *crawl.Engine) {
			select {
			case <-engine.Ready():
				used = true
				f(ctx, r, engine)
			case <-ctx.Done():
			}
		})
	}
	if !used {
		return errors.Join(fmt.Errorf("shard %d: %w", s, routes.ErrNotOwner), ctx.Err())
	}
	return nil
}

// Statuses returns the statuses of the engines of this node.
func (n *Node) Statuses() map[cluster.Shard]crawl.Status {
	all := make(map[cluster.Shard]crawl.Status)
	for h, r := range n.engines.all() {
		r.lent.use(context.Background(), func(_ context.Context, e *crawl.Engine) { all[h.Shard()] = e.Status() })
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
