// Package manners judges the requests to one host by their times: whether a request kept the delay
// since those before it, and the time that a response named. The audit of a crawler's own log and the
// conformance suite, which sees requests at the server, judge by it. It is pure and knows no clock:
// instants are of the caller's type.
package manners

import "time"

// Instant is a moment. Sub returns how long after u it is, and whether that is exact.
type Instant[T any] interface {
	Sub(u T) (d time.Duration, exact bool)
	IsZero() bool
}

// Request is a request to the host.
type Request[T any] struct {
	Start, End T
	Delay      time.Duration // in force, from the end of the requests before; 0: none
	RetryAfter time.Duration // that its response named, from its end; 0: none
}

// Verdict is what a request was, compared with those before it.
type Verdict struct {
	HasGap bool          // there was a request before
	Gap    time.Duration // since the latest end; negative: both were in flight
	Exact  bool          // Gap was measured by a clock that nobody can set
	Short  bool          // Gap is less than the delay in force
	// Overtaken is set if a request that is known already began later, and this one was in flight or its
	// delay was not over. That one came too early, by its own delay, which is Delay.
	Overtaken  bool
	Delay      time.Duration
	Early      time.Duration // left of the time that a response before it named; 0: it was over
	EarlyExact bool
}

// Host is what is known of the requests to a host. Its zero value knows none.
type Host[T Instant[T]] struct {
	seen           bool
	started, ended T             // the latest start, and the latest end
	delay          time.Duration // in force at the latest start
	answered       T             // the end of the request whose response named a time
	named          time.Duration // that time, since answered
}

// Judge compares a request with those that Pass was called for.
func (h *Host[T]) Judge(q Request[T]) (v Verdict) {
	if v.HasGap = h.seen; !h.seen {
		return v
	}
	v.Gap, v.Exact = q.Start.Sub(h.ended)
	if since, _ := q.Start.Sub(h.started); since < 0 {
		early, _ := h.started.Sub(q.End)
		v.Overtaken, v.Delay = h.delay > 0 && early < h.delay, h.delay
	} else {
		v.Short = q.Delay > 0 && v.Gap < q.Delay
	}
	if !h.answered.IsZero() { // requests that were in flight when it arrived are exempt
		if since, exact := q.Start.Sub(h.answered); since > 0 && since < h.named {
			v.Early, v.EarlyExact = h.named-since, exact
		}
	}
	return v
}

// Pass takes note of a request, for comparison with later ones.
func (h *Host[T]) Pass(q Request[T]) {
	if !h.seen || isLater(q.End, h.ended) {
		h.ended = q.End
	}
	if !h.seen || isLater(q.Start, h.started) {
		h.started, h.delay = q.Start, q.Delay
	}
	if q.RetryAfter > 0 {
		since, _ := q.End.Sub(h.answered)
		if h.answered.IsZero() || since+q.RetryAfter > h.named {
			h.answered, h.named = q.End, q.RetryAfter
		}
	}
	h.seen = true
}

func isLater[T Instant[T]](a, b T) bool {
	d, _ := a.Sub(b)
	return d > 0
}
