//go:build cluster

package membership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// longOptions are options for three servers, whose elections take up to 10 s.
func longOptions(o *Options) {
	c := &o.Cluster
	c.TTL, c.Margin, c.LastStart = 15*time.Second, 1500*time.Millisecond, time.Second
	c.Heartbeat, c.Retry, c.Settle = 2*time.Second, 2*time.Second, 2*time.Second
}

// TestClusterServers: one of three servers is killed by SIGKILL, the one that leads, two, and all. No
// shard has two owners; with two servers the nodes go on, with one they stand still and then go on.
func TestClusterServers(t *testing.T) {
	w := newWorldOf(t, 3, natstest.StartProcesses)
	w.alter = longOptions
	a, b, c := w.start("a"), w.start("b"), w.start("c")
	w.served("after the start", a, b, c)
	epochs := w.epochs(a, b, c)
	nodes := []*process{a, b, c}

	for range 2 {
		leader := w.leader(a)
		follower := (leader + 1) % 3
		w.servers.Stop(follower)
		w.renewed("with two servers", nodes)
		w.servers.Start(follower)
		w.renewed("with three servers", nodes)
	}
	for range 2 {
		leader := w.leader(a)
		w.servers.Stop(leader)
		w.renewed("without the leader", nodes)
		w.servers.Start(leader)
		w.renewed("with three servers", nodes)
	}
	w.served("after the leaders", a, b, c)

	w.servers.Stop(0)
	w.servers.Stop(1)
	testkit.Eventually(t, "nobody goes on with one server", func() error {
		for _, p := range nodes {
			if p.node.Trust().Left() > 0 || len(p.engines.owned()) > 0 {
				return errNotYet
			}
		}
		return nil
	})
	w.servers.Start(0)
	w.servers.Start(1)
	w.served("after two servers were away", a, b, c)

	for i := range 3 {
		w.servers.Stop(i)
	}
	for i := range 3 {
		w.servers.Start(i)
	}
	w.served("after all servers have begun again", a, b, c)
	moved := 0
	for s, epoch := range w.epochs(a, b, c) {
		if epochs[s] != epoch {
			moved++
		}
	}
	t.Logf("%d of %d shards have another epoch", moved, len(epochs))
	b.kill()
	w.served("after a kill", a, c)
	w.judge.check(t)
}

// leader returns the number of the server that leads the stream of the registers.
func (w *world) leader(p *process) (leader int) {
	w.t.Helper()
	testkit.Eventually(w.t, "a server leads", func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
		defer cancel()
		list, err := p.node.Replicas(ctx)
		for _, r := range list {
			if n, _ := fmt.Sscanf(r.Server, "server%d", &leader); r.Leader && n == 1 {
				return nil
			}
		}
		return errors.Join(err, errNotYet)
	})
	return leader
}

// renewed waits until each node has sent a heartbeat after now that was written.
func (w *world) renewed(what string, nodes []*process) {
	w.t.Helper()
	start := uptime()
	for _, p := range nodes {
		testkit.Eventually(w.t, what+": heartbeats of "+p.name, func() error {
			if r := p.node.Status().Renewed; r < 0 || uptime()-r < start {
				return errNotYet
			}
			return nil
		})
	}
}

// TestClusterChurn: for three minutes a node joins or leaves, dies, or is cut off, each few seconds.
func TestClusterChurn(t *testing.T) {
	churn(t, 3*time.Minute)
}

func churn(t *testing.T, long time.Duration) {
	w := newWorld(t, 1)
	first := w.start("node0")
	running := map[string]*process{}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	idle := make(map[cluster.Shard]time.Duration)
	worst := time.Duration(0)
	for end := time.Now().Add(long); time.Now().Before(end); {
		name := []string{"node1", "node2", "node3"}[random.IntN(3)]
		p := running[name]
		switch action := random.IntN(5); {
		case p == nil:
			running[name] = w.start(name)
		case action == 0:
			p.kill()
			delete(running, name)
		case action == 1:
			p.leave()
			delete(running, name)
		case action == 2:
			p.cut()
			pause(context.Background(), time.Duration(random.IntN(4000))*time.Millisecond)
			p.mend()
		case action == 3:
			for _, proxy := range p.proxies {
				proxy.Break()
			}
		default:
			first.proxies[0].Break()
		}
		for range 20 + random.IntN(80) {
			time.Sleep(20 * time.Millisecond)
			worst = max(worst, w.unowned(idle))
		}
	}
	for _, p := range running {
		p.leave()
	}
	w.served("at the end", first)
	w.judge.check(t)
	t.Logf("%d engines; the longest time without an owner: %v", len(w.judge.owners), worst)
}

// unowned returns the longest time for which a shard has had no owner.
func (w *world) unowned(idle map[cluster.Shard]time.Duration) (longest time.Duration) {
	now := uptime()
	owned := make(map[cluster.Shard]bool)
	for _, p := range w.processes() {
		for _, s := range p.engines.owned() {
			owned[s] = true
		}
	}
	for s := range cluster.Shard(24) {
		if owned[s] || idle[s] == 0 {
			idle[s] = now
		}
		longest = max(longest, now-idle[s])
	}
	return longest
}

// TestClusterSlow: with a way to the servers of half a second, everything works, slowly.
func TestClusterSlow(t *testing.T) {
	w := newWorld(t, 1)
	w.alter = longOptions
	a, b := w.start("a"), w.start("b")
	for _, p := range []*process{a, b} {
		p.proxies[0].Delay(250 * time.Millisecond)
	}
	w.served("with slow servers", a, b)
	b.leave()
	w.served("after a node has left", a)
}
