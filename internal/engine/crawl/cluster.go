package crawl

import (
	"context"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/seedbook"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Cluster is what the engine of a shard needs of the other shards, besides its journal. It is safe for
// concurrent use.
type Cluster interface {
	// Seeds returns the changes of seeds of all shards but for the first so many, in an order that stays,
	// and a channel that is closed when there are more.
	Seeds(from int) (changes []storage.SeedRow, more <-chan struct{})
	// PublishSeeds makes changes of seeds known to all shards. It returns when that is certain.
	PublishSeeds(changes []storage.SeedRow) error
	// FetchRobots has the owner of a host make a request, and returns what it has brought. If that takes too
	// long, it is a timeout. The error is that of the context.
	FetchRobots(context.Context, RobotsQuery) (robots.Outcome, error)
}

// Pages is how many pages a shard may fetch of those that all shards may fetch together. Its methods do not
// block. The dispatcher calls them.
type Pages interface {
	// Allowed returns how many pages of the shard may be fetched in all, over all runs.
	Allowed() uint64
	// Want says that the shard could fetch more than it may.
	Want()
	// Unused reports whether the shard has more than so many pages.
	Unused(fetched uint64) bool
	// Release says that the shard has nothing to fetch beyond so many pages: Allowed is no more than that,
	// until Want.
	Release(fetched uint64)
}

// hasAllPages reports whether the pages that are allowed are fetched or in flight.
func (pm *permits) hasAllPages() bool {
	return pm.o.Pages != nil && pm.fetchedPages() >= pm.o.Pages.Allowed()
}

// wantPages says whether the shard needs more pages than are allowed.
func (pm *permits) wantPages() {
	if !pm.hasAllPages() {
		return
	}
	if at, waits := pm.f.NextWake(); waits && !at.After(pm.o.Now()) || pm.f.WantsNames() {
		pm.o.Pages.Want()
	}
}

// releasePages gives back pages that are allowed and not needed.
func (pm *permits) releasePages() {
	if p := pm.o.Pages; p != nil && p.Unused(pm.fetchedPages()) && pm.isAtRest() {
		p.Release(pm.fetchedPages())
	}
}

// sharedScope is what the scope has of other shards. The dispatcher owns it.
type sharedScope struct {
	known int             // changes of seeds of all shards that the scope has
	more  <-chan struct{} // closed when there are more; nil: there is no cluster
}

// sharedSeeds returns the changes of seeds of all shards; none without a cluster.
func (o *Options) sharedSeeds() (changes []storage.SeedRow, s sharedScope) {
	if o.Cluster == nil {
		return nil, s
	}
	changes, s.more = o.Cluster.Seeds(0)
	s.known = len(changes)
	return changes, s
}

// followSeeds applies the changes of seeds that other shards have published.
func (x *exclusions) followSeeds() {
	if x.o.Cluster == nil {
		return
	}
	changes, more := x.o.Cluster.Seeds(x.sharedScope.known)
	x.sharedScope.known, x.sharedScope.more = x.sharedScope.known+len(changes), more
	if len(changes) > 0 {
		x.applySeeds(seedbook.NewUpdate(x.f.Scope().Seeds(), changes))
	}
}

// isAtRest reports whether a crawl of one machine would be over.
func (pm *permits) isAtRest() bool {
	return pm.goesOn() && pm.isQuiet() && pm.f.Finished(pm.o.Now(), pm.live.Load().GiveUpAfter)
}

// Permits say whether the engine may make requests. In a cluster they end with the trust of the node,
// and with its ownership of the shard. They are safe for concurrent use.
type Permits interface {
	// Check returns nil if a request may begin now. It does not block. While it returns an error the
	// engine begins nothing, and tries again within a second.
	Check() error
	// Begin begins a request that the gate has admitted, or returns an error if it may not be made.
	Begin(ctx context.Context, admitted *frontier.GateRequest) (Permit, error)
}

// Permit is that of one request.
type Permit = work.Permit

// RobotsQuery is a request that one shard wants of another: to where a robots.txt redirects.
type RobotsQuery = work.RobotsQuery

// isPermitted reports whether requests may begin.
func (pm *permits) isPermitted() bool { return pm.o.Permits == nil || pm.o.Permits.Check() == nil }

// owns reports whether the requests to a host are for this engine to make.
func (o *Options) owns(host string) bool { return o.Journal == nil || o.Journal.Owns(host) }
