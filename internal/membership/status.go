package membership

import (
	"context"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
)

// Status is what a node knows of its cluster, at the time of a call.
type Status struct {
	Cluster, Node string
	Connected     bool // to a server
	Joined        bool // the node is a member
	Drained       bool // the node takes no shards
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
	State  string        // "live", "silent" for a TTL, or "left"
	Seen   time.Duration // since its newest message was seen
	Shards int           // that it owns
}

// Status returns what the node knows of its cluster. Without a connection it is what it knew last.
func (n *Node) Status() Status {
	s := Status{Cluster: n.o.Names.Cluster, Node: n.o.Cluster.Node, Connected: n.reg.nc.IsConnected(), Renewed: -1}
	n.do(func(m *cluster.Node, now cluster.Instant) {
		known := m.Status()
		s.Joined, s.Drained = known.Born != 0, known.Drained
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
			if r.Sealed {
				state = "left"
			} else if r.Silent {
				state = "silent"
			}
			s.Members = append(s.Members, MemberStatus{r.Node, r.Weight, state, now.Sub(r.Seen), owned[r.Node]})
		}
	})
	return s
}

// Replica is a copy of the registers and the logs.
type Replica struct {
	Server  string
	Leader  bool
	Current bool // it has all that the leader has, or nearly
	Offline bool
	Lag     uint64 // messages that it does not have yet
	Active  time.Duration
}

// Replicas gets the state of the copies from the servers. A copy that stays behind while the others go
// on needs an operator: nats-server may have given it up.
func (n *Node) Replicas(ctx context.Context) (list []Replica, err error) {
	info, err := n.reg.stream.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("get the state of the copies of stream %s: %w", n.reg.names.Stream(), err)
	}
	if info.Cluster == nil {
		return nil, nil
	}
	if info.Cluster.Leader != "" {
		list = append(list, Replica{Server: info.Cluster.Leader, Leader: true, Current: true})
	}
	for _, p := range info.Cluster.Replicas {
		list = append(list, Replica{Server: p.Name, Current: p.Current, Offline: p.Offline, Lag: p.Lag, Active: p.Active})
	}
	return list, nil
}
