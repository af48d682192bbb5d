package politeness

import (
	"slices"
	"time"
)

// Budget is how much of its limit an address gets, by what it has shown that it can serve. It begins
// with LimitOptions.Rate requests a second, one at a time, and grows by steps up to the whole limit
// while responses come without errors and as quickly as at the steps before. Slow responses take it
// two steps back, at most to where it began; errors take it further. While there is one request at a time,
// the pause after it is at least as long as responses take, so that one of several workers of a
// server is idle for half of the time. The zero value is where a budget begins.
type Budget struct {
	step    int8   // 0: where it begins; below: after errors
	good    uint8  // windows in a row in favour of the next step
	caution uint8  // the next step needs 1<<caution of them
	n       uint8  // responses in the window
	failed  uint8  // failures in the window
	usual   uint32 // microseconds that a response takes, by the median of the quickest windows; 0: unknown
	window  [budgetWindow]uint32
}

const (
	budgetWindow   = 8 // responses that are judged together
	budgetFailures = 3 // of them that fail, and the budget gets smaller
	soloSteps      = 3 // the steps with one request at a time behind the first; each halves the pause
	mostCaution    = 5
	longestPause   = time.Minute // after errors
	errorsKept     = time.Hour   // behind the last request
	budgetSlack    = 2000        // microseconds by which the time of responses may differ
)

// InForce returns the limit that the budget allows of a whole one.
func (b *Budget) InForce(o LimitOptions) LimitOptions {
	if o.Rate <= 0 {
		return o
	}
	if extra := int(b.step) - soloSteps; extra > 0 {
		if o.InFlight == 0 || o.InFlight > 1<<extra {
			o.InFlight = 1 << extra
		}
		return o
	}
	first, pause := time.Duration(float64(time.Second)/o.Rate), time.Duration(0)
	if b.step < 0 {
		pause = min(first<<-b.step, max(first, longestPause))
	} else {
		pause = max(first>>b.step, min(b.response(), max(first, longestPause)))
	}
	o.InFlight, o.Delay = 1, max(o.Delay, pause)
	return o
}

// response returns the usual time of a response, rounded up so that it changes rarely.
func (b *Budget) response() time.Duration {
	const unit = 10 * time.Millisecond
	return (time.Duration(b.usual)*time.Microsecond + unit - 1).Truncate(unit)
}

// Ended takes note of a request that has ended after a time.
func (b *Budget) Ended(o LimitOptions, s Signal, d time.Duration) {
	switch s {
	case SignalThrottled, SignalServerError, SignalUnreachable:
		if b.failed++; b.failed >= budgetFailures {
			b.back(1, -16)
		}
		return
	case SignalAborted:
		return
	}
	b.window[b.n] = uint32(min(max(d.Microseconds(), 1), int64(time.Hour/time.Microsecond)))
	if b.n++; b.n < budgetWindow {
		return
	}
	slices.Sort(b.window[:])
	median := b.window[budgetWindow/2]
	if b.usual == 0 || median < b.usual {
		b.usual = median
	}
	slow := median > b.usual+b.usual/4+budgetSlack
	b.usual += (median - b.usual) / 4 // what stays slow becomes usual
	failed := b.failed > 0
	if b.n, b.failed = 0, 0; slow {
		b.back(2, 0) // to half of what it serves
		return
	}
	if failed || !b.canGrow(o) {
		return
	}
	if b.good++; b.good >= 1<<b.caution || b.isLow() {
		b.step, b.good = b.step+1, 0
	}
}

// canGrow reports whether there is a step that allows more.
func (b *Budget) canGrow(o LimitOptions) bool {
	extra := int(b.step) - soloSteps
	if extra < 0 {
		return true
	}
	return extra < 24 && (o.InFlight == 0 || 1<<extra < o.InFlight)
}

// back goes some steps back, to least at most, and is more careful from then on.
func (b *Budget) back(steps, least int8) {
	b.n, b.failed, b.good = 0, 0, 0
	b.step = min(b.step, max(b.step-steps, least))
	b.caution = min(b.caution+1, mostCaution)
}

// isLow reports whether errors have made the budget smaller than it was at first.
func (b *Budget) isLow() bool { return b.step < 0 }
