package cluster

import (
	"github.com/cespare/xxhash/v2"
)

// members is what a node knows of the registers of all members, its own included.
type members struct {
	all    []*record
	byName map[string]int32
	live   []candidate // the others that take shards
	heard  Instant     // silence before this instant does not count: the node could not hear
	next   Instant     // before it, no other member can have been silent for a TTL
}

// record is the newest message of the register of a member that this node has seen.
type record struct {
	name        string
	hash        uint64
	seq         Sequence
	incarnation Sequence // of the newest membership
	expired     Sequence // the newest seal after a TTL of silence
	process     uint64
	weight      uint16
	sealed      bool
	opaque      bool    // the newest message cannot be read
	silent      bool    // nothing was seen for a TTL
	seen        Instant // when seq was seen
	alive       bool    // a message has followed the first one that this node saw
	seal        write   // the seal that this node is writing
}

// write is a conditional write that has no answer yet. The zero value stands for none.
type write struct {
	id       uint64
	expected Sequence
	sent     Instant
}

// find returns the number of the record of a node, and makes one if there is none.
func (m *members) find(name string, now Instant) int32 {
	i, known := m.byName[name]
	if !known {
		i = int32(len(m.all))
		m.byName[name] = i
		m.all = append(m.all, &record{name: name, hash: xxhash.Sum64String(name), seen: now})
	}
	return i
}

// observe records a message of the register and reports whether it is new to this node.
func (r *record) observe(now Instant, seq Sequence, k Key) bool {
	if seq <= r.seq {
		return false
	}
	incarnation := k.Incarnation
	if incarnation == 0 || incarnation > seq { // the first of a membership, or nonsense that must not outlive a seal
		incarnation = seq
	}
	r.alive = r.seq != 0 && incarnation == r.incarnation && !k.Sealed
	r.incarnation = max(incarnation, r.incarnation)
	r.seq, r.process, r.weight, r.sealed, r.seen, r.silent = seq, k.Process, k.Weight, k.Sealed, now, false
	r.opaque = false
	if k.Silent {
		r.expired = seq
	}
	return true
}

// observeOpaque records a message of the register that cannot be read, and reports whether it is new to this
// node. It proves nothing: it may be a heartbeat, or a seal, of another version. The node takes no shards, and
// after a TTL of silence the register is sealed as any other.
func (r *record) observeOpaque(now Instant, seq Sequence) bool {
	if seq <= r.seq {
		return false
	}
	r.seq, r.seen, r.weight, r.sealed, r.silent, r.alive, r.opaque = seq, now, 0, false, false, false, true
	return true
}

// isOver reports whether a membership of the node has ended. Only messages of the register prove
// that: a seal, or the start of a later membership. Both are written after the trust has ended.
func (r *record) isOver(incarnation Sequence) bool {
	return incarnation < r.incarnation || r.sealed && incarnation < r.seq
}

// isExpired reports whether a membership has ended after a TTL of silence, as far as this node knows. Then
// what it has granted has ended too. Grants of one that has ended otherwise may go on.
func (r *record) isExpired(incarnation Sequence) bool { return incarnation < r.expired }

// isLive reports whether the node takes shards, as far as this node knows.
func (r *record) isLive() bool { return r.seq != 0 && !r.sealed && !r.silent && r.weight > 0 }

// updateSilence finds the members that have been silent for a TTL, by the clock of this node. Only
// silence since the node could hear counts.
func (m *members) updateSilence(now Instant, o *Options) (changed bool) {
	if now < m.next {
		return false
	}
	m.next = now.Add(o.TTL)
	for _, r := range m.all {
		at := max(r.seen, m.heard).Add(o.TTL)
		silent := now >= at
		changed = changed || silent != r.silent
		if r.silent = silent; !silent {
			m.next = min(m.next, at)
		}
	}
	return changed
}

// updateLive makes the list of the live members but one. To find out that a shard does not belong
// to a node takes few comparisons, because most candidates beat it.
func (m *members) updateLive(but string) {
	m.live = m.live[:0]
	for _, r := range m.all {
		if r.isLive() && r.name != but {
			m.live = append(m.live, candidate{r.hash, r.weight})
		}
	}
}

// isBest reports whether no live member beats a candidate.
func (m *members) isBest(c candidate, s Shard) bool {
	for _, other := range m.live {
		if other.beats(c, s) {
			return false
		}
	}
	return true
}
