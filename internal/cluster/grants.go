package cluster

import (
	"slices"
	"strings"
	"time"
)

// sweepEvery is the time between two walks over the limits that a shard grants.
const sweepEvery = time.Minute

// newGranterAfter is the time that a new granter has to begin to listen before it is sent a request.
const newGranterAfter = 100 * time.Millisecond

// Need is what a node needs of a shared limit, besides the requests in flight.
type Need struct {
	Limit   Limit
	Waiting int  // requests that wait for a slot
	Hold    bool // one of them waits for something else as well, and must not lose the slot to others
}

// Need says what the node needs of a shared limit. Until it needs nothing any more, it gets and keeps
// as many slots as others leave.
func (n *grants) Need(now Instant, key string, need Need) {
	i, found := n.search(key)
	if !found {
		if need.Waiting == 0 {
			return
		}
		// There may have been an allowance, with a slot that the granter does not know to be back.
		n.allowances = slices.Insert(n.allowances, i, &allowance{key: key, used: true})
	}
	a := n.allowances[i]
	a.limit, a.waiting, a.hold = need.Limit, need.Waiting, need.Hold
	n.tickAllowance(now, a)
}

// Start reports whether a request may start under a shared limit, and counts it if so. [Node.End] ends
// it. A request also needs what [Node.MayStart] says.
func (n *grants) Start(now Instant, key string) bool {
	a := n.allowance(key)
	if a == nil || a.using >= a.slots || !a.isValid(now, &n.o) {
		return false
	}
	a.using++
	a.used = true
	n.tickAllowance(now, a)
	return true
}

// MayContinue reports whether a request that [Node.Start] has counted may be made now. It may not if
// the slots have expired since, and those that came after them are used or their turn has not come.
func (n *grants) MayContinue(now Instant, key string) bool {
	a := n.allowance(key)
	return a != nil && a.using <= a.slots && a.isValid(now, &n.o)
}

// End ends a request that [Node.Start] has counted, also one that was broken off or never made.
func (n *grants) End(now Instant, key string) {
	if a := n.allowance(key); a != nil && a.using > 0 {
		a.using--
		n.tickAllowance(now, a)
	}
}

// Until returns the instant at which requests in flight under a shared limit are broken off, unless
// grants and heartbeats have extended it.
func (n *grants) Until(key string) Instant {
	if a := n.allowance(key); a != nil {
		return min(a.until, n.self.until)
	}
	return 0
}

// GrantRequested takes a request to the granter of a shared limit.
func (n *grants) GrantRequested(now Instant, r GrantRequest) {
	if !n.IsGranter(now, r.Key) || !n.isMember(r.User) {
		return
	}
	for _, g := range n.granterOf(GranterOf(r.Key, n.o.Shards)).handle(now, r) {
		g.For = n.self.until.Sub(now)
		n.out = append(n.out, SendGrant{g})
	}
}

// IsGranter reports whether this node grants a shared limit. While the engine of the shard makes its
// last commit, it does, and while the shard is in quarantine.
func (n *ownership) IsGranter(now Instant, key string) bool {
	s := GranterOf(key, n.o.Shards)
	h := n.byShard[s]
	if h == nil || h.releases || !n.isTrusted(now) {
		return false
	}
	return h.engine == running || h.engine == draining || h.engine == stopped && n.isQuarantined(s)
}

// repeatRequests repeats the requests to the granter of a shard soon: a new one does not know who waits.
func (n *grants) repeatRequests(now Instant, s Shard) {
	for _, a := range n.allowances {
		if GranterOf(a.key, n.o.Shards) == s {
			a.repeated = min(a.repeated, now.Add(newGranterAfter-n.o.Retry))
		}
	}
}

// isMember reports whether a membership is the newest one of its node, and not over.
func (n *ownership) isMember(m Member) bool {
	i, known := n.members.byName[m.Node]
	if !known {
		return false
	}
	r := n.members.all[i]
	return r.seq != 0 && r.incarnation == m.Incarnation && !r.isOver(m.Incarnation)
}

// isOver reports whether a membership is known to have ended.
func (n *ownership) isOver(m Member) bool {
	i, known := n.members.byName[m.Node]
	return known && n.members.all[i].isOver(m.Incarnation)
}

// Member returns the membership of this node. Its Incarnation is 0 if there is none.
func (n *ownership) Member() Member { return Member{n.o.Node, n.self.incarnation} }

// Granted takes a grant. Grants for an earlier membership or an older request have no effect.
func (n *grants) Granted(now Instant, g Grant) {
	if a := n.allowance(g.Key); a != nil && n.self.incarnation != 0 && g.User == n.Member() {
		a.apply(now, &n.o, g)
		n.tickAllowance(now, a)
	}
}

// search returns where the allowance of a limit is, or would be.
func (n *grants) search(key string) (int, bool) {
	return slices.BinarySearchFunc(n.allowances, key, func(a *allowance, key string) int {
		return strings.Compare(a.key, key)
	})
}

// allowance returns what the node has of a limit, or nil.
func (n *grants) allowance(key string) *allowance {
	if i, found := n.search(key); found {
		return n.allowances[i]
	}
	return nil
}

// tickAllowance sends what the granter needs to hear now. Without trust, slots are of no use.
func (n *grants) tickAllowance(now Instant, a *allowance) {
	a.expire(now)
	if n.isTrusted(now) && a.isDue(now, &n.o) {
		n.out = append(n.out, SendGrantRequest{a.request(now, &n.o, n.Member(), n.id())})
	}
}

// tickGrants keeps the allowances alive, and forgets those without a use.
func (n *grants) tickGrants(now Instant) {
	for _, a := range n.allowances {
		n.tickAllowance(now, a)
	}
	n.allowances = slices.DeleteFunc(n.allowances, func(a *allowance) bool {
		return a.want() == 0 && a.slots == 0 && !a.isUnheard(now, &n.o)
	})
}

// tickGranter lets the granter of a shard forget limits.
func (n *grants) tickGranter(now Instant, h *holding, g *granter) {
	if now >= h.nextSweep {
		h.nextSweep = now.Add(sweepEvery)
		g.sweep(now)
	}
}

// dropSlots gives up all slots: the membership that has them is over, and so are its requests.
func (n *grants) dropSlots() {
	for _, a := range n.allowances {
		a.slots, a.number = 0, 0
	}
}
