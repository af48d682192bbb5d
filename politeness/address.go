package politeness

import (
	"net/netip"
	"time"
)

// Address is the politeness of one IP address, shared by all the hosts that live there. It has one
// owner at a time: its methods may not be called concurrently.
type Address struct {
	options  *Options
	pace     pace
	inFlight int
}

// NewAddress returns an address that was never asked. The options are shared, not copied.
func NewAddress(o *Options) *Address {
	return &Address{options: o, pace: newPace()}
}

// Begin takes note of a request that starts.
func (a *Address) Begin() { a.inFlight++ }

// Ended takes note of the end of a request that was begun.
func (a *Address) Ended(end time.Time) {
	a.inFlight = max(a.inFlight-1, 0)
	a.pace.ended(end, a.options.IPDelay)
}

// Owe makes the address wait as if a request had ended now: for after a crash, see [Host.Owe].
func (a *Address) Owe(now time.Time) { a.pace.ended(now, a.options.IPDelay) }

// Ready is the earliest instant at which the next request may start: the zero time before the first.
func (a *Address) Ready() time.Time { return a.pace.ready(a.options.IPDelay) }

// Free reports whether one more request may be in flight: fewer than Options.PerIP are, or none
// where Options.IPDelay is not zero, because a gap between requests and requests side by side exclude each other.
func (a *Address) Free() bool {
	if a.options.IPDelay > 0 {
		return a.inFlight == 0
	}
	return a.inFlight < a.options.PerIP
}

// Idle reports whether nothing is in flight and nothing is owed at now, so that the Address can be forgotten.
func (a *Address) Idle(now time.Time) bool {
	return a.inFlight == 0 && !now.Before(a.Ready())
}

// AddressKey is what requests are counted by: a single IPv4 address, and the /64 network of an IPv6
// one, which is what a single customer is given (RFC 6177). An IPv4 address in IPv6 clothes counts as IPv4. The
// invalid address has the invalid prefix.
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
