package politeness

import (
	"math"
	"time"
)

// Hold is a wait of known length that does not depend on the delay in force.
type Hold struct {
	Until  time.Time
	Length time.Duration // of the whole wait, which began at Until - Length
	Reason Reason
	Header string // the value of Retry-After, cut at MaxHeader bytes; empty: it has none
}

// MaxHeader is how much of the value of a header is kept.
const MaxHeader = 40

// Forever is the length of a hold that does not end by itself.
const Forever time.Duration = math.MaxInt64

// holds are those of a host: at most one of each kind. What the host is owed, what the crawler does of its own
// accord and what its operator wants are kept apart, because each can be dropped without the others.
type holds []Hold

// kind is the class of a hold; see holds.
func (r Reason) kind() Reason {
	switch r {
	case ReasonBackoff, ReasonPause:
		return r
	}
	return ReasonRetryAfter
}

// extend holds until length after since, where that is later than the hold of the same kind.
func (h *holds) extend(since time.Time, x Hold) {
	if x.Length <= 0 {
		return
	}
	x.Until = since.Add(x.Length)
	for i, old := range *h {
		if old.Reason.kind() != x.Reason.kind() {
			continue
		}
		if x.Until.After(old.Until) {
			(*h)[i] = x
		}
		return
	}
	*h = append(*h, x)
}

// drop ends the hold of a kind.
func (h *holds) drop(kind Reason) {
	var kept holds
	for _, x := range *h {
		if x.Reason.kind() != kind {
			kept = append(kept, x)
		}
	}
	*h = kept
}

// last is the hold that ends last, of all kinds but one; the zero Hold where there is none.
func (h holds) last(without Reason) (last Hold) {
	for _, x := range h {
		if x.Reason.kind() != without && x.Until.After(last.Until) {
			last = x
		}
	}
	return last
}

// trouble reports whether the host is held at an instant because of what it answered.
func (h holds) trouble(at time.Time) bool {
	for _, x := range h {
		if at.Before(x.Until) && (x.Reason == ReasonBackoff || x.Reason == ReasonRetryAfter) {
			return true
		}
	}
	return false
}

// clipped cuts the value of a header.
func clipped(header string) string { return header[:min(len(header), MaxHeader)] }
