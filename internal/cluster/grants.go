package cluster

import (
	"slices"
	"strings"
	"time"
)

// sweepEvery is the time between two walks over the limits that a shard grants.
const sweepEvery = time.Minute

// Need sets how many requests a shard has a use for under a shared limit, those in flight included.
func (n *Node) Need(now Instant, s Shard, key string, want int) {
	h := n.byShard[s]
	if h == nil || h.engine != running {
		return
	}
	a := h.allowance(key)
	if a == nil {
		if want == 0 {
			return
		}
		a = &allowance{key: key}
		i, _ := h.search(key)
		h.allowances = slices.Insert(h.allowances, i, a)
	}
	a.want = want
	n.tickAllowance(now, h, a)
}

// Start reports whether a request to a host of a shard may start under a shared limit, and counts it
// if so. [Node.End] ends it.
func (n *Node) Start(now Instant, s Shard, key string) bool {
	if !n.MayStartUnder(now, s, key) {
		return false
	}
	a := n.byShard[s].allowance(key)
	a.using++
	a.used = true
	return true
}

// End ends a request that [Node.Start] has counted, also one that was broken off.
func (n *Node) End(now Instant, s Shard, key string) {
	h := n.byShard[s]
	if h == nil {
		return
	}
	if a := h.allowance(key); a != nil && a.using > 0 {
		a.using--
		n.tickAllowance(now, h, a)
	}
}

// Until returns the instant at which requests in flight of a shard under a shared limit are broken
// off, unless grants and heartbeats have extended it.
func (n *Node) Until(s Shard, key string) Instant {
	if h := n.byShard[s]; h != nil {
		if a := h.allowance(key); a != nil {
			return min(a.until, n.self.until)
		}
	}
	return 0
}

// GrantRequested takes a request to the granter of a shared limit.
func (n *Node) GrantRequested(now Instant, r GrantRequest) {
	h := n.byShard[GranterOf(r.Key, n.o.Shards)]
	if h == nil || h.engine != running || !n.isTrusted(now) || r.User < 0 || int(r.User) >= n.o.Shards {
		return
	}
	n.out = h.granter.handle(now, r, n.out)
}

// Granted takes a grant. Grants for an earlier epoch or an older request have no effect.
func (n *Node) Granted(now Instant, g Grant) {
	h := n.byShard[g.User]
	if h == nil || h.engine == stopped || h.opened != g.Epoch {
		return
	}
	if a := h.allowance(g.Key); a != nil {
		a.apply(now, &n.o, g)
		n.tickAllowance(now, h, a)
	}
}

// search returns where the allowance of a limit is, or would be.
func (h *holding) search(key string) (int, bool) {
	return slices.BinarySearchFunc(h.allowances, key, func(a *allowance, key string) int {
		return strings.Compare(a.key, key)
	})
}

// allowance returns what a shard has of a limit, or nil.
func (h *holding) allowance(key string) *allowance {
	if i, found := h.search(key); found {
		return h.allowances[i]
	}
	return nil
}

// tickAllowance sends what the granter needs to hear now. Without trust, slots are of no use.
func (n *Node) tickAllowance(now Instant, h *holding, a *allowance) {
	a.expire(now)
	if n.isTrusted(now) && a.isDue(now, &n.o) {
		n.out = append(n.out, SendGrantRequest{a.request(now, &n.o, h, n.id())})
	}
}

// tickGrants keeps the allowances of a shard alive, and forgets those without a use.
func (n *Node) tickGrants(now Instant, h *holding) {
	for _, a := range h.allowances {
		n.tickAllowance(now, h, a)
	}
	h.allowances = slices.DeleteFunc(h.allowances, func(a *allowance) bool {
		return a.want == 0 && a.using == 0 && a.slots == 0
	})
	if now >= h.nextSweep {
		h.nextSweep = now.Add(sweepEvery)
		h.granter.sweep(now)
	}
}

// returnSlots returns all slots of a shard whose requests have ended.
func (n *Node) returnSlots(now Instant, h *holding) {
	for _, a := range h.allowances {
		if a.slots > 0 {
			a.want, a.using, a.share, a.used = 0, 0, 0, true
			n.out = append(n.out, SendGrantRequest{a.request(now, &n.o, h, n.id())})
		}
	}
}
