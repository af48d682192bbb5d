//go:build !core

// Package clusterapi makes a node of a cluster a server.Division: the API of a crawl whose shards are on many nodes.
// Nodes answer each other through routes, under these paths: /shards/N/api/v1/... for a shard, /node/api/v1/... for
// a node, /node/status and /node/desired/N.
package clusterapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/routes"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/service/server"
)

// Node is the node of a cluster that a process is: *shards.Node. Its methods are called by many
// goroutines at once.
type Node interface {
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
	// Erasing returns the erasures of hosts that are not done.
	Erasing(*membership.Survey) []membership.Erasing
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

// Division is a server.Division of the shards of a cluster. Its methods may be called by any goroutine.
type Division struct {
	node    Node
	dataDir string
	now     func() time.Time
}

// New returns the division that a node belongs to. dataDir is that of the process.
func New(n Node, dataDir string, now func() time.Time) *Division { return &Division{n, dataDir, now} }

// Shards implements server.Division.
func (d *Division) Shards() int { return d.node.Shards() }

// ShardOf implements server.Division.
func (d *Division) ShardOf(host string) int {
	return int(cluster.ShardOf(inspect.CanonicalHost(host), d.node.Shards()))
}

// A shard whose owner changes has another one soon.
const (
	ownerTimeout = 2 * time.Second // for a shard to have an owner whose engine is open
	ownerRetry   = 50 * time.Millisecond
)

// errNoOwner means that nobody crawls a shard now.
var errNoOwner = errors.New("no node owns it now")

// AskShard implements server.Division. A node that does not own the shard any more has done nothing, so the new
// owner is tried.
func (d *Division) AskShard(ctx context.Context, shard int, r *server.Request) (*http.Response, error) {
	waiting, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	for {
		owner, err := d.node.Owner(cluster.Shard(shard)), errNoOwner
		if owner != "" {
			var response *http.Response
			response, err = d.node.Do(owner, r.Under(ctx, "/shards/"+strconv.Itoa(shard)))
			if err == nil || !errors.Is(err, routes.ErrNotOwner) {
				return response, err
			}
		}
		select {
		case <-waiting.Done():
			return nil, err
		case <-time.After(ownerRetry):
		}
	}
}

// AskNode implements server.Division.
func (d *Division) AskNode(ctx context.Context, node string, r *server.Request) (*http.Response, error) {
	return d.node.Do(node, r.Under(ctx, "/node"))
}

// askNodes reads a path of all nodes that is not one of the API.
func askNodes[T any](ctx context.Context, d *Division, limit time.Duration, path string) (map[string]T,
	map[string]error, error) {
	return server.AskNodes[T](ctx, d, limit, &server.Request{Method: http.MethodGet, URL: url.URL{Path: path}})
}

// Nodes implements server.Division.
func (d *Division) Nodes() []string {
	st := d.node.Status()
	names := []string{st.Node}
	for _, m := range st.Members {
		if m.State != "left" && (m.State == "live" || m.Shards > 0) {
			names = append(names, m.Node)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Absent implements server.Division. A shard that nobody owns follows when it has an owner.
func (d *Division) Absent(failed map[string]error) *server.Incomplete {
	var shards []int
	known := d.node.Status().Shards
	for shard := range d.node.Shards() {
		if shard >= len(known) || failed[known[shard].Owner] != nil {
			shards = append(shards, shard)
		}
	}
	return server.Missing(failed, shards, d.node.Shards())
}

// Observe implements server.Division.
func (d *Division) Observe(o crawl.Observer) { d.node.Observe(o) }

// SetPaused implements server.Division.
func (d *Division) SetPaused(ctx context.Context, paused bool) (*server.Incomplete, error) {
	sequence, err := d.node.SetPaused(ctx, paused)
	if err != nil {
		return nil, server.Unanswered(err)
	}
	return d.followed(ctx, sequence), nil
}

// SetOptOut implements server.Division.
func (d *Division) SetOptOut(ctx context.Context, e optout.Entry, remove bool) (bool, *server.Incomplete, error) {
	found, sequence, err := d.node.SetOptOut(ctx, e, remove)
	if err != nil {
		return false, nil, err
	}
	return found, d.followed(ctx, sequence), nil
}

// AddDeletion implements server.Division.
func (d *Division) AddDeletion(ctx context.Context, o crawl.Deletion, shards []int) error {
	late := make([]cluster.Shard, len(shards))
	for i, shard := range shards {
		late[i] = cluster.Shard(shard)
	}
	return d.node.AddDeletion(ctx, o, late)
}

// Followed implements server.Division.
func (d *Division) Followed(ctx context.Context) *server.Incomplete {
	return d.followed(ctx, d.node.DesiredSequence())
}

// desiredTimeout is how long nodes may take to follow a command before the response says so.
const desiredTimeout = 5 * time.Second

// followed waits until all nodes have the desired state with a sequence, and says which do not yet.
func (d *Division) followed(ctx context.Context, sequence uint64) *server.Incomplete {
	_, failed, wrong := askNodes[struct{}](ctx, d, desiredTimeout, "/desired/"+strconv.FormatUint(sequence, 10))
	switch {
	case wrong != nil:
		return &server.Incomplete{Shards: []int{}, Why: []string{wrong.Error()}}
	case len(failed) > 0:
		return d.Absent(failed)
	}
	return nil
}

// Collectors implements server.Division.
func (d *Division) Collectors() []prometheus.Collector {
	return []prometheus.Collector{newCollector(d.node)}
}
