package membership

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/cluster"
)

// grants are the messages about grants. Requests go to PREFIX.grant.SHARD of the granter, and the owner
// of the shard subscribes to that. Grants go to PREFIX.granted.NODE. gather and flush belong to the loop of
// the node; send and receive are goroutines, because the connection may block while the network is cut.
type grants struct {
	n       *Node
	nc      *nats.Conn
	in      chan *nats.Msg
	out     chan []packet
	changed chan struct{} // the node has got or given up a shard
	open    map[string]int
	packets []packet // that gather; open has the newest of each subject
}

// packet is a message.
type packet struct {
	subject string
	data    []byte
	parts   int
}

// maxPacket bounds a message about grants in bytes, and maxIncoming and maxOutgoing those that wait.
// What is beyond is lost.
const (
	maxPacket   = 256 << 10
	maxIncoming = 4 << 10
	maxOutgoing = 256
)

func newGrants(n *Node, nc *nats.Conn) *grants {
	return &grants{n: n, nc: nc, in: make(chan *nats.Msg, maxIncoming), out: make(chan []packet, maxOutgoing),
		changed: make(chan struct{}, 1), open: make(map[string]int)}
}

// gather adds a part to the message for a subject.
func (g *grants) gather(subject string, add func(b []byte) []byte) {
	i, known := g.open[subject]
	if !known || g.packets[i].parts == maxGrants || len(g.packets[i].data) > maxPacket-maxLimitKey-64 {
		i = len(g.packets)
		g.open[subject] = i
		g.packets = append(g.packets, packet{subject: subject, data: beginGrants(g.n.o.Cluster.Process)})
	}
	p := &g.packets[i]
	p.data, p.parts = add(p.data), p.parts+1
}

// flush gives what has gathered to the goroutine that sends it.
func (g *grants) flush() {
	if len(g.packets) == 0 {
		return
	}
	select {
	case g.out <- g.packets:
	default:
	}
	g.packets = nil
	clear(g.open)
}

// send sends messages and subscribes to those of the node's shards, until the context ends.
func (g *grants) send(ctx context.Context) {
	subs := make(map[string]*nats.Subscription)
	defer func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe() // the connection may be gone
		}
	}()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	g.subscribe(subs)
	for {
		select {
		case <-ctx.Done():
			return
		case packets := <-g.out:
			for _, p := range packets {
				_ = g.nc.Publish(p.subject, p.data) // it may be lost
			}
		case <-g.changed:
			g.subscribe(subs)
		case <-again.C:
			g.subscribe(subs)
		}
	}
}

// ofGranter is the subject of requests to the granter of a limit.
func (g *grants) ofGranter(key string) string {
	return g.n.o.Names.OfShard("grant", int32(cluster.GranterOf(key, g.n.o.Cluster.Shards)))
}

// ofUser is the subject of grants to a node.
func (g *grants) ofUser(node string) string { return g.n.o.Names.Subject("granted", node) }

// subscribe makes the subscriptions those of the node and of the shards that it has. One that fails is
// tried again; until then the node gets no grants, so it makes no request that needs one.
func (g *grants) subscribe(subs map[string]*nats.Subscription) {
	mine := map[string]struct{}{g.ofUser(g.n.o.Cluster.Node): {}}
	for s := range g.n.shards() {
		mine[g.n.o.Names.OfShard("grant", int32(s))] = struct{}{}
	}
	for s, sub := range subs {
		if _, is := mine[s]; !is || !sub.IsValid() {
			_ = sub.Unsubscribe() // it may have ended with its connection
			delete(subs, s)
		}
	}
	for s := range mine {
		if subs[s] == nil {
			if sub, err := g.nc.ChanSubscribe(s, g.in); err == nil {
				subs[s] = sub
			}
		}
	}
}

// receive takes messages until the context ends.
func (g *grants) receive(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-g.in:
			parts, err := decodeGrants(m.Data)
			if err != nil {
				g.n.foreign(m.Subject, err)
				continue
			}
			g.n.takeGrants(parts)
		}
	}
}

// shards returns the shards that the node has.
func (n *shell) shards() map[cluster.Shard]struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	mine := make(map[cluster.Shard]struct{}, len(n.holdings))
	for s := range n.holdings {
		mine[s] = struct{}{}
	}
	return mine
}

// takeGrants takes the parts of a message.
func (n *Node) takeGrants(parts []any) {
	n.do(func(m *cluster.Node, now cluster.Instant) {
		for _, part := range parts {
			switch p := part.(type) {
			case cluster.GrantRequest:
				m.GrantRequested(now, p)
			case cluster.Grant:
				n.granted(now, p)
			}
		}
	})
}

// granted takes a grant. What is in flight under slots that have expired is broken off first: it must not
// go on under the new ones. n.mu is held.
func (n *shell) granted(now cluster.Instant, g cluster.Grant) {
	if n.machine.Until(g.Key) <= now {
		n.breakOffUnder(g.Key)
	}
	n.machine.Granted(now, g)
	n.actions = append(n.actions, keyGranted{key: g.Key})
}

// breakOffUnder breaks off the requests under a shared limit. n.mu is held.
func (n *shell) breakOffUnder(key string) {
	for _, h := range n.holdings {
		for r := range h.requests {
			if slices.Contains(r.keys, key) {
				r.cancel(ErrNotTrusted)
			}
		}
	}
}

// Need says what the node needs of a shared limit: see cluster.Node.Need. [Engines.Granted] says when
// what it has may have changed.
func (n *Node) Need(key string, need cluster.Need) {
	n.do(func(m *cluster.Node, now cluster.Instant) { m.Need(now, key, need) })
}

// Turn returns what the node has of a shared limit.
func (n *Node) Turn(key string) (t cluster.Turn) {
	n.do(func(m *cluster.Node, now cluster.Instant) { t = m.Turn(now, key) })
	return t
}

// Start takes a slot of a shared limit, if there is one whose turn has come. [Node.End] gives it back.
func (n *Node) Start(key string) (ok bool) {
	n.do(func(m *cluster.Node, now cluster.Instant) { ok = m.Start(now, key) })
	return ok
}

// End ends the use of a slot that [Node.Start] has taken.
func (n *Node) End(key string) {
	n.do(func(m *cluster.Node, now cluster.Instant) { m.End(now, key) })
}
