package membership

import (
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
)

// Status is what a node knows of its cluster, at the time of a call.
type Status struct {
	Cluster, Node string
	Connected     bool // to a server
	Joined        bool // the node is a member
	Drained       bool // the node takes no shards
	Leaving       bool // Leave was called
	// Trust is how long the node may make requests if no heartbeat is written. Renewed is how long
	// ago the newest one that was written was sent; negative if there is none.
	Trust, Renewed time.Duration
	// Unseen is for how long heartbeats of this node have been written and not come back to it.
	Unseen  time.Duration
	Members []MemberStatus
	Shards  []cluster.ShardStatus // by number
}

// MemberStatus is what a node knows of a member.
type MemberStatus struct {
	Node   string
	Weight uint16
	State  string        // "live", "silent" for a TTL, "left", or "unreadable"
	Seen   time.Duration // since its newest message was seen
	Shards int           // that it owns
}

// Owner returns the node that owns a shard as far as this one knows; empty: nobody.
func (n *Node) Owner(s cluster.Shard) (node string) {
	n.do(func(m *cluster.Node, _ cluster.Instant) { node, _ = m.Owner(s) })
	return node
}

// Status returns what the node knows of its cluster. Without a connection it is what it knew last.
func (n *Node) Status() Status {
	s := Status{Cluster: n.o.Names.Cluster, Node: n.o.Cluster.Node, Connected: n.reg.nc.IsConnected(), Renewed: -1,
		Leaving: n.leaving.Load()}
	n.do(func(m *cluster.Node, now cluster.Instant) {
		known := m.Status()
		s.Joined, s.Drained = known.Incarnation != 0, known.Drained
		s.Trust, s.Shards = max(0, known.Trust.Sub(now)), known.Shards
		if known.Written != 0 {
			s.Renewed = now.Sub(known.Written)
		}
		if n.watch.since != 0 {
			s.Unseen = now.Sub(n.watch.since)
		}
		owned := make(map[string]int)
		for _, shard := range known.Shards {
			owned[shard.Owner]++
		}
		for _, r := range known.Members {
			state := "live"
			if r.Opaque {
				state = "unreadable"
			} else if r.Sealed {
				state = "left"
			} else if r.Silent {
				state = "silent"
			}
			s.Members = append(s.Members, MemberStatus{r.Node, r.Weight, state, now.Sub(r.Seen), owned[r.Node]})
		}
	})
	return s
}
