//go:build !core

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/testing/crawlcheck"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// clusterDemo is a run of the demonstration with several nodes, each a process of this program with a
// NATS server inside. One of them is killed in the middle.
type clusterDemo struct {
	*demo
	lab     *crawlcheck.Lab
	out     io.Writer
	servers []string // their NATS servers
	started time.Time
	nodes   []*demoNode
	victim  *demoNode // nil: it was not killed yet
	killed  time.Time
}

// demoNode is a node of the demonstration.
type demoNode struct {
	name, dir string
	command   *exec.Cmd
	ended     chan struct{} // is closed when the process has ended
}

// The bounds of the demonstration.
const (
	demoShards     = 16
	demoTimeout    = 5 * time.Minute // after which it reports what is missing
	demoInterval   = 500 * time.Millisecond
	demoAnswer     = 2 * time.Second // for the NATS servers
	demoSay        = 5 * time.Second // between two lines
	demoSettleTime = 30 * time.Second
)

// demoNodeConfig is the config file of a node.
const demoNodeConfig = `# The settings of a node of a cluster by "amble demo --nodes 3". The web is gone with the demo.
data_dir: ./data
crawl:
  give_up_after: 32s         # a little more than the others wait with a host that a dead node may have requested
  shutdown_grace: 5s
  seeds:
%[2]s
politeness: {delay: %[3]s, ip_rate: 0} # no budget of an address: all hosts have loopback addresses
retry:
  delay: 500ms
fetch:
  headers: ["Demo-Node: %[1]s"] # so that the web can tell the nodes from each other
  contact: https://example.org/amble-demo
  allow_private: true      # the demo's web has loopback addresses only
  resolver: %[4]s # the demo's own DNS
server:
  listen: 127.0.0.1:0      # any free port
cluster:
  name: demo
  node: %[1]s
  shards: %[5]d
  embed:                   # each node has a NATS server; all three keep everything
    listen: %[6]s
    listen_routes: %[7]s
    routes: [%[8]s]
`

// runCluster crawls the web with several nodes, and reports what the web saw.
func (d *demo) runCluster(command *cobra.Command) (err error) {
	lab, err := crawlcheck.New(d.stations())
	if err != nil {
		return err
	}
	c := &clusterDemo{demo: d, lab: lab, out: command.ErrOrStderr(), started: time.Now()}
	ctx, stop := console.UntilInterrupted(command.Context())
	defer stop()
	err = c.run(ctx)
	for _, n := range c.nodes {
		n.kill()
	}
	if err == nil {
		err = c.report(command.OutOrStdout())
	}
	return errors.Join(err, lab.Close())
}

func (c *clusterDemo) run(ctx context.Context) error {
	fmt.Fprintf(c.out,
		"Three nodes crawl a web of %s on loopback addresses, with %s between two requests to a\n"+
			"host, whichever node makes them. Each node is a process with a NATS server inside.\nEverything goes "+
			"to %s\n\n",
		console.Plural(len(c.lab.Homes()), "host"), c.delay, c.dir)
	if err := c.start(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	err := c.watch(limited)
	if ctx.Err() == nil && limited.Err() != nil && c.victim != nil {
		c.say("this takes too long")
		return nil // the report says what is missing
	}
	if err != nil {
		return console.Exit(console.ExitProblem,
			fmt.Errorf("%w; the logs of the nodes are in %s", err, filepath.Join(c.dir, "*", "log.txt")))
	}
	return nil
}

// say prints a line with the time since the start.
func (c *clusterDemo) say(format string, args ...any) {
	fmt.Fprintf(c.out, "%5.1fs  %s\n", time.Since(c.started).Seconds(), fmt.Sprintf(format, args...))
}

// start starts the nodes.
func (c *clusterDemo) start() error {
	addresses, err := freeAddresses(2 * demoNodes)
	if err != nil {
		return err
	}
	for _, address := range addresses[:demoNodes] {
		c.servers = append(c.servers, "nats://"+address)
	}
	for i := range demoNodes {
		n := &demoNode{name: fmt.Sprintf("node%d", i+1), ended: make(chan struct{})}
		n.dir = filepath.Join(c.dir, n.name)
		text := fmt.Sprintf(demoNodeConfig, n.name, demoSeeds(c.lab), c.delay, c.lab.Web.ResolverAddr(),
			demoShards, addresses[i], addresses[demoNodes+i],
			strings.Join(addresses[demoNodes:], ", "))
		if err := os.Mkdir(n.dir, 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(n.config(), []byte(text), 0o640); err != nil {
			return err
		}
		settings, err := config.Load(n.config(), c.settings.Sets, nil)
		if err != nil {
			return err
		}
		c.delay = settings.Politeness.Delay
		if err := n.start(c.settings.Sets); err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
		c.say("%s is process %d", n.name, n.command.Process.Pid)
	}
	return nil
}

// freeAddresses returns loopback addresses at which nothing listens now.
func freeAddresses(count int) (addresses []string, err error) {
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

func (n *demoNode) config() string { return filepath.Join(n.dir, "config.yaml") }

func (n *demoNode) start(sets []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(n.dir, "log.txt"))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	n.command = exec.Command(program, "run", "-c", n.config())
	n.command.Args[0] = os.Args[0]
	for _, set := range sets {
		n.command.Args = append(n.command.Args, "--set", set)
	}
	n.command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AMBLE_") })
	n.command.Stdout, n.command.Stderr = log, log
	if err := n.command.Start(); err != nil {
		return err
	}
	go func() {
		defer close(n.ended)
		_ = n.command.Wait() // its log says it
	}()
	return nil
}

// kill ends the process by SIGKILL, if it runs.
func (n *demoNode) kill() {
	_ = n.command.Process.Kill()
	<-n.ended
}

// runs reports whether the process has not ended.
func (n *demoNode) runs() bool {
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// haveEnded reports whether the crawl is over: all nodes but the dead one have ended by themselves.
func (c *clusterDemo) haveEnded() (bool, error) {
	running := false
	for _, n := range c.nodes {
		switch {
		case n == c.victim:
		case n.runs():
			running = true
		case c.victim == nil || !n.command.ProcessState.Success():
			return false, fmt.Errorf("%s has ended too soon: %s", n.name, n.command.ProcessState)
		}
	}
	return !running, nil
}

// watch shows how the nodes get on, kills one in the middle, and returns when the crawl is over.
func (c *clusterDemo) watch(ctx context.Context) error {
	servers := demoServers{close: func() {}}
	defer func() { servers.close() }()
	var reported time.Time
	over := false // the shards of the dead node have new owners
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(demoInterval):
		}
		if ended, err := c.haveEnded(); err != nil {
			return err
		} else if ended {
			c.say("all pages are fetched: the crawl is over, and the nodes have ended")
			return nil
		}
		log := c.lab.Web.Requests()
		s := servers.survey(ctx, c)
		if time.Since(reported) > demoSay {
			reported = time.Now()
			c.say("%s", c.state(log, s))
		}
		switch {
		case c.victim == nil:
			c.killOne(log, s)
		case !over && s != nil && owned(s, c.victim.name) == 0:
			over = true
			c.say("%s is certainly gone: the others have its shards, and wait for the delay of each host",
				c.victim.name)
		}
	}
}

// state says how many pages each node has requested, and how many shards it owns.
func (c *clusterDemo) state(log testweb.Log, s *membership.Survey) string {
	if s == nil && len(log) == 0 {
		return "the NATS servers find each other and elect a leader"
	}
	var parts []string
	for _, n := range c.nodes {
		part := n.name + " " + console.Grouped(len(n.pages(log)))
		if s != nil {
			part += " (" + console.Plural(owned(s, n.name), "shard") + ")"
		}
		parts = append(parts, part)
	}
	return "pages requested: " + strings.Join(parts, ", ")
}

// requests returns the requests of a node.
func (n *demoNode) requests(log testweb.Log) testweb.Log {
	return log.Filter(func(q testweb.Request) bool { return q.Node == n.name })
}

// pages returns the requests of a node for pages.
func (n *demoNode) pages(log testweb.Log) testweb.Log { return n.requests(log).Pages() }

func owned(s *membership.Survey, node string) (count int) {
	for _, shard := range s.Shards {
		if shard.Node == node {
			count++
		}
	}
	return count
}

// killOne kills the node with the most requests when all nodes have shards and the stations of a restart are under way.
func (c *clusterDemo) killOne(log testweb.Log, s *membership.Survey) {
	if s == nil || !c.lab.KillTime() {
		return
	}
	busiest := c.nodes[0]
	for _, n := range c.nodes {
		if owned(s, n.name) == 0 {
			return
		}
		if len(n.pages(log)) > len(busiest.pages(log)) {
			busiest = n
		}
	}
	c.victim, c.killed = busiest, time.Now()
	busiest.kill()
	c.say("kill -9 %d: %s is dead, in the middle of its work, and its NATS server too. It had %s, which\n        "+
		"nobody touches for 20 seconds: it could be alive and only cut off", busiest.command.Process.Pid, busiest.name,
		console.Plural(owned(s, busiest.name), "shard"))
}

// demoServers is a connection to the NATS servers of the nodes.
type demoServers struct {
	js    jetstream.JetStream // nil: there is none yet
	close func()
}

// survey reads the registers; nil: the servers cannot answer now.
func (d *demoServers) survey(ctx context.Context, c *clusterDemo) *membership.Survey {
	ctx, cancel := context.WithTimeout(ctx, demoAnswer)
	defer cancel()
	o := natsconn.Options{URLs: c.servers, Node: "demo", Names: natsconn.Names{Cluster: "demo"}}
	if d.js == nil {
		nc, js, err := natsconn.Connect(o)
		if err != nil {
			return nil
		}
		d.js, d.close = js, nc.Close
	}
	s, err := membership.ReadSurvey(ctx, d.js, o.Names)
	if err != nil {
		return nil
	}
	return s
}
