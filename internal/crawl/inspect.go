package crawl

import (
	"context"
	"errors"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// ErrNotRunning says that the crawl has not begun yet, or is ending: nothing can be given to it.
var ErrNotRunning = errors.New("the crawl is starting or ending")

// desk is where other goroutines put their requests to the dispatcher, which serves them between all else it does. Each request is
// small; each answer goes into a channel that never blocks.
type desk struct {
	adds    chan *addition
	looks   chan *look
	drops   chan *drop
	orders  chan *order
	changes chan *change
	steers  chan *steering
	closed  chan struct{} // nobody is served any more

	surveyed chan struct{} // closed when all hosts were looked at for the first time
}

func newDesk() *desk {
	return &desk{
		adds: make(chan *addition), looks: make(chan *look), drops: make(chan *drop), orders: make(chan *order),
		changes: make(chan *change), steers: make(chan *steering), closed: make(chan struct{}), surveyed: make(chan struct{}),
	}
}

func (d *desk) isClosed() bool {
	select {
	case <-d.closed:
		return true
	default:
		return false
	}
}

// look asks where hosts stand.
type look struct {
	hosts  []storage.HostID
	answer chan []inspect.Live // holds one
}

// View looks into the crawl. Any goroutine may call it and use what it returns, until Close.
func (e *Engine) View() *inspect.View {
	return inspect.New(e.store, inspect.Options{
		Politeness: e.force.Load().politeness, Robots: e.o.Frontier.Robots, Tokens: e.o.Frontier.Tokens, Obey: e.o.Frontier.Obey,
		Renew: e.o.Renew, Now: e.now, Scope: e.inScope, Live: e.live, Table: e.hosts,
	})
}

// inScope is inspect.Options.Scope.
func (e *Engine) inScope(u weburl.URL) (bool, string) { return told(e.scope.Load(), u) }

func told(scope *frontier.Scope, u weburl.URL) (in bool, why string) {
	if scope == nil {
		return false, "the crawl has not begun"
	}
	v := scope.Check(u)
	return v == frontier.InScope, v.String()
}

// live asks the dispatcher about hosts. Where none runs there is nothing to know.
func (e *Engine) live(ctx context.Context, hosts []storage.HostID) ([]inspect.Live, error) {
	d := e.desk.Load()
	if d == nil {
		return nil, nil
	}
	q := &look{hosts: hosts[:min(len(hosts), inspect.LivePage)], answer: make(chan []inspect.Live, 1)}
	select {
	case d.looks <- q:
		return <-q.answer, nil
	case <-d.closed:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// look answers. It reads a few words of each host.
func (r *run) look(q *look) {
	live := make([]inspect.Live, 0, len(q.hosts))
	for _, id := range q.hosts {
		v, known := r.f.Look(id)
		if !known {
			continue
		}
		l := inspect.Live{
			Host: id, Place: v.Place, Next: v.Next, Delay: v.Delay, Robots: v.Robots, InFlight: v.InFlight, Address: v.Address,
		}
		if v.Active {
			l.Polite = &v.Polite
		}
		live = append(live, l)
	}
	q.answer <- live
}
