package politeness

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Limit bounds the requests to all hosts that share an IP address, a range of addresses or a
// registrable domain. It has one owner at a time: its methods may not be called concurrently, and
// it may not be copied once it is in use.
type Limit struct {
	options  LimitOptions
	inForce  LimitOptions // what the budget allows of options
	budget   Budget
	hold     time.Time // what a larger budget does not make earlier
	pace     pace
	inFlight int
}

// LimitOptions are the numbers of a [Limit].
type LimitOptions struct {
	InFlight int           // requests in flight; one if Delay is not zero. 0: no limit
	Delay    time.Duration // from the end of a request to the start of the next
	Rate     float64       // requests a second with which a [Budget] begins; 0: the whole limit at once
}

// Validate returns nil, or what cannot be used. The error wraps [ErrOption].
func (o LimitOptions) Validate() error {
	var errs []error
	if o.InFlight < 0 {
		errs = append(errs, fmt.Errorf("%w: a limit of %d requests in flight, allowed is 0 (none) or more", ErrOption,
			o.InFlight))
	}
	if o.Delay < 0 {
		errs = append(errs, fmt.Errorf("%w: a limit with a delay of %v, allowed is 0s or more", ErrOption, o.Delay))
	}
	if !(o.Rate >= 0 && o.Rate <= MaxRate) {
		errs = append(errs, fmt.Errorf("%w: a limit with a rate of %v, allowed is 0 (no budget) to %d", ErrOption,
			o.Rate, MaxRate))
	}
	return errors.Join(errs...)
}

// MaxRate is the largest rate with which a [Budget] may begin, in requests a second.
const MaxRate = 1000

// NewLimit returns a limit to which no request was made.
func NewLimit(o LimitOptions) Limit { return Limit{options: o, inForce: new(Budget).InForce(o)} }

// Options returns the options.
func (l *Limit) Options() LimitOptions { return l.options }

// InForce returns what the budget allows of the options at the moment.
func (l *Limit) InForce() LimitOptions { return l.inForce }

// SetOptions replaces the options. A longer delay counts from the end of the last request at once.
func (l *Limit) SetOptions(o LimitOptions) {
	l.options, l.inForce, l.hold = o, l.budget.InForce(o), time.Time{}
	l.pace.charge(l.inForce.Delay)
}

// Begin records a request that starts.
func (l *Limit) Begin() { l.inFlight++ }

// Ended records the end of a request that has begun, what came of it, and how long it took.
func (l *Limit) Ended(end time.Time, s Signal, took time.Duration) {
	l.inFlight = max(l.inFlight-1, 0)
	if l.options.Rate > 0 {
		l.hold = l.Ready()
		l.budget.Ended(l.options, s, took)
		l.inForce = l.budget.InForce(l.options)
	}
	l.pace.ended(end, l.inForce.Delay)
}

// RestartHold holds the limit as if a request had ended now, as after a crash. See [Host.HoldFor].
func (l *Limit) RestartHold(now time.Time) { l.pace.ended(now, l.inForce.Delay) }

// Ready returns the earliest instant at which the next request may start, or the zero time before
// the first.
func (l *Limit) Ready() time.Time {
	if at := l.pace.ready(); at.After(l.hold) {
		return at
	}
	return l.hold
}

// Free reports whether one more request may be in flight: fewer than InFlight of [Limit.InForce] are, or
// none if there is a Delay, because a gap between requests excludes requests in parallel.
func (l *Limit) Free() bool {
	if l.inForce.Delay > 0 {
		return l.inFlight == 0
	}
	return l.inForce.InFlight == 0 || l.inFlight < l.inForce.InFlight
}

// Unused reports whether nothing is in flight and no delay runs at now, so that the Limit can be
// dropped. A budget that errors have made smaller is kept for an hour.
func (l *Limit) Unused(now time.Time) bool {
	unused := l.inFlight == 0 && !now.Before(l.Ready())
	return unused && !(l.budget.isLow() && now.Before(l.Ready().Add(errorsKept)))
}

// AddressKey returns the key that requests are counted by: a single IPv4 address, or the /64
// network of an IPv6 address, which one customer gets (RFC 6177). An IPv4-mapped IPv6 address
// counts as IPv4. The invalid address has the invalid prefix.
func AddressKey(a netip.Addr) netip.Prefix {
	a = a.Unmap()
	bits := 64
	if a.Is4() {
		bits = 32
	}
	key, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return key
}
