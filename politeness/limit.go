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
	pace     pace
	inFlight int
}

// LimitOptions are the numbers of a [Limit].
type LimitOptions struct {
	InFlight int           // requests in flight; one if Delay is not zero. 0: no limit
	Delay    time.Duration // from the end of a request to the start of the next
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
	return errors.Join(errs...)
}

// NewLimit returns a limit to which no request was made.
func NewLimit(o LimitOptions) Limit { return Limit{options: o} }

// Options returns the options.
func (l *Limit) Options() LimitOptions { return l.options }

// SetOptions replaces the options. A longer delay counts from the end of the last request at once.
func (l *Limit) SetOptions(o LimitOptions) {
	l.options = o
	l.pace.charge(o.Delay)
}

// Begin records a request that starts.
func (l *Limit) Begin() { l.inFlight++ }

// Ended records the end of a request that has begun.
func (l *Limit) Ended(end time.Time) {
	l.inFlight = max(l.inFlight-1, 0)
	l.pace.ended(end, l.options.Delay)
}

// RestartHold holds the limit as if a request had ended now, as after a crash. See [Host.HoldFor].
func (l *Limit) RestartHold(now time.Time) { l.pace.ended(now, l.options.Delay) }

// Ready returns the earliest instant at which the next request may start, or the zero time before
// the first.
func (l *Limit) Ready() time.Time { return l.pace.ready() }

// Free reports whether one more request may be in flight: fewer than LimitOptions.InFlight are, or
// none if there is a Delay, because a gap between requests excludes requests in parallel.
func (l *Limit) Free() bool {
	if l.options.Delay > 0 {
		return l.inFlight == 0
	}
	return l.options.InFlight == 0 || l.inFlight < l.options.InFlight
}

// Unused reports whether nothing is in flight and no delay runs at now, so that the Limit can be
// dropped.
func (l *Limit) Unused(now time.Time) bool { return l.inFlight == 0 && !now.Before(l.Ready()) }

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
