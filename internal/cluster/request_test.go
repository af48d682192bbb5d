package cluster

import (
	"fmt"
	"slices"
	"time"
)

// webRequest is a request to a host of a shard, perhaps under a shared limit.
type webRequest struct {
	p     *process
	life  int
	shard Shard
	kind  string
	keys  []string
	ended bool
}

// name names the requests of a kind to a shard.
func (r *webRequest) name() string { return fmt.Sprint(r.shard, r.kind) }

// limitName names a limit as the process uses it.
func (p *process) limitName(key string) string { return fmt.Sprint(p.i, p.life, key) }

// begin begins a request, and holds that no other owner has one in flight to the shard, and that
// the shared limit allows it.
func (w *world) begin(r *webRequest) {
	together := make(map[string]int)
	for _, other := range w.inFlight {
		if other.shard == r.shard && (other.p != r.p || other.life != r.life) {
			w.fail("requests of processes %d and %d to shard %d", other.p.i, r.p.i, r.shard)
		}
		for _, key := range other.keys {
			together[key]++
		}
	}
	for _, key := range r.keys {
		w.pauses[key] = max(w.pauses[key], w.now-w.begun[key])
		w.begun[key] = w.now
		limit := worldLimits[key]
		end, known := w.lastEnd[key]
		if together[key] >= limit.Slots || known && w.now-end < limit.Delay {
			w.fail("%d requests, %v after the last, under %q", together[key]+1, w.now-end, key)
		}
	}
	w.lastStart[r.name()] = w.now
	w.inFlight = append(w.inFlight, r)
	length := w.between(10*time.Millisecond, 500*time.Millisecond)
	if w.chance(0.1) {
		length = w.between(0, 40*time.Second)
	}
	w.after(length, r.end)
	r.watch()
}

// watch breaks off the request when the trust of its process, or its grant, ends.
func (r *webRequest) watch() {
	if r.ended {
		return
	}
	left := r.until().Sub(r.p.clock())
	if left <= 0 {
		r.end()
		return
	}
	r.p.w.after(time.Duration(float64(left)/r.p.rate)+1, r.watch)
}

func (r *webRequest) until() Instant {
	until := r.p.n.Trust()
	for _, key := range r.keys {
		until = min(until, r.p.n.Until(key))
	}
	return until
}

// end ends the request.
func (r *webRequest) end() {
	if r.ended {
		return
	}
	w := r.p.w
	r.ended = true
	w.inFlight = slices.DeleteFunc(w.inFlight, func(other *webRequest) bool { return other == r })
	for _, key := range r.keys {
		w.lastEnd[key], w.lastEnd[r.p.limitName(key)] = w.now, w.now
	}
	r.p.deliver(r.life, func(n *Node, now Instant) {
		for _, key := range r.keys {
			n.End(now, key)
		}
		if h := n.byShard[r.shard]; h != nil && h.engine == draining {
			r.p.engineEnds(r.shard)
		}
	})
}
