//go:build !core

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/cluster/clusterapi"
	"github.com/amble-crawler/amble/internal/cluster/clusterconf"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/cluster/shards"
	clustercommand "github.com/amble-crawler/amble/internal/cluster/shards/command"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/internal/system/uptime"
	"github.com/amble-crawler/amble/storage"
)

// member is this process as a node of a cluster: the shards that it owns instead of one crawl.
type member struct {
	*crawling
	shared *nodeSettings
	status func(context.Context) server.CrawlStatus // of the whole crawl
	node   *shards.Node
	js     jetstream.JetStream // of its connection
}

func newMember(k *crawling) *member {
	return &member{crawling: k, shared: &nodeSettings{liveSettings: k.settings}}
}

// clusterModule is the crawl of several machines together.
func clusterModule() module {
	return module{
		command: func(settings *access.Settings) *cobra.Command {
			return console.Group("cluster", "Show and change a cluster of nodes", clustercommand.Long,
				clustercommand.New(&clustercommand.Program{
					Now: time.Now, Load: settings.Load, Crawl: settings.CrawlOf, Node: nodeOptions,
					StartServer: startNATS,
				})...)
		},
		run: func(command *cobra.Command, k *crawling, badSeeds int) (took bool, err error) {
			if !k.config.InCluster() {
				return false, nil
			}
			m := newMember(k)
			out, err := m.run(command.Context())
			if err == nil && k.end != nil {
				takeOutcome(k.end, &out)
			} else if err == nil {
				err = m.print(command.OutOrStdout(), out, badSeeds)
			}
			if err == nil {
				err = k.closed(command.Context(), !out.Finished)
			}
			return true, err
		},
	}
}

// Times of a node.
const (
	serverTimeout = 20 * time.Second       // until the NATS server inside the process takes connections
	openTimeout   = 5 * time.Second        // for one attempt to join
	openAgain     = 500 * time.Millisecond // between two attempts
	reportAgain   = 10 * time.Second       // between two lines that say why it does not join
	leaveTime     = 10 * time.Second       // to hand over, besides crawl.shutdown_grace
	othersTime    = leaveTime              // for the others to leave at the end of the crawl
	othersAgain   = 100 * time.Millisecond // between two looks at that
)

// run crawls the shards that fall to this node until the crawl is over or a signal arrives. The first one
// makes it hand them over. Its errors have an exit code.
func (m *member) run(ctx context.Context) (out clustercommand.Outcome, err error) {
	options, err := m.options()
	if err != nil {
		return out, console.Exit(console.ExitUsage, err)
	}
	if limit, known := system.Descriptors(); known {
		warn := func(text string) { m.notice("warning", text) }
		if err := checkDescriptors(limit, &options.Crawl, nil, warn); err != nil {
			return out, err
		}
	}
	defer console.RedirectStandardLog(m.log, time.Now)()
	ctx, stop := console.Interruptible(ctx, m.messages,
		"amble: leaving the cluster; the other nodes take over the shards. A second signal stops at once")
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
	m.settings.apply, m.settings.mayChange = m.node.Change, m.mayChange
	m.shared.publish = func(ctx context.Context, reload bool, next func([]byte) ([]byte, error)) error {
		_, err := m.node.SetSettings(ctx, reload, next)
		return err
	}
	if err := m.agree(ctx); err != nil {
		return out, err
	}
	if m.screen == nil {
		// On a terminal the signal means that the terminal is gone.
		defer m.settings.reloadOnHangup(ctx, m.settings.reread)()
	}
	api := m.serverOptions()
	api.Division, api.Settings = clusterapi.New(m.node, api.DataDir, api.Now), m.shared
	m.status = api.Division.Status
	m.settings.changeSeeds = func(ctx context.Context, w crawl.SeedWish) (crawl.SeedCounts, error) {
		return clusterapi.ReloadSeeds(ctx, api.Division, w)
	}
	serving, err := m.serve(api, nil)
	if err != nil {
		return out, err
	}
	_, unserve, err := m.served(ctx)
	if err == nil {
		out, err = m.crawl(ctx)
		unserve()
	}
	if nats != nil && out.Finished {
		m.waitForOthers(ctx)
	}
	return out, errors.Join(err, closeServer(serving))
}

// options returns the options of the node.
func (m *member) options() (shards.Options, error) {
	engines, err := m.crawlOptions()
	if err != nil {
		return shards.Options{}, err
	}
	c := &m.config.Cluster
	o := shards.DefaultOptions(engines)
	o.Settings, o.Agreed, o.Erase = m.shared, m.config.Agreed(), eraseDirectory
	o.Seeds, o.Names, o.Replicas, o.Uptime = m.seeds, clusterconf.Names(m.config), c.Replicas, uptime.Clock()
	o.Cluster.Node, o.Cluster.Shards, o.Cluster.Weight = m.config.Cluster.NodeName(), c.Shards, uint16(c.Weight)
	if o.Uptime == nil {
		return o,
			errors.New("amble knows no clock of this system that counts while the machine sleeps, so it cannot be a " +
				"node of a cluster: remove cluster.urls and cluster.embed.listen")
	}
	if m.config.URLFrontier.Listen != "" {
		return o, fmt.Errorf("%s: urlfrontier.listen cannot be used in a cluster: remove it",
			m.config.Source("urlfrontier.listen"))
	}
	return o, o.Validate()
}

// nodeOptions returns the options that a node of the settings has.
func nodeOptions(messages io.Writer, c *config.Config, urls []string) (shards.Options, error) {
	k := newCrawling(c, nil, messages)
	seeds, err := readSeeds(c, urls, func(text string) { k.notice("bad seed", text) })
	if err != nil {
		return shards.Options{}, err
	}
	k.seeds = seeds.good
	options, err := newMember(k).options()
	if err != nil {
		return options, console.Exit(console.ExitUsage, err)
	}
	return options, nil
}

// startNATS starts the NATS server of the settings.
func startNATS(messages io.Writer, c *config.Config) (*natsconn.Server, error) {
	return newMember(newCrawling(c, nil, messages)).startNATS()
}

// startNATS starts the NATS server inside the process; nil: there is none.
func (m *member) startNATS() (*natsconn.Server, error) {
	if m.config.Cluster.Embed.Listen == "" {
		m.notice("warning",
			"amble cannot see whether the NATS servers of cluster.urls sync what they acknowledge: set "+
				"sync_interval: always in their configuration, or a power failure may lose results that were committed")
		if open := clusterconf.OpenServers(m.config); len(open) > 0 {
			m.notice("warning", "whoever reaches the NATS servers "+strings.Join(open, ", ")+
				" can read and change the crawl: give them credentials, and set cluster.credentials")
		}
		return nil, nil
	}
	o := clusterconf.Server(m.config)
	o.Log = func(level, text string) { m.log.Debug("NATS: "+text, "nats_level", level) }
	server, err := natsconn.Start(o, serverTimeout)
	if err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("%s: %w", m.config.Source("cluster.embed.listen"), err))
	}
	m.log.Info("the NATS server of this node listens", "url", server.URL(), "routes", server.RoutesURL())
	return server, nil
}

// connect connects to the servers and opens the node, again and again while they are down: other servers may
// be started later than this node.
func (m *member) connect(
	ctx context.Context, server *natsconn.Server, o shards.Options,
) (disconnect func(), err error) {
	connection := clusterconf.Options(m.config)
	connection.Server = server
	connection.Events = func(event string, err error) {
		if err == nil {
			m.log.Info(event)
		} else {
			m.log.Warn(event, "error", err)
		}
	}
	var reported time.Time
	supervisor := console.FindSupervisor(os.Getenv, time.Now)
	timeout := openTimeout / 8
	for begun := time.Now(); ; timeout = min(2*timeout, openTimeout) {
		if disconnect, err = m.open(ctx, connection, o, timeout); err == nil {
			return disconnect, nil
		}
		reserved := errors.Is(err, membership.ErrReserved)
		if !reserved && !errors.Is(err, natsconn.ErrDown) && !errors.Is(err, storage.ErrLogDown) {
			return nil, refusedError(ctx, m, err)
		}
		if now := time.Now(); reserved && now.Sub(reported) > reportAgain {
			m.log.Warn("waiting until nodes can join", "error", err)
			supervisor.Waits("until nodes can join: " + err.Error())
			reported = now
		} else if now.Sub(begun) > openTimeout && now.Sub(reported) > reportAgain {
			m.log.Warn("waiting for the NATS servers: at the first start of the cluster as many have to run as "+
				"cluster.replicas says, later on a majority", "replicas", o.Replicas, "for",
				console.Span(now.Sub(begun)),
				"error", err)
			supervisor.Waits("for the NATS servers")
			reported = now
		}
		select {
		case <-ctx.Done():
			return nil,
				console.Exit(console.ExitProblem, fmt.Errorf("stopped before the cluster could be joined: %w", err))
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
	m.js = js
	return nc.Close, nil
}

// refusedError gives the error of a node that cannot join its exit code.
func refusedError(ctx context.Context, m *member, err error) error {
	var path *os.PathError
	switch {
	case errors.Is(err, membership.ErrInUse):
		return console.Exit(console.ExitInUse, fmt.Errorf("%w: wait for it or stop it, or set another data_dir", err))
	case errors.As(err, &path):
		return access.MakeError(ctx, m.config, err)
	}
	return console.Exit(console.ExitRefused, err)
}

// crawl runs the node until the end of the crawl or a signal has made it leave.
func (m *member) crawl(ctx context.Context) (out clustercommand.Outcome, err error) {
	running, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	reached, limit := make(chan crawl.End), make(chan crawl.End, 1)
	go m.watchLimits(running, reached)
	go func() {
		within := leaveTime
		select {
		case <-m.node.Over(): // nothing is in flight
		case <-ctx.Done():
			m.node.Leave()
			within += m.config.Crawl.ShutdownGrace
		case end := <-reached:
			limit <- end
			m.node.Leave()
			within += m.config.Crawl.ShutdownGrace
		case <-running.Done():
		}
		select {
		case <-time.After(within):
			breakOff()
		case <-running.Done():
		}
	}()
	started := time.Now()
	unwatch := console.Watch(m.show(), m.screen)
	stopping := console.FindSupervisor(os.Getenv, time.Now).Watch(m.vital)
	err = m.node.Run(running)
	stopping()
	unwatch()
	out.Progress, out.Summary, out.Took, out.Left = m.node.Progress(), m.node.Summary(), time.Since(started), err == nil
	select {
	case out.Limit = <-limit:
	default:
	}
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, membership.ErrNameTaken):
		return out, console.Exit(console.ExitRefused, err)
	case (ctx.Err() != nil || out.Finished) && errors.Is(err, context.Canceled):
		return out, nil
	}
	return out,
		console.Exit(console.ExitProblem,
			fmt.Errorf("the node had to stop: %w. What was committed is safe; the same command continues", err))
}

// waitForOthers waits until the other nodes have left too, or cannot: as long as their server and that of this
// node are a majority, each of them can say that it leaves.
func (m *member) waitForOthers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, othersTime)
	defer cancel()
	for {
		limited, cancel := context.WithTimeout(ctx, openTimeout)
		s, err := membership.ReadSurvey(limited, m.js, clusterconf.Names(m.config))
		cancel()
		if err != nil || !slices.ContainsFunc(s.Members, mayAct) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(othersAgain):
		}
	}
}

// mayAct reports whether a node has not left and may still run.
func mayAct(n membership.Member) bool {
	return n.State != membership.Left && n.State != membership.Dead
}

// vital is what a supervisor wants to know of the node.
func (m *member) vital(time.Time, time.Duration) console.Vital {
	s, p := m.node.Status(), m.node.Progress()
	return console.Vital{Ready: s.Joined, Alive: true,
		Text: fmt.Sprintf("node of cluster %s: %s, %d fetched, %d queued, "+
			"%.1f pages/s", s.Cluster, console.Plural(p.Open, "shard"), p.Pages, p.Queued, p.PagesPerSec)}
}

// show shows how the node gets on.
func (m *member) show() console.Progress {
	return console.Progress{
		Log: func() { clustercommand.LogNode(m.log, m.node.Status(), m.node.Progress()) },
		Rows: func(width int) []console.Row {
			return clustercommand.NodeRows(m.node.Status(), m.node.Progress(), width)
		},
	}
}
