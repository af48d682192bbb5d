package membership

import (
	"context"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
)

// TestBlindNode: a node whose own heartbeats are written and do not come back follows the registers
// again, after half of a TTL and not before.
func TestBlindNode(t *testing.T) {
	again := 0
	n := new(Node)
	n.o = Options{Cluster: shortOptions("a")}
	n.watch.again = func() { again++ }
	half := n.o.Cluster.TTL / 2
	at := func(d time.Duration) cluster.Instant { return cluster.Instant(time.Hour).Add(d) }
	for _, step := range []struct {
		written, seen cluster.Sequence
		now           time.Duration
		again         int
	}{
		{5, 5, 0, 0}, {8, 5, 1, 0}, {9, 8, half, 0}, // a little behind
		{9, 9, half + 2, 0}, {12, 9, half + 3, 0}, {20, 9, 2*half + 3, 0}, {20, 9, 2*half + 4, 1},
		{20, 9, 2*half + 5, 1}, {20, 9, 3*half + 5, 1}, {20, 9, 3*half + 6, 2},
	} {
		n.watch.written, n.watch.seen = step.written, step.seen
		if n.checkWatch(at(step.now)); again != step.again {
			t.Errorf("%+v: followed again %d times", step, again)
		}
	}
}

// TestNames: nobody can make a node remember any number of names.
func TestNames(t *testing.T) {
	n := &Node{names: make(map[string]struct{})}
	for i := range maxNames {
		must.True(t, n.mayKnow(string(rune(i))), "%v", i)
	}
	assert.True(t, !n.mayKnow("one more") && n.mayKnow(string(rune(7))) && len(n.names) == maxNames, "%d names",
		len(n.names))
}

// TestFollowCutOff: who follows the registers notices that nothing comes any more, and ends with the context
// while the servers cannot be reached: nothing is tried for longer than that.
func TestFollowCutOff(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, names, 1, nil)
	for name, end := range map[string]func(*natstest.Proxy, context.CancelFunc){
		"silence":           func(p *natstest.Proxy, _ context.CancelFunc) { p.Cut() },
		"a lost connection": func(p *natstest.Proxy, _ context.CancelFunc) { p.Break() },
		"the context":       func(p *natstest.Proxy, cancel context.CancelFunc) { p.Cut(); cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			followCutOff(t, servers, end)
		})
	}
}

func followCutOff(t *testing.T, servers *natstest.Servers, end func(*natstest.Proxy, context.CancelFunc)) {
	proxy := natstest.NewProxy(t, servers.Addresses()[0])
	nc, js := natstest.Connect(t,
		natsconn.Options{URLs: []string{proxy.URL()}, Node: "a", Names: names, IgnoreOthers: true})
	defer nc.Close()
	stream := must.Get(natsconn.OpenStream(patient(t), js, names, 1))(t)
	r := &registers{nc: nc, js: js, stream: stream, names: names}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	synced, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- r.follow(ctx, func(message) {}, func() { close(synced) }, "member")
	}()
	select {
	case <-synced:
	case err := <-ended:
		t.Fatal(err)
	}
	end(proxy, cancel)
	select {
	case err := <-ended:
		t.Logf("%v", err)
	case <-time.After(patience):
		t.Fatal("it is still followed")
	}
	proxy.Mend()
	must.Do(t, nc.FlushTimeout(patience))
}
