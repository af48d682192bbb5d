package politeness

import (
	"math"
	"slices"
	"time"
)

// Hold is a wait of known length that does not depend on the delay in force.
type Hold struct {
	Until  time.Time
	Length time.Duration // of the whole wait, from Until - Length to Until
	Reason Reason
	Header string // of Retry-After or RateLimit, or the kind of a wall, cut at MaxHeader bytes; empty: none
}

// MaxHeader is the number of bytes that are kept of a header's value.
const MaxHeader = 40

// Forever is the length of a hold that does not end by itself.
const Forever time.Duration = math.MaxInt64

// holds are the holds of a host, at most one of each kind: what the host demands, what the crawler
// decides, and what the operator wants. Each kind can be dropped without the others.
type holds []Hold

// kind returns the class of a hold; see holds.
func (r Reason) kind() Reason {
	switch r {
	case ReasonBackoff, ReasonPause:
		return r
	case ReasonWall:
		return ReasonBackoff
	}
	return ReasonRetryAfter
}

// extend adds a hold of x.Length after since, unless the hold of the same kind ends later.
func (h *holds) extend(since time.Time, x Hold) {
	if x.Length <= 0 {
		return
	}
	x.Until = since.Add(x.Length)
	for i, old := range *h {
		if old.Reason.kind() != x.Reason.kind() {
			continue
		}
		(*h)[i].Length = max(old.Length, x.Length) // a clock that is set back then cuts neither
		if x.Until.After(old.Until) {
			(*h)[i] = x
		}
		return
	}
	*h = append(*h, x)
}

// drop removes the hold of a kind.
func (h *holds) drop(kind Reason) {
	var kept holds
	for _, x := range *h {
		if x.Reason.kind() != kind {
			kept = append(kept, x)
		}
	}
	*h = kept
}

// has reports whether there is a hold of a kind.
func (h holds) has(kind Reason) bool {
	return slices.ContainsFunc(h, func(x Hold) bool { return x.Reason.kind() == kind })
}

// last returns the hold that ends last, of all kinds but one, or the zero Hold if there is none.
func (h holds) last(without Reason) (last Hold) {
	for _, x := range h {
		if x.Reason.kind() != without && x.Until.After(last.Until) {
			last = x
		}
	}
	return last
}

// causedByHost reports whether the host is held at an instant because of its responses.
func (h holds) causedByHost(at time.Time) bool {
	for _, x := range h {
		if at.Before(x.Until) && (x.Reason.kind() == ReasonBackoff || x.Reason == ReasonRetryAfter ||
			x.Reason == ReasonRateLimit) {
			return true
		}
	}
	return false
}

// clipped cuts the value of a header to MaxHeader bytes.
func clipped(header string) string { return header[:min(len(header), MaxHeader)] }
