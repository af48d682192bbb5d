package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/amble-crawler/amble/internal/boot"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/membership"
	"github.com/amble-crawler/amble/internal/natsconn"
	"github.com/amble-crawler/amble/internal/node"
	"github.com/amble-crawler/amble/internal/shards"
	"github.com/amble-crawler/amble/storage"
)

// member is this process as a node of a cluster: the shards that it owns instead of one crawl.
type member struct {
	*crawling
	node *shards.Node
}

// memberOutcome is what a node has done.
type memberOutcome struct {
	shards.Progress
	took time.Duration
	left bool // its shards were handed over
}

// Times of a node.
const (
	serverPatience = 20 * time.Second       // until the NATS server inside the process takes connections
	openTimeout    = 5 * time.Second        // for one attempt to join
	openAgain      = 500 * time.Millisecond // between two attempts
	reportAgain    = 10 * time.Second       // between two lines that say why it does not join
	leaveTime      = 10 * time.Second       // to hand over, besides crawl.shutdown_grace
)

// run crawls the shards that fall to this node until a signal arrives. The first one makes it hand them
// over. Its errors have an exit code.
func (m *member) run(ctx context.Context) (out memberOutcome, err error) {
	options, err := m.options()
	if err != nil {
		return out, exit(exitUsage, err)
	}
	if limit, known := descriptorLimit(); known {
		if err := checkDescriptors(limit, &node.Options{Crawl: options.Crawl}, func(text string) { m.notice("warning", text) }); err != nil {
			return out, err
		}
	}
	defer redirectStandardLog(m.log)()
	ctx, stop := interruptible(ctx, m.messages, "amble: leaving the cluster; the other nodes take over the shards. "+
		"A second signal stops at once")
	defer stop()
	nats, err := m.startNATS()
	if err != nil {
		return out, err
	}
	if nats != nil {
		defer nats.Stop()
	}
	disconnect, err := m.connect(ctx, nats, options)
	if err != nil {
		return out, err
	}
	defer disconnect()
	m.settings.apply = func(context.Context, crawl.Live) error { return errFixed }
	if m.screen == nil {
		defer m.settings.reloadOnHangup(ctx)() // on a terminal the signal means that the terminal is gone
	}
	api := m.serverOptions()
	api.Cluster = m.node
	server, err := m.serve(api, nil)
	if err != nil {
		return out, err
	}
	out, err = m.crawl(ctx)
	return out, errors.Join(err, closeServer(server))
}

// errFixed is the error of a change of settings.
var errFixed = errors.New("a node of a cluster reads its settings when it starts: change them on all nodes, and start one " +
	"after the other again")

// options returns the options of the node.
func (m *member) options() (shards.Options, error) {
	engines, err := m.config.CrawlOptions(programVersion())
	if err != nil {
		return shards.Options{}, err
	}
	c := &m.config.Cluster
	o := shards.DefaultOptions(engines)
	o.Crawl.ExitWhenDone = engines.ExitWhenDone
	o.Seeds, o.Names, o.Replicas, o.Uptime = m.seeds, m.config.ClusterNames(), c.Replicas, boot.Uptime()
	o.Cluster.Node, o.Cluster.Shards, o.Cluster.Weight = m.config.NodeName(), c.Shards, uint16(c.Weight)
	if o.Uptime == nil {
		return o, errors.New("amble knows no clock of this system that counts while the machine sleeps, so it cannot be a " +
			"node of a cluster: remove cluster.urls and cluster.embed.listen")
	}
	if m.config.URLFrontier.Listen != "" {
		return o, fmt.Errorf("%s: urlfrontier.listen cannot be used in a cluster: remove it",
			m.config.Source("urlfrontier.listen"))
	}
	return o, o.Validate()
}

// startNATS starts the NATS server inside the process; nil: there is none.
func (m *member) startNATS() (*natsconn.Server, error) {
	if m.config.Cluster.Embed.Listen == "" {
		m.notice("warning", "amble cannot see whether the NATS servers of cluster.urls sync what they acknowledge: set "+
			"sync_interval: always in their configuration, or a power failure may lose results that were committed")
		return nil, nil
	}
	o := m.config.EmbeddedServer()
	o.Log = func(level, text string) { m.log.Debug("NATS: "+text, "nats_level", level) }
	server, err := natsconn.Start(o, serverPatience)
	if err != nil {
		return nil, exit(exitUsage, fmt.Errorf("%s: %w", m.config.Source("cluster.embed.listen"), err))
	}
	m.log.Info("the NATS server of this node listens", "url", server.URL(), "routes", server.RoutesURL())
	return server, nil
}

// connect connects to the servers and opens the node, again and again while they are down: other servers may
// be started later than this node.
func (m *member) connect(ctx context.Context, server *natsconn.Server, o shards.Options) (disconnect func(), err error) {
	connection := m.config.Connection()
	connection.Server = server
	connection.Events = func(event string, err error) {
		if err == nil {
			m.log.Info(event)
		} else {
			m.log.Warn(event, "error", err)
		}
	}
	var reported time.Time
	timeout := openTimeout / 8
	for begun := time.Now(); ; timeout = min(2*timeout, openTimeout) {
		if disconnect, err = m.open(ctx, connection, o, timeout); err == nil {
			return disconnect, nil
		}
		if !errors.Is(err, natsconn.ErrDown) && !errors.Is(err, storage.ErrLogDown) {
			return nil, refusedError(ctx, m, err)
		}
		if now := time.Now(); now.Sub(begun) > openTimeout && now.Sub(reported) > reportAgain {
			m.log.Warn("waiting for the NATS servers: at the first start of the cluster as many have to run as "+
				"cluster.replicas says, later on a majority", "replicas", o.Replicas, "for", span(now.Sub(begun)), "error", err)
			reported = now
		}
		select {
		case <-ctx.Done():
			return nil, exit(exitProblem, fmt.Errorf("stopped before the cluster could be joined: %w", err))
		case <-time.After(openAgain):
		}
	}
}

// open is one attempt to join.
func (m *member) open(ctx context.Context, connection natsconn.Options, o shards.Options,
	timeout time.Duration) (disconnect func(), err error) {
	nc, js, err := natsconn.Connect(connection)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if m.node, err = shards.Open(limited, nc, js, o, m.log); err != nil {
		nc.Close()
		return nil, err
	}
	return nc.Close, nil
}

// refusedError gives the error of a node that cannot join its exit code.
func refusedError(ctx context.Context, m *member, err error) error {
	var path *os.PathError
	switch {
	case errors.Is(err, membership.ErrInUse):
		return exit(exitInUse, fmt.Errorf("%w: wait for it or stop it, or set another data_dir", err))
	case errors.As(err, &path):
		return makeError(ctx, m.config, err)
	}
	return exit(exitRefused, err)
}

// crawl runs the node until a signal has made it leave.
func (m *member) crawl(ctx context.Context) (out memberOutcome, err error) {
	running, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	defer context.AfterFunc(ctx, func() {
		m.node.Leave()
		time.AfterFunc(m.config.Crawl.ShutdownGrace+leaveTime, breakOff)
	})()
	started := time.Now()
	unwatch := watch(m.show(), m.screen)
	stopping := findSupervisor(os.Getenv).watch(m.vital)
	err = m.node.Run(running)
	stopping()
	unwatch()
	out.Progress, out.took, out.left = m.node.Progress(), time.Since(started), err == nil
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, membership.ErrNameTaken):
		return out, exit(exitRefused, err)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return out, nil
	}
	return out, exit(exitProblem, fmt.Errorf("the node had to stop: %w. What was committed is safe; the same command "+
		"continues", err))
}

// vital is what a supervisor wants to know of the node.
func (m *member) vital(time.Time, time.Duration) vital {
	s, p := m.node.Status(), m.node.Progress()
	return vital{ready: s.Joined, alive: true, text: fmt.Sprintf("node of cluster %s: %s, %d fetched, %d queued, "+
		"%.1f pages/s", s.Cluster, plural(p.Open, "shard"), p.Pages, p.Queued, p.PagesPerSec)}
}

// show shows how the node gets on.
func (m *member) show() progress {
	return progress{
		log:  func() { logNode(m.log, m.node.Status(), m.node.Progress()) },
		rows: func(_ time.Time, width int) []row { return nodeRows(m.node.Status(), m.node.Progress(), width) },
	}
}

// print prints what the node has done, and how to go on.
func (m *member) print(w io.Writer, out memberOutcome) error {
	text := fmt.Sprintf("Node %s fetched %s (%s received) in %s", m.config.NodeName(), plural(out.Pages, "page"),
		size(out.Bytes), span(out.took))
	if out.left {
		text += fmt.Sprintf(" and has left cluster %s. Other nodes take its shards; the same command joins again.\n",
			m.config.Cluster.Name)
	} else {
		text += fmt.Sprintf(". It could not tell cluster %s that it leaves, because the NATS servers did not answer: the "+
			"other nodes take its shards when they have not heard from it for a while. The same command joins again.\n",
			m.config.Cluster.Name)
	}
	_, err := io.WriteString(w, text)
	return err
}
