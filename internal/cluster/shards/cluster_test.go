//go:build cluster

package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestClusterKills: a node is killed by SIGKILL, a hundred times. The crawl is that of one machine, each
// host has its delay, a page is requested again only where a node has died, and no URL that a client has
// an acknowledgement for is lost.
func TestClusterKills(t *testing.T) {
	t.Parallel()
	killAtRandom(t, 100)
}

// cut cuts the child off from all servers; mend lets everything pass again.
func (c *child) cut() {
	for _, p := range c.proxies {
		p.Cut()
	}
}

func (c *child) mend() {
	for _, p := range c.proxies {
		p.Mend()
	}
}

// isMember reports whether the child has said in its log that it is a member.
func (c *child) isMember() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.log, func(line string) bool { return strings.Contains(line, "is confirmed") })
}

// TestClusterCutOff: a node is cut off from NATS for a minute, with the web open to it. It stops before
// another node begins.
func TestClusterCutOff(t *testing.T) {
	t.Parallel()
	w, g := newLong(t, 1, serversTTL)
	all := w.startChildren("a", "b", "c")
	w.goesOn("after the start", 3)
	var victim *child
	w.eventually("each node has hosts", func() error {
		victim = nil
		for _, c := range all {
			if !slices.ContainsFunc(w.web.Sites(),
				func(host string) bool { return slices.Contains(c.owns(), shardOf(host)) }) {
				continue
			}
			victim = c
		}
		if victim == nil {
			return errNotYet
		}
		return nil
	})
	lost := victim.owns()
	from := time.Now()
	victim.cut()
	time.Sleep(time.Minute)
	to := time.Now()
	victim.mend()
	for _, host := range w.web.Sites() {
		if !slices.Contains(lost, shardOf(host)) {
			continue
		}
		log := w.web.Requests().Host(host).Filter(func(q testweb.Request) bool {
			return q.Start.After(from) && q.Start.Before(to)
		})
		first := slices.IndexFunc(log, func(q testweb.Request) bool { return q.UserAgent != victim.agent })
		if first < 0 {
			t.Errorf("%s: nobody has taken it in a minute", host)
			continue
		}
		for _, q := range log[first:] {
			assert.Not(t, q.UserAgent, victim.agent, host, q.Path,
				"was requested by the node that was cut off, after another node had begun")
		}
	}
	w.eventually("the node is back", func() error {
		if len(w.by(victim.agent).Filter(func(q testweb.Request) bool { return q.Start.After(to) })) < 10 {
			return errNotYet
		}
		return nil
	})
	want := w.finish(g)
	w.leaveAll()
	t.Logf("%d pages, %d of them twice", len(want), w.checkRepeats(want))
}

// TestClusterServers: one of three NATS servers is killed, the one that leads, two, and all. With two the
// crawl goes on, with one it stands still, and goes on after that. Nothing is lost or requested twice.
func TestClusterServers(t *testing.T) {
	t.Parallel()
	w, g := newLong(t, 3, serversTTL)
	all := w.startChildren("a", "b", "c")
	w.goesOn("after the start", 3)
	client := w.startClient()
	for range 2 {
		leader := w.leader()
		for _, victim := range []int{(leader + 1) % 3, leader} {
			w.servers.Stop(victim)
			w.goesOn("with two servers", 12)
			w.servers.Start(victim)
			w.goesOn("with three servers", 12)
		}
	}
	for _, victims := range [][]int{{0, 1}, {0, 1, 2}} {
		for _, i := range victims {
			w.servers.Stop(i)
		}
		w.eventually("the crawl stands still", func() error {
			for _, c := range all {
				if owned := c.owns(); len(owned) > 0 {
					return fmt.Errorf("%s has %v", c.name, owned)
				}
			}
			return nil
		})
		still := time.Now()
		time.Sleep(10 * time.Second) // for requests that should not be made
		w.checkStill(t, still)
		for _, i := range victims {
			w.servers.Start(i)
		}
		w.goesOn("with three servers", 12)
	}
	client.stop()
	want := client.acknowledged(w.finish(g))
	w.leaveAll()
	t.Logf("%d pages, %d of them twice", len(want), w.checkRepeats(want))
}

// leader returns the number of the server that leads the stream of the logs.
func (w *world) leader() (leader int) {
	w.t.Helper()
	nc, js := natstest.Connect(w.t, natsconn.Options{URLs: w.servers.URLs(), Node: "test", Names: names})
	defer nc.Close()
	w.eventually("a server leads", func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
		defer cancel()
		stream, err := js.Stream(ctx, names.Stream())
		if err != nil {
			return err
		}
		var info *jetstream.StreamInfo
		if info, err = stream.Info(ctx); err != nil {
			return err
		}
		if n, _ := fmt.Sscanf(info.Cluster.Leader, "server%d", &leader); n != 1 {
			return errors.New("nobody leads")
		}
		return nil
	})
	return leader
}

// TestClusterSlowServers: a round trip to the servers takes half a second. The crawl goes on, when nodes
// leave and come back too.
func TestClusterSlowServers(t *testing.T) {
	t.Parallel()
	w, g := newLong(t, 1, longTTL)
	slow := func(c *child) {
		for _, p := range c.proxies {
			p.Delay(250 * time.Millisecond) // each way
		}
	}
	all := w.startChildren("a", "b", "c")
	for _, c := range all {
		slow(c)
	}
	w.goesOn("with slow servers", 12)
	all[0].leave()
	w.goesOn("with two nodes", 12)
	slow(w.startChild(all[0].name, all[0].dir))
	w.goesOn("with three nodes", 12)
	want := w.finish(g)
	w.leaveAll()
	t.Logf("%d pages, %d of them twice", len(want), w.checkRepeats(want))
}

// TestClusterChurn: for five minutes a node joins or leaves each ten seconds. No shard is without an owner
// for longer than a minute, and no page is requested twice.
func TestClusterChurn(t *testing.T) {
	t.Parallel()
	w, g := newLong(t, 1, longTTL)
	w.startChildren("a")
	w.goesOn("after the start", 3)
	ownerless := w.ownerless()
	client := w.startClient()
	nodes, dirs := []string{"b", "c"}, []string{t.TempDir(), t.TempDir()}
	var visitors [2]*child
	for i := range 30 {
		began := time.Now()
		if v := visitors[i%2]; v != nil {
			v.leave()
			visitors[i%2] = nil
		} else {
			visitors[i%2] = w.startChild(nodes[i%2], dirs[i%2])
		}
		time.Sleep(10*time.Second - time.Since(began))
	}
	client.stop()
	want := client.acknowledged(w.finish(g))
	w.checkOwnerless(ownerless(), time.Minute)
	w.leaveAll()
	by := make(map[string]int)
	for _, q := range w.web.Requests() {
		by[q.UserAgent]++
	}
	assert.AtLeast(t, len(by), 5, "requests by process", by)
	t.Logf("%d pages, %d of them twice", len(want), w.checkRepeats(want))
}

// TestClusterRollingRestart: each of three nodes leaves and comes back. Nothing is lost or requested
// twice, and no shard is without an owner for longer than a hand-over takes.
func TestClusterRollingRestart(t *testing.T) {
	t.Parallel()
	w, g := newLong(t, 1, longTTL)
	all := w.startChildren("a", "b", "c")
	w.goesOn("after the start", 3)
	ownerless := w.ownerless()
	client := w.startClient()
	for _, c := range all {
		began := time.Now()
		c.leave()
		t.Logf("%s has left after %v", c.name, time.Since(began).Round(time.Millisecond))
		w.goesOn("with two nodes", 3)
		back := w.startChild(c.name, c.dir)
		w.eventually("the node is back", func() error {
			if !back.isMember() {
				return errNotYet
			}
			return nil
		})
		w.goesOn("with three nodes", 3)
	}
	client.stop()
	want := client.acknowledged(w.finish(g))
	w.checkOwnerless(ownerless(), 5*time.Second)
	w.leaveAll()
	t.Logf("%d pages, %d of them twice", len(want), w.checkRepeats(want))
}

// TestClusterManyShards: three nodes with 1,024 shards leave and come back one after the other. The servers have a few
// consumers for each node, and the crawl goes on.
func TestClusterManyShards(t *testing.T) {
	const many, limit = 1024, 250 // a quarter of what a server permits by default
	web := serve(t, ring())
	w := newWorldOf(t, web, allSeeds(t, web), natstest.Start(t, names, 1, nil), 20*time.Millisecond, serversTTL)
	w.alter = func(o *Options) { o.Cluster.Shards, o.Timeout = many, 10*time.Second }
	began := time.Now()
	var all []*process
	for _, name := range []string{"one", "two", "three"} {
		all = append(all, w.start(name, t.TempDir()))
	}
	w.allOwned(all, many)
	t.Logf("%d shards are owned by %d nodes after %v", many, len(all), time.Since(began).Round(time.Millisecond))
	_, most := w.rollingRestart(all, many)
	t.Logf("at most %d consumers", most)
	assert.AtMost(t, most, limit, "consumers for", len(all), "nodes with", many, "shards")
	w.crawled(ringPages())
	w.leaveRest()
}
