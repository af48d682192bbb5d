//go:build !core

package shards

import (
	"context"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/membership"
)

// nodeShare is what this node has of the limits of requests and of bytes a second, which are those of the
// cluster: its share of the weights of the members. It goes down at once, and up only when it would have
// been more for a TTL, so that the other nodes have seen the same. A node that joins others begins with
// nothing.
type nodeShare struct {
	now   float64
	next  float64       // what it will be; not more than now: nothing is planned
	since time.Duration // for which next has been possible
}

// partEvery is how often a node looks at the weights.
const partEvery = 500 * time.Millisecond

// follow puts the part of the node in force, until the context ends.
func (n *Node) follow(ctx context.Context) {
	ticker := time.NewTicker(partEvery)
	defer ticker.Stop()
	o := n.engines.o
	var p nodeShare
	n.engines.shared.SetPart(p.now)
	for {
		if share, alone, ok := shareOf(n.Status()); ok {
			n.engines.shared.SetPart(p.update(share, alone, o.Uptime(), o.Cluster.TTL))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// shareOf returns the share that a node has of the weights of the live members, and whether it is the
// only member. ok is false if it is none.
func shareOf(s membership.Status) (share float64, alone, ok bool) {
	own, all, live := 0, 0, 0
	for _, m := range s.Members {
		if m.State != "live" {
			continue
		}
		live++
		all += int(m.Weight)
		if m.Node == s.Node {
			own = int(m.Weight)
		}
	}
	return float64(own) / float64(max(all, 1)), live == 1, s.Joined
}

// update returns the part at a time of the clock. A node that is alone from the start takes all.
func (p *nodeShare) update(share float64, alone bool, now, ttl time.Duration) float64 {
	switch {
	case share <= p.now || p.now == 0 && alone && p.next == 0:
		p.now, p.next = share, share
	case p.next <= p.now || share < p.next:
		if p.next <= p.now {
			p.since = now
		}
		p.next = share
	}
	if p.next > p.now && now-p.since >= ttl {
		p.now = p.next
	}
	return p.now
}
