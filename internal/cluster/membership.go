package cluster

// membership is the node's own place in the cluster: its register and the trust that it gives.
type membership struct {
	incarnation Sequence // 0: the node is no member
	ended       Sequence // the newest membership of this process that is over
	seq         Sequence // the newest message of the own register
	since       Instant  // member since then
	until       Instant  // trusted until then
	next        Instant  // the next heartbeat
	beats       []beat   // heartbeats without an answer, the oldest first
	weight      uint16
	leave       leave
	taken       bool // NameTaken was reported
	paused      bool // a member without trust
}

// beat is a heartbeat, or the message that begins a membership, without an answer.
type beat struct {
	write
	incarnation Sequence // 0: it begins a membership
	seal        bool     // it ends the membership
}

// leave is how far a node that leaves has come.
type leave uint8

const (
	stays   leave = iota
	leaves        // it hands over its shards
	sealing       // it has none, and seals its own register
	left
)

// maxBeats bounds the heartbeats whose answers are still of use: later ones come after the TTL.
const maxBeats = 16

// Trust returns the instant until which the node may make requests at all. Requests in flight are
// broken off then, unless heartbeats have extended it.
func (n *ownership) Trust() Instant { return n.self.until }

// isTrusted reports whether requests in flight may go on.
func (n *ownership) isTrusted(now Instant) bool { return n.self.incarnation != 0 && now < n.self.until }

// heartbeat writes the own register if it is time to. If the node is no member, the message begins
// a membership, once the register is free for it.
func (n *Node) heartbeat(now Instant) {
	m := &n.self
	if now < m.next {
		return
	}
	if m.incarnation == 0 {
		if m.leave != stays || !n.mayBegin(now) {
			return
		}
		m.seq = n.members.all[n.own].seq
	}
	if len(m.beats) == maxBeats {
		m.beats = append(m.beats[:0], m.beats[1:]...)
	}
	b := beat{write{n.id(), m.seq, now}, m.incarnation, m.leave == sealing}
	m.beats = append(m.beats, b)
	m.next = now.Add(n.o.Retry)
	n.out = append(n.out, WriteKey{b.id, n.o.Node, b.expected,
		Key{Process: n.o.Process, Incarnation: m.incarnation, Weight: m.weight, Sealed: b.seal}})
}

// advanceLeave moves a node that leaves on: it seals its register when it has no shard, and has left
// when its membership is over and no engine runs.
func (n *Node) advanceLeave(now Instant) {
	m := &n.self
	if m.leave == leaves && len(n.held) == 0 {
		m.leave, m.next = sealing, now
	}
	if m.leave == stays || m.leave == left || m.incarnation != 0 {
		return
	}
	for _, h := range n.held {
		if h.engine != stopped {
			return
		}
	}
	m.leave = left
	n.out = append(n.out, Left{})
}

// mayBegin reports whether the register is free for a new membership: it is empty or sealed, or the
// membership in it is one of this process or of a predecessor that has ended, or it has been silent
// for a TTL. Otherwise another process has the name. A message that cannot be read has to be silent for a TTL.
func (n *Node) mayBegin(now Instant) bool {
	r := n.members.all[n.own]
	if r.opaque && !r.silent {
		return false // another process may have written it, and live
	}
	if r.seq == 0 || r.sealed || r.silent || r.incarnation <= max(n.self.ended, n.o.Predecessor) {
		return true
	}
	if r.alive && !n.self.taken {
		n.self.taken = true
		n.out = append(n.out, NameTaken{})
	}
	return false
}

// beatAnswered takes the answer to a write of the own register.
func (n *Node) beatAnswered(now Instant, id uint64, seq Sequence, written bool) {
	m := &n.self
	i := 0
	for i < len(m.beats) && m.beats[i].id != id {
		i++
	}
	if i == len(m.beats) {
		return
	}
	b := m.beats[i]
	m.beats = append(m.beats[:i], m.beats[i+1:]...)
	switch {
	case !written && b.expected == m.seq:
		n.refused(now, b.expected)
	case !written: // a later heartbeat was written
	case b.seal:
		n.KeySeen(now, n.o.Node, seq, Key{Incarnation: b.incarnation, Sealed: true})
	case b.incarnation == 0 && (m.incarnation == 0 || m.incarnation == seq):
		if m.incarnation == 0 {
			n.begin(now, seq, seq)
		}
		n.trust(now, b, seq)
	case b.incarnation == m.incarnation:
		n.trust(now, b, seq)
	}
}

// trust extends the trust by a heartbeat that was written. It counts from the instant before the
// heartbeat was sent: the log has taken it at some time after that.
func (n *Node) trust(now Instant, b beat, seq Sequence) {
	m := &n.self
	m.seq = max(m.seq, seq)
	m.until = max(m.until, b.sent.Add(n.o.TTL-n.o.Margin))
	m.next = b.sent.Add(n.o.Heartbeat)
	n.members.all[n.own].observe(now, seq, Key{Process: n.o.Process, Incarnation: m.incarnation, Weight: m.weight})
}

// refused handles a refusal that no later message explains. If a heartbeat before it has no answer,
// that one may be why; otherwise trust ends at once. What the register holds is read in any case.
func (n *Node) refused(now Instant, expected Sequence) {
	n.out = append(n.out, ReadKey{n.o.Node})
	for _, b := range n.self.beats {
		if b.expected == expected {
			return
		}
	}
	n.self.until = min(n.self.until, now)
}

// ownKey takes a message that was seen in the own register.
func (n *Node) ownKey(now Instant, seq Sequence, k Key) {
	m, r := &n.self, n.members.all[n.own]
	switch {
	case m.incarnation != 0 && r.isOver(m.incarnation):
		n.lose(now)
	case m.incarnation != 0:
		m.seq = max(m.seq, seq)
	case !r.sealed && k.Process == n.o.Process && r.incarnation > m.ended && m.leave == stays:
		n.begin(now, r.incarnation, seq)
	}
}

// begin begins a membership.
func (n *Node) begin(now Instant, incarnation, seq Sequence) {
	m := &n.self
	m.incarnation, m.seq, m.since, m.until, m.next, m.taken = incarnation, seq, now, 0, now, false
	n.members.heard = now
	n.members.updateLive(n.o.Node)
	n.dirty = true
}

// lose ends a membership. The engines are broken off; the epochs fall to whoever claims them.
func (n *Node) lose(now Instant) {
	m := &n.self
	m.ended, m.incarnation, m.until, m.next, m.beats = m.incarnation, 0, 0, now, m.beats[:0]
	for _, h := range n.held {
		n.stop(h, breaking)
	}
	n.dropSlots()
	n.dirty = true
}

// Drain makes the node hand over its shards and take no others. If it also leaves, it reports
// [Left] when that is done.
func (n *Node) Drain(now Instant, leaveToo bool) {
	n.self.weight, n.self.next, n.dirty = 0, now, true
	if leaveToo && n.self.leave == stays {
		n.self.leave = leaves
	}
	n.Tick(now)
}

// Undrain makes a node take shards again, unless it leaves.
func (n *Node) Undrain(now Instant) {
	if n.self.leave != stays {
		return
	}
	n.self.weight, n.self.next, n.dirty = n.o.Weight, now, true
	n.Tick(now)
}
