package cluster

import "slices"

// epochView is the newest message of the register of a shard that this node has seen.
type epochView struct {
	seq         Sequence
	incarnation Sequence // of the owner
	owner       int32    // the record of the owner
	released    bool
	handover    *Handover // of a release
	fault       *Fault    // the shard is in quarantine
	seen        Instant   // when the message was seen
	granter     *granter  // what was granted before, if the epoch is of this node
	isHeld      bool      // the node has a holding of the shard
}

// isFree reports whether nobody owns the shard.
func (v *epochView) isFree() bool { return v.seq == 0 || v.released }

// holding is a shard that the node owns, claims or is about to give up.
type holding struct {
	shard     Shard
	engine    engine
	opened    Sequence // the newest epoch that the engine was opened with; it is not opened with it again
	write     write    // of the epoch
	written   Epoch    // what the write writes
	retry     Instant  // nothing is written before
	granter   *granter
	nextSweep Instant // of the granter
	began     Instant // when the engine was opened
	faults    int     // how often it has failed
	fault     *Fault  // why it has, until that is written
	releases  bool    // a release may have been written: the granter answers no more
}

// engine is the state of the engine of a shard.
type engine uint8

const (
	stopped  engine = iota
	running         // it makes requests while the node is trusted
	draining        // it makes its last commit
	breaking        // it ends without one
)

// hold returns the holding of a shard, and makes one if there is none.
func (n *ownership) hold(s Shard) *holding {
	h := n.byShard[s]
	if h == nil {
		h = &holding{shard: s}
		n.byShard[s], n.epochs[s].isHeld = h, true
		n.held = append(n.held, h)
	}
	return h
}

// drop forgets a holding.
func (n *ownership) drop(h *holding) {
	delete(n.byShard, h.shard)
	n.epochs[h.shard].isHeld = false
	i := slices.Index(n.held, h)
	n.held = slices.Delete(n.held, i, i+1)
}

// wants reports whether the shard should belong to this node.
func (n *ownership) wants(s Shard) bool {
	return n.self.weight > 0 && n.members.isBest(candidate{n.members.all[n.own].hash, n.self.weight}, s)
}

// isMine reports whether the newest epoch belongs to the current membership of this node.
func (n *ownership) isMine(v *epochView) bool {
	return !v.isFree() && v.owner == n.own && v.incarnation == n.self.incarnation
}

// reconcile does for a shard what its epoch, its engine and the members demand. It is called after
// each change of one of them.
func (n *ownership) reconcile(now Instant, s Shard) {
	if n.self.incarnation == 0 {
		return
	}
	v := &n.epochs[s]
	var h *holding
	if v.isHeld {
		h = n.byShard[s]
	}
	if h != nil && h.engine != stopped {
		switch {
		case v.seq != h.opened:
			n.stop(h, breaking)
		case h.engine == running && !n.wants(s):
			n.stop(h, draining)
		}
		return
	}
	if h != nil && (h.write.id != 0 || now < h.retry) {
		return
	}
	wants := n.wants(s)
	switch {
	case n.isMine(v) && wants && h != nil && h.fault != nil:
		n.writeEpoch(now, h, false)
	case n.isMine(v) && wants && n.isPaused(now, v):
	case n.isMine(v) && wants && v.fault == nil && (h == nil || v.seq > h.opened):
		n.open(now, n.hold(s))
	case n.isMine(v) && !wants:
		n.writeEpoch(now, n.hold(s), true)
	case n.mayClaim(now, v) && wants:
		n.claim(now, s)
	case !v.isFree() && v.owner == n.own && n.members.all[n.own].isOver(v.incarnation) && !wants:
		n.writeEpoch(now, n.hold(s), true)
	default:
		if r := n.members.all[v.owner]; !v.isFree() && wants && r.silent && v.owner != n.own {
			n.sealMember(now, r)
		}
		if h != nil && !n.isMine(v) {
			n.drop(h)
		}
	}
}

// mayClaim reports whether the owner of a shard has given it up, or can make no request any more. A
// claim for an epoch of this node itself replaces one whose engine has ended.
func (n *ownership) mayClaim(now Instant, v *epochView) bool {
	if !n.isTrusted(now) {
		return false
	}
	return v.isFree() || n.isMine(v) || n.members.all[v.owner].isOver(v.incarnation)
}

// claim writes an epoch. If too many claims are in flight, a later pass does it.
func (n *ownership) claim(now Instant, s Shard) {
	if n.claims >= n.o.Claims {
		n.dirty = true
		return
	}
	n.writeEpoch(now, n.hold(s), false)
}

// writeEpoch claims or releases a shard, on condition that its epoch is the one that was seen.
func (n *ownership) writeEpoch(now Instant, h *holding, release bool) {
	n.countClaim(h, -1)
	h.write = write{n.id(), n.epochs[h.shard].seq, now}
	h.written = Epoch{Owner: n.Member(), Released: release}
	if !release {
		h.written.Fault = h.fault
	}
	h.releases = h.releases || release
	if g := n.granterOf(h.shard); release && g != nil {
		h.written.Handover = g.handover(now)
	}
	n.countClaim(h, 1)
	n.out = append(n.out, WriteEpoch{h.write.id, h.shard, h.write.expected, h.written})
}

// countClaim counts the claims in flight.
func (n *ownership) countClaim(h *holding, by int) {
	if h.write.id != 0 && !h.written.Released {
		n.claims += by
	}
}

// settle ends the wait for the answer to a write.
func (n *ownership) settle(h *holding) {
	n.countClaim(h, -1)
	h.write = write{}
}

// open starts the engine of a shard whose newest epoch is this node's.
func (n *ownership) open(now Instant, h *holding) {
	h.engine, h.opened, h.began = running, n.epochs[h.shard].seq, now
	v := &n.epochs[h.shard]
	h.granter, v.granter = v.granter, nil
	n.out = append(n.out, OpenEngine{h.shard, h.opened})
}

// stop ends the engine of a shard. A breaking engine does not become a draining one.
func (n *ownership) stop(h *holding, how engine) {
	if h.engine == stopped || h.engine >= how {
		return
	}
	h.engine = how
	n.out = append(n.out, StopEngine{h.shard, how == draining})
}

// EngineStopped reports that the engine of a shard has ended: no request of it is in flight.
func (n *Node) EngineStopped(now Instant, s Shard) {
	h := n.byShard[s]
	if h == nil || h.engine == stopped {
		return
	}
	h.engine = stopped // the granter answers no more, and stays as it is for the release
	n.reconcile(now, s)
}

// LogRefused reports that the log of a shard has refused a message that was fenced by an epoch. The
// shard is lost, whatever the reason was.
func (n *ownership) LogRefused(now Instant, s Shard, epoch Sequence) {
	h := n.byShard[s]
	if h == nil || h.opened != epoch || h.engine == stopped {
		return
	}
	n.stop(h, breaking)
	n.out = append(n.out, ReadEpoch{s})
}

// EpochSeen reports a message of the register epoch.SHARD, as [Node.KeySeen] does for a member.
func (n *Node) EpochSeen(now Instant, s Shard, seq Sequence, e Epoch) {
	if s < 0 || int(s) >= len(n.epochs) || seq <= n.epochs[s].seq {
		return
	}
	v := &n.epochs[s]
	var inherited *granter
	if e.Owner == n.Member() && !e.Released {
		inherited = n.inherited(now, s)
	}
	v.granter = inherited
	v.seq, v.incarnation = seq, min(e.Owner.Incarnation, seq)
	v.owner, v.released = n.members.find(e.Owner.Node, now), e.Released
	v.handover, v.fault, v.seen = e.Handover, e.Fault, now
	if !e.Released {
		n.repeatRequests(now, s)
	}
	if h := n.byShard[s]; h != nil {
		n.settle(h) // whatever was in flight expects an older epoch
		h.retry, h.releases = 0, false
		if e.Fault != nil && e.Owner == n.Member() {
			h.fault, h.faults = nil, e.Fault.Times
		}
		n.reconcile(now, s)
	} else if v.released || v.owner == n.own {
		n.reconcile(now, s)
	}
}

// inherited returns the granter of a shard that this node has claimed with the message after the newest
// one that it has seen: the condition of all its writes was that one or an earlier one.
func (n *ownership) inherited(now Instant, s Shard) *granter {
	v := &n.epochs[s]
	ready := now.Add(n.o.TTL)
	switch g := n.granterOf(s); {
	case v.handover != nil:
		return v.handover.granter(v.seen, &n.o, n.isOver)
	case g != nil:
		return g
	case v.seq == 0: // the first owner
		ready = -Instant(never)
	case n.members.all[v.owner].isExpired(v.incarnation):
		// What the owner has granted has ended. What others have granted before it ends within a TTL.
		ready = max(now, v.seen.Add(n.o.TTL))
	}
	return newGranter(ready, &n.o, n.isOver)
}

// granterOf returns the granter of the newest epoch of a shard, if this node has it. It may have ended.
func (n *ownership) granterOf(s Shard) *granter {
	v := &n.epochs[s]
	if h := n.byShard[s]; h != nil && h.opened == v.seq && v.seq != 0 {
		return h.granter
	}
	return v.granter
}

// EpochAnswer reports the result of a [WriteEpoch]: the sequence of the message if it was written.
func (n *Node) EpochAnswer(now Instant, s Shard, id uint64, seq Sequence, written bool) {
	h := n.byShard[s]
	if h == nil || h.write.id != id || id == 0 {
		return
	}
	if written {
		n.EpochSeen(now, s, seq, h.written)
		return
	}
	n.settle(h)
	h.retry = now.Add(n.o.Retry)
	n.out = append(n.out, ReadEpoch{s})
}

// tickHolding repeats what had no answer.
func (n *Node) tickHolding(now Instant, h *holding) {
	if h.write.id != 0 && now.Sub(h.write.sent) >= n.o.Retry {
		n.settle(h)
		n.out = append(n.out, ReadEpoch{h.shard})
	}
	if h.engine == stopped {
		n.reconcile(now, h.shard)
	}
	if g := n.granterOf(h.shard); g != nil && (h.engine != stopped || n.isQuarantined(h.shard)) {
		n.tickGranter(now, h, g)
	}
}

// MayStart reports whether a request to a host of a shard may start. The shell checks it before it
// connects, and again before it writes the request.
func (n *ownership) MayStart(now Instant, s Shard) bool {
	h := n.byShard[s]
	return h != nil && h.engine == running && n.isTrusted(now) && n.self.until.Sub(now) >= n.o.LastStart
}

// Owner returns the node that owns a shard, and its epoch, as far as this node knows. The name is
// empty if nobody does.
func (n *ownership) Owner(s Shard) (node string, epoch Sequence) {
	if v := &n.epochs[s]; !v.isFree() {
		return n.members.all[v.owner].name, v.seq
	}
	return "", 0
}
