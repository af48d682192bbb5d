package membership

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// TestOwners: whatever happens to nodes, to the network and to the server, no shard has two owners,
// and all have one in the end.
func TestOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	a, b, c := w.start("a"), w.start("b"), w.start("c")
	w.served("after the start", a, b, c)

	c.kill()
	w.served("after a kill", a, b)

	// While b is cut off a takes its shards; b comes back.
	b.cut()
	w.served("while a node is cut off", a)
	assert.AtMost(t, len(b.engines.owned()), 0, "a node that was cut off for a TTL owns")
	b.mend()
	w.served("after the cut", a, b)

	// Without a server nobody may go on, and nobody loses anything.
	epochs := w.epochs(a, b)
	w.servers.Stop(0)
	testkit.Eventually(t, "trust ends without a server", func() error {
		if len(a.engines.owned())+len(b.engines.owned()) > 0 || a.node.Trust().Left() > 0 || b.node.Trust().Left() > 0 {
			return errNotYet
		}
		return nil
	})
	w.servers.Start(0)
	w.served("after the server's restart", a, b)
	for s, epoch := range w.epochs(a, b) {
		assert.Equal(t, epochs[s], epoch, "shard", s, "has changed its epoch from in an outage")
	}

	b.leave()
	w.served("after a node has left", a)
	w.judge.mu.Lock()
	for _, o := range w.judge.owners {
		assert.True(t, o.node != "b" || o.epoch != epochs[o.shard] || o.orderly,
			"shard %d was not closed in an orderly way", o.shard)
	}
	w.judge.mu.Unlock()
	status := a.node.Status()
	assert.True(t, status.Joined && status.Connected && status.Renewed >= 0 && status.Unseen <= time.Minute &&
		len(status.Members) == 3, "%+v", status)
	for _, m := range status.Members {
		want := map[string]MemberStatus{"a": {State: "live", Shards: 24}, "b": {State: "left"},
			"c": {State: "left"}}[m.Node]
		assert.True(t, m.State == want.State && m.Shards == want.Shards, "%+v, want %+v", m, want)
	}
	a.leave()
}

// epochs returns the epochs of the shards of some nodes.
func (w *world) epochs(nodes ...*process) map[cluster.Shard]cluster.Sequence {
	epochs := make(map[cluster.Shard]cluster.Sequence)
	for _, p := range nodes {
		p.engines.mu.Lock()
		for h := range p.engines.open {
			epochs[h.Shard()] = h.Epoch()
		}
		p.engines.mu.Unlock()
	}
	return epochs
}
