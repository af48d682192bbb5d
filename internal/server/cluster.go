package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/journal"
	"github.com/amble-crawler/amble/internal/membership"
	"github.com/amble-crawler/amble/internal/optout"
)

// Cluster is the node of a cluster that a process is: *shards.Node. Its methods are called by many
// goroutines at once.
type Cluster interface {
	// Status returns what the node knows of its cluster.
	Status() membership.Status
	// Shards returns the number of shards of the cluster.
	Shards() int
	// Owner returns the node that owns a shard, as far as this one knows; empty: nobody, or this node has left.
	Owner(s cluster.Shard) string
	// Statuses returns the statuses of the engines of this node.
	Statuses() map[cluster.Shard]crawl.Status
	// Survey returns what the NATS servers know of the cluster, and of the log of each shard.
	Survey(ctx context.Context) (*membership.Survey, []journal.Report, error)
	// Refused returns how often the log of a shard has refused this node.
	Refused() uint64
	// Use calls f with the engine of a shard of this node. The context of f ends when the engine has to
	// be closed, which then waits for f. The error is routes.ErrNotOwner.
	Use(ctx context.Context, s cluster.Shard, f func(context.Context, *crawl.Engine)) error
	// Do sends a request to a node: see routes.Routes.Do.
	Do(node string, request *http.Request) (*http.Response, error)
	// Serve answers the requests of all nodes until the context ends.
	Serve(ctx context.Context, h http.Handler)
	// Observe sets the observer of all engines.
	Observe(crawl.Observer)
	// SetPaused pauses all shards, or resumes them, also those that nobody owns now. When it returns
	// this is durable, and the desired state of the crawl has a sequence.
	SetPaused(ctx context.Context, paused bool) (sequence uint64, err error)
	// SetOptOut records an opt-out for all shards as SetPaused pauses them, or with remove removes it. found
	// says whether there was one of its scope and value.
	SetOptOut(ctx context.Context, e optout.Entry, remove bool) (found bool, sequence uint64, err error)
	// AddDeletion has shards carry out a deletion when somebody crawls them. It is durable when it returns.
	AddDeletion(ctx context.Context, o crawl.Deletion, shards []cluster.Shard) error
	// DesiredSequence returns the sequence of the newest desired state that this node knows.
	DesiredSequence() uint64
	// WaitForDesired waits until all engines of this node have the desired state, and returns why this node
	// does not follow it, if it does not.
	WaitForDesired(ctx context.Context, sequence uint64) error
}

// CrawlStatus is the status of the crawl, as the API sends it.
type CrawlStatus struct {
	crawl.Status
	Cluster string `json:"cluster,omitempty"` // the name of the cluster; the numbers are those of all its nodes
	// Incomplete says what is not in the numbers: in a cluster, when not all have answered.
	Incomplete *Incomplete `json:"incomplete,omitempty"`
}

// Incomplete says which parts of a cluster have not answered.
type Incomplete struct {
	Nodes  []string `json:"nodes,omitempty"` // that did not answer
	Shards []int    `json:"shards"`          // that are not in the answer, by number
	Why    []string `json:"why"`             // for people
}

// status returns the status of the crawl that a request is about.
func (s *Server) status(ctx context.Context) CrawlStatus {
	if c := s.crawl(ctx); c != nil {
		return CrawlStatus{Status: c.Status()}
	}
	return s.clusterStatus(ctx)
}

// dataDir returns the data directory of the crawl that a request is about.
func (s *Server) dataDir(ctx context.Context) string {
	if s.o.Cluster == nil {
		return s.o.DataDir
	}
	return s.crawl(ctx).Status().DataDir
}

// here returns the status of what this process crawls.
func (s *Server) here() crawl.Status {
	if s.o.Cluster == nil {
		return s.only.Status()
	}
	return s.nodeStatus().Status
}

// divide returns a middleware for the operations of a cluster: one that is about the whole crawl is
// divided among the shards.
func (s *Server) divide() func(huma.Context, func(huma.Context)) {
	rules := rules()
	return func(c huma.Context, next func(huma.Context)) {
		rule := rules[c.Operation().OperationID]
		if s.o.Cluster == nil || rule == nil || s.crawl(c.Context()) != nil ||
			c.Context().Value(nodeKey{}) != nil {
			next(c)
			return
		}
		r, w := humago.Unwrap(c)
		_ = http.NewResponseController(w).SetWriteDeadline(s.o.Now().Add(commandTimeout + streamTimeout))
		rule(s, w, r)
	}
}
