package membership

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/cluster"
)

// grants are the messages about grants. What is for a shard goes to PREFIX.grant.SHARD, and the owner
// of the shard subscribes to that. gather and flush belong to the loop of the node; send and receive
// are goroutines, because the connection may block while the network is cut.
type grants struct {
	n       *Node
	nc      *nats.Conn
	in      chan *nats.Msg
	out     chan []packet
	changed chan struct{} // the node has got or given up a shard
	open    map[cluster.Shard]int
	packets []packet // that gather; open has the newest of each shard
}

// packet is a message for a shard.
type packet struct {
	shard cluster.Shard
	data  []byte
	parts int
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
		changed: make(chan struct{}, 1), open: make(map[cluster.Shard]int)}
}

// gather adds a part to the message for a shard.
func (g *grants) gather(s cluster.Shard, add func(b []byte) []byte) {
	i, known := g.open[s]
	if !known || g.packets[i].parts == maxGrants || len(g.packets[i].data) > maxPacket-maxLimitKey-64 {
		i = len(g.packets)
		g.open[s] = i
		g.packets = append(g.packets, packet{shard: s, data: beginGrants(g.n.o.Cluster.Process)})
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
	subs := make(map[cluster.Shard]*nats.Subscription)
	defer func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe() // the connection may be gone
		}
	}()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case packets := <-g.out:
			for _, p := range packets {
				_ = g.nc.Publish(g.subject(p.shard), p.data) // it may be lost
			}
		case <-g.changed:
			g.subscribe(subs)
		case <-again.C:
			g.subscribe(subs)
		}
	}
}

func (g *grants) subject(s cluster.Shard) string { return g.n.o.Names.OfShard("grant", int32(s)) }

// subscribe makes the subscriptions those of the shards that the node has. One that fails is tried
// again; until then the shard gets no grants, so it makes no request that needs one.
func (g *grants) subscribe(subs map[cluster.Shard]*nats.Subscription) {
	mine := g.n.shards()
	for s, sub := range subs {
		if _, is := mine[s]; !is || !sub.IsValid() {
			_ = sub.Unsubscribe() // it may have ended with its connection
			delete(subs, s)
		}
	}
	for s := range mine {
		if subs[s] == nil {
			if sub, err := g.nc.ChanSubscribe(g.subject(s), g.in); err == nil {
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
func (n *Node) shards() map[cluster.Shard]struct{} {
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
				if h := n.holdings[p.User]; h != nil && h.epoch == p.Epoch {
					n.granted(now, h, p)
				}
			}
		}
	})
}
