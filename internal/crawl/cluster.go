package crawl

import (
	"context"
	"errors"
	"fmt"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Cluster is what the engine of a shard needs of the other shards, besides its journal. It is safe for
// concurrent use.
type Cluster interface {
	// ScopeSeeds returns the scope seeds of all shards but for the first so many, in an order that stays,
	// and a channel that is closed when there are more.
	ScopeSeeds(from int) (seeds []weburl.URL, more <-chan struct{})
	// Widen makes scope seeds known to all shards. It returns when that is certain.
	Widen(seeds []weburl.URL) error
	// FetchRobots has the owner of a host make a request, and returns what it has brought. If that takes too
	// long, it is a timeout. The error is that of the context.
	FetchRobots(context.Context, RobotsQuery) (robots.Outcome, error)
}

// sharedScope is what the scope has of other shards. The dispatcher owns it.
type sharedScope struct {
	known int             // scope seeds of all shards that the scope has
	more  <-chan struct{} // closed when there are more; nil: there is no cluster
}

// sharedSeeds returns the scope seeds of all shards; none without a cluster.
func (o *Options) sharedSeeds() (seeds []weburl.URL, s sharedScope) {
	if o.Cluster == nil {
		return nil, s
	}
	seeds, s.more = o.Cluster.ScopeSeeds(0)
	s.known = len(seeds)
	return seeds, s
}

// widenScope widens the scope by what redirects of seeds of other shards have led to.
func (d *dispatcher) widenScope() {
	if d.o.Cluster == nil {
		return
	}
	seeds, more := d.o.Cluster.ScopeSeeds(d.sharedScope.known)
	d.sharedScope.known, d.sharedScope.more = d.sharedScope.known+len(seeds), more
	if len(seeds) > 0 {
		d.setScope(d.f.Scope().With(seeds...))
	}
}

// Rest is whether the engine of a shard has anything to do.
type Rest struct {
	// Done: nothing can be fetched soon, nothing is under way or uncommitted. Only URLs from elsewhere can
	// change that.
	Done bool
	// Number is that of the last commit. As long as it stays the same, and Done, nothing was done.
	Number uint64
}

// Rest returns whether the engine has anything to do. With closed the crawl takes no URLs from users as
// long as it has nothing to do: they get ErrDraining. Without closed it takes them again. The errors are
// those of Control. Any goroutine may call it.
func (e *Engine) Rest(ctx context.Context, closed bool) (r Rest, err error) {
	logged, ok := e.store.(*loggedStore)
	if !ok {
		return r, errors.New("a crawl without a journal rests when it has ended")
	}
	callErr := e.mailbox.Load().call(ctx, func(d *dispatcher) {
		var at storage.LogPosition
		at, err = logged.LogPosition()
		r = Rest{d.isAtRest(), at.Number}
		d.mailbox.draining.Store(d.draining || closed && r.Done && err == nil)
	})
	return r, errors.Join(callErr, err)
}

// isAtRest reports whether a crawl of one machine would be over.
func (d *dispatcher) isAtRest() bool {
	return d.goesOn() && d.isQuiet() && d.f.Finished(d.o.Now(), d.live.Load().GiveUpAfter)
}

// widen makes the scope seeds of a batch known to other shards.
func (s *loggedStore) widen(texts []string) error {
	if s.cluster == nil || len(texts) == 0 {
		return nil
	}
	seeds := make([]weburl.URL, 0, len(texts))
	for _, text := range texts {
		u, err := weburl.Parse(text)
		if err != nil {
			return fmt.Errorf("scope seed %q: %w", text, err)
		}
		seeds = append(seeds, u)
	}
	return s.cluster.Widen(seeds)
}
