package cluster

import "time"

// Node is the state machine of one process in a cluster. It does no I/O, reads no clock and starts
// no goroutine: its owner tells it what happens, and when, and carries out its actions. It may not
// be used concurrently.
//
// The instants that a Node is told need not be in order, but no answer may be reported with an
// instant before its arrival.
type Node struct {
	grants
	nextPass Instant
}

// ownership is who is a member, and which shards each of them owns.
type ownership struct {
	o       Options
	self    membership
	own     int32 // the record of this node
	members members
	epochs  []epochView
	held    []*holding
	byShard map[Shard]*holding
	claims  int  // claims in flight
	dirty   bool // all shards are reconciled at the next pass
	lastID  uint64
	out     []Action
}

// grants are what limits over all nodes permit, on the side that grants and on the one that uses it.
type grants struct {
	ownership
	allowances []*allowance // in the order of their keys
}

// passEvery is the shortest time between two walks over all shards.
const passEvery = 200 * time.Millisecond

// NewNode returns a node that is no member yet. The shell reports the registers as it finds them,
// and then calls Tick. It returns an error if the options cannot work.
func NewNode(now Instant, o Options) (*Node, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return newNode(now, o), nil
}

func newNode(now Instant, o Options) *Node {
	n := new(Node)
	n.o, n.epochs, n.byShard = o, make([]epochView, o.Shards), make(map[Shard]*holding)
	n.members = members{byName: make(map[string]int32), heard: now}
	n.own = n.members.find(o.Node, now)
	n.self.weight = o.Weight
	return n
}

// Actions returns the actions since the last call. The slice is valid until the next call of any
// method.
func (n *Node) Actions() []Action {
	out := n.out
	n.out = n.out[:0]
	return out
}

func (n *ownership) id() uint64 {
	n.lastID++
	return n.lastID
}

// Tick lets time pass. The shell calls it a few times a second.
func (n *Node) Tick(now Instant) {
	n.advanceLeave(now)
	n.heartbeat(now)
	n.updatePaused(now)
	if n.members.updateSilence(now, &n.o) {
		n.dirty = true
	}
	for i := 0; i < len(n.held); {
		h := n.held[i]
		n.tickHolding(now, h)
		if i < len(n.held) && n.held[i] == h {
			i++
		}
	}
	n.tickGrants(now)
	if n.self.incarnation != 0 && n.dirty && now >= n.nextPass {
		n.pass(now)
	}
}

// updatePaused notes whether the node is a member without trust. Such a node cannot hear the others,
// so it does not count how long they are silent.
func (n *Node) updatePaused(now Instant) {
	paused := n.self.incarnation != 0 && !n.isTrusted(now)
	if paused {
		n.members.heard, n.members.next = now, now
	}
	if n.self.paused && !paused {
		n.dirty = true
	}
	n.self.paused = paused
}

// pass reconciles all shards that may need something of this node. Those of other live members do not.
func (n *Node) pass(now Instant) {
	n.dirty, n.nextPass = false, now.Add(passEvery)
	n.members.updateLive(n.o.Node)
	mayBeFirst := now >= n.self.since.Add(n.o.Settle)
	for s := range n.epochs {
		v := &n.epochs[s]
		if v.seq == 0 && !mayBeFirst { // other nodes may be about to start as well
			n.dirty = true
			continue
		}
		if v.isHeld || v.isFree() {
			n.reconcile(now, Shard(s))
			continue
		}
		if r := n.members.all[v.owner]; r.silent || r.isOver(v.incarnation) {
			n.reconcile(now, Shard(s))
		}
	}
}

// KeySeen reports a message of the register member.NODE: one that a watch delivered, or the result
// of a read. Messages may be reported late, repeatedly and in any order. An empty register is not
// reported: it proves nothing.
func (n *Node) KeySeen(now Instant, node string, seq Sequence, k Key) {
	i := n.members.find(node, now)
	r := n.members.all[i]
	before := *r
	if !r.observe(now, seq, k) {
		return
	}
	if i == n.own {
		n.ownKey(now, seq, k)
	}
	if r.isLive() != before.isLive() || r.weight != before.weight || r.incarnation != before.incarnation || r.sealed {
		n.dirty = true
	}
}

// KeyUnreadable reports a message of the register member.NODE that cannot be read, as [Node.KeySeen] does for
// others. If it is in the register of this node, the membership ends: a seal may be what cannot be read.
func (n *Node) KeyUnreadable(now Instant, node string, seq Sequence) {
	i := n.members.find(node, now)
	if n.members.all[i].observeOpaque(now, seq) {
		n.dirty = true
	}
	if i == n.own && n.self.incarnation != 0 && seq > n.self.seq {
		n.lose(now)
	}
}

// KeyAnswer reports the result of a [WriteKey]: the sequence of the message if it was written.
func (n *Node) KeyAnswer(now Instant, node string, id uint64, seq Sequence, written bool) {
	if node == n.o.Node {
		n.beatAnswered(now, id, seq, written)
		return
	}
	r := n.members.all[n.members.find(node, now)]
	if r.seal.id != id || id == 0 {
		return
	}
	r.seal.id = 0 // the time of the seal stays, so the next one is not too soon
	if written {
		n.KeySeen(now, node, seq, Key{Incarnation: r.incarnation, Sealed: true, Silent: true})
	} else {
		n.out = append(n.out, ReadKey{node})
	}
}

// sealMember seals the register of a member that has been silent for a TTL, on condition that its
// last message is the one after which it was silent.
func (n *ownership) sealMember(now Instant, r *record) {
	if r.seal.sent != 0 && now.Sub(r.seal.sent) < n.o.Retry {
		return
	}
	r.seal = write{n.id(), r.seq, now}
	sealed := Key{Incarnation: r.incarnation, Sealed: true, Silent: true}
	n.out = append(n.out, WriteKey{r.seal.id, r.name, r.seq, sealed})
	n.dirty = true // until the seal is seen
}
