package cluster

import (
	"slices"
	"strings"
	"time"
)

// Status is what a node knows of its cluster at an instant. Others may know more.
type Status struct {
	Incarnation Sequence // of the node's own membership; 0: it is no member
	Trust       Instant  // until then the node may make requests
	Written     Instant  // when the newest heartbeat that was written was sent; 0: there is none
	Drained     bool     // the node takes no shards
	Members     []MemberStatus
	Shards      []ShardStatus // by number
}

// MemberStatus is what a node knows of a member.
type MemberStatus struct {
	Node        string
	Incarnation Sequence
	Weight      uint16
	Seen        Instant // when the newest message of its register was seen
	Sealed      bool    // its membership is over
	Silent      bool    // nothing was seen for a TTL
	Opaque      bool    // its register cannot be read
}

// ShardStatus is what a node knows of a shard.
type ShardStatus struct {
	Owner  string // empty: nobody
	Epoch  Sequence
	Engine EngineStatus // of this node
	Fault  *Fault       // the shard is in quarantine; nil: it is not. It is not changed
}

// EngineStatus is the state of the engine that this node has for a shard.
type EngineStatus uint8

// The states of an engine.
const (
	NoEngine EngineStatus = iota
	Running
	Draining // it makes its last commit
	Breaking // it ends without one
)

// String returns the state in a word.
func (e EngineStatus) String() string {
	return [...]string{"none", "running", "draining", "breaking"}[e]
}

// Incarnation returns the sequence of the node's membership, or 0.
func (n *ownership) Incarnation() Sequence { return n.self.incarnation }

// Status returns what the node knows. Members are in the order of their names.
func (n *Node) Status() Status {
	s := Status{Incarnation: n.self.incarnation, Trust: n.self.until, Drained: n.self.weight == 0,
		Shards: make([]ShardStatus, len(n.epochs))}
	if n.self.until != 0 {
		s.Written = n.self.until.Add(n.o.Margin - n.o.TTL)
	}
	for _, r := range n.members.all {
		if r.seq != 0 {
			m := MemberStatus{r.name, r.incarnation, r.weight, r.seen, r.sealed, r.silent, r.opaque}
			s.Members = append(s.Members, m)
		}
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return strings.Compare(a.Node, b.Node) })
	for i := range s.Shards {
		shard := &s.Shards[i]
		shard.Owner, shard.Epoch = n.Owner(Shard(i))
		shard.Fault = n.epochs[i].fault
		if h := n.byShard[Shard(i)]; h != nil {
			shard.Engine = EngineStatus(h.engine)
		}
	}
	return s
}

// Turn is what the node has of a shared limit.
type Turn struct {
	Free  int           // requests that [Node.Start] would let start, after a time
	After time.Duration // that time, from now
}

// Turn returns what the node has of a shared limit.
func (n *grants) Turn(now Instant, key string) Turn {
	a := n.allowance(key)
	if a == nil || a.until.Sub(max(now, a.notBefore)) < n.o.LastStart {
		return Turn{}
	}
	return Turn{max(0, a.slots-a.using), max(0, a.notBefore.Sub(now))}
}
