//go:build !core

package shards

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/cluster/routes"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// stateFile is the name of the file with which a node has its shards back at once after a restart.
const stateFile = "member"

// Node is a process that crawls the shards that it owns. Its methods may be called concurrently.
type Node struct {
	member  *membership.Node
	engines *engines
	nc      *nats.Conn
	js      jetstream.JetStream
	routes  *routes.Routes
	handler lent[http.Handler] // of Serve
	over    chan struct{}      // is closed when the crawl is over
}

// Open looks whether this process can be a node of the cluster, and opens what its engines share. The
// connection belongs to the caller, who closes it after Run. While the servers elect a leader, the error
// is natsconn.ErrDown or storage.ErrLogDown, and Open can be called again. After an Open without an
// error the caller calls Run.
func Open(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, o Options, log *slog.Logger) (*Node, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(o.Crawl.DataDir, "shards"), 0o750); err != nil {
		return nil, fmt.Errorf("make the directory of the shards: %w", err)
	}
	e := &engines{
		common: common{o: &o, log: log, refused: new(atomic.Uint64)},
		open:   make(map[*membership.Holding]*run),
	}
	member, err := membership.Join(ctx, nc, js, membership.Options{
		Cluster: o.Cluster, Names: o.Names, Replicas: o.Replicas, Settings: o.Agreed,
		StateFile: filepath.Join(o.Crawl.DataDir, stateFile), Uptime: o.Uptime, Engines: e, Log: log,
	})
	if err != nil {
		return nil, err
	}
	n := &Node{member: member, engines: e, nc: nc, js: js, over: make(chan struct{})}
	if err := n.open(ctx, log); err != nil {
		member.Close()
		return nil, err
	}
	return n, nil
}

// open opens what the engines share.
func (n *Node) open(ctx context.Context, log *slog.Logger) (err error) {
	e := n.engines
	if e.streams, err = journal.Open(ctx, n.nc, e.o.journal()); err != nil {
		return err
	}
	if err = checkLog(filepath.Join(e.o.Crawl.DataDir, "shards"), e.streams.Identity()); err != nil {
		return err
	}
	e.trust = n.member.Trust()
	if e.o.Crawl.MaxPages > 0 {
		e.maxPages = newPageQuota(e.streams.Register("pages"), e.o.Cluster.Shards, log)
	}
	if c := e.o.Crawl.Recrawl; c != nil && c.Budget > 0 {
		e.recrawls = newRecrawlBudget(e.streams.Register("recrawls"), c.Budget, e.o.Cluster.Shards, log)
	}
	e.scope = newScope(e.streams, log)
	e.desired = newDesired(e.streams.Register("desired"), log)
	if n.routes, err = routes.Start(n.nc, e.o.Names, e.o.Cluster.Node); err != nil {
		return natsconn.Down(err)
	}
	e.owners = &owners{n.member, n.routes}
	if e.shared, err = crawl.OpenShared(e.o.Crawl, grants{n.member}); err != nil {
		n.routes.Close()
	}
	return err
}

// Run crawls until the node has left: see Leave. With Options.Crawl.ExitWhenDone or MaxPages it leaves
// when the crawl is over on all nodes. If the context ends before that, all requests are
// broken off, nothing more is committed, and others take the shards when the trust of this node is
// certainly over. The errors are those of membership.Node.Run. Run is called once.
func (n *Node) Run(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	left := &outputLeft{Node: n, tried: make(map[cluster.Shard]cluster.Sequence)}
	readers.Go(func() { n.serve(reading) })
	readers.Go(func() { n.engines.scope.run(reading) })
	if n.engines.maxPages != nil {
		readers.Go(func() { n.engines.maxPages.run(reading) })
	}
	if n.engines.o.Crawl.ExitWhenDone || n.engines.maxPages != nil {
		readers.Go(func() { n.leaveAtEnd(reading, left) })
	}
	if n.engines.recrawls != nil {
		readers.Go(func() { n.engines.recrawls.run(reading) })
		readers.Go(func() { n.engines.divideRecrawls(reading) })
	}
	readers.Go(func() { n.engines.desired.run(reading) })
	readers.Go(func() { n.engines.followDesired(reading) })
	old := &oldDatabases{engines: n.engines, member: n.member, since: make(map[cluster.Shard]time.Duration)}
	readers.Go(func() { old.run(reading) })
	readers.Go(func() { n.engines.eraseLeft(reading) })
	readers.Go(func() { left.run(reading) })
	readers.Go(func() { n.follow(reading) })
	readers.Go(func() { n.engines.makeSnapshots(reading) })
	readers.Go(func() { newDiskWatch(n.member, n.engines.o, n.engines.log).run(reading) })
	err := n.member.Run(ctx)
	n.engines.running.Wait()
	stop()
	readers.Wait()
	n.routes.Close()
	n.engines.shared.Close()
	return err
}

// Leave makes the node hand over its shards in an orderly way. Run returns when that is done.
func (n *Node) Leave() { n.member.Leave() }

// Status returns what the node knows of its cluster.
func (n *Node) Status() membership.Status { return n.member.Status() }

// Over returns a channel that is closed when the crawl is over on all nodes. The node leaves then.
func (n *Node) Over() <-chan struct{} { return n.over }

// Shards returns the number of shards of the cluster.
func (n *Node) Shards() int { return n.engines.o.Cluster.Shards }

// Owner returns the node that owns a shard as far as this one knows; empty: nobody, or Run is over.
func (n *Node) Owner(s cluster.Shard) string { return n.member.Owner(s) }

// Summary is what the engines of a node came to.
type Summary struct {
	Finished  bool              // the crawl was over on all nodes
	MaxPages  bool              // it was, since all pages of Options.Crawl.MaxPages were fetched
	Fresh     bool              // at least one request was made or one URL added
	Failed    map[string]uint64 // URLs given up, by kind of failure
	Queued    int               // URLs left in the shards that the node owned when the crawl was over
	Postponed []crawl.Postponed // hosts of these shards with URLs that could not be fetched, most first
}

// add counts an engine that has ended.
func (s *Summary) add(one *crawl.Summary) {
	s.Fresh = s.Fresh || one.Fresh
	for kind, n := range one.Status.Failed {
		if s.Failed == nil {
			s.Failed = make(map[string]uint64)
		}
		s.Failed[kind] += n
	}
	if s.Finished { // before that, another node goes on with what is left
		s.Queued += one.Status.URLs["queued"] + one.Status.URLs["retrying"]
		s.Postponed = append(s.Postponed, one.Postponed...)
	}
}

// Summary returns what the engines came to. It is complete after Run.
func (n *Node) Summary() Summary {
	n.engines.mu.Lock()
	defer n.engines.mu.Unlock()
	s := n.engines.summary
	s.Failed, s.Postponed = maps.Clone(s.Failed), slices.Clone(s.Postponed)
	slices.SortFunc(s.Postponed, func(a, b crawl.Postponed) int { return cmp.Compare(b.URLs, a.URLs) })
	return s
}
