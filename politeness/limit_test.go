package politeness

import (
	"net/netip"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestAddressKey(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7":            "192.0.2.7/32",
		"::ffff:192.0.2.7":     "192.0.2.7/32",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1": "2001:db8:1:2::/64",
		"fe80::1%eth0":         "fe80::/64",
		"::1":                  "::/64",
	} {
		assert.Equal(t, AddressKey(netip.MustParseAddr(address)), netip.MustParsePrefix(want), address, want)
	}
	assert.Equal(t, AddressKey(netip.Addr{}), (netip.Prefix{}), "no address")
}

func TestAddressCountsRequestsInFlight(t *testing.T) {
	o := DefaultOptions()
	o.PerIP = 3
	a := NewLimit(o.Address())
	for i := range 3 {
		must.True(t, a.Free(), "full with %d requests", i)
		a.Begin()
	}
	must.True(t, !a.Free() && !a.Unused(at(time.Hour)), "not full with 3 requests")
	a.Ended(at(0), SignalOK, 0)
	must.True(t, a.Free() && a.Ready().Equal(at(0)), "free %v, ready at %v", a.Free(), a.Ready())
	a.Ended(at(1), SignalOK, 0)
	a.Ended(at(2), SignalOK, 0)
	must.True(t, a.Unused(at(2)), "in use without requests")
	a.Ended(at(3), SignalOK, 0) // an end without a beginning does not make room
	for range 3 {
		a.Begin()
	}
	must.True(t, !a.Free(), "more than 3 requests fit")
}

func TestAddressDelay(t *testing.T) {
	const s = time.Second
	o := DefaultOptions()
	o.PerIP, o.IPDelay = 3, s/4
	a := NewLimit(o.Address())
	must.True(t, a.Ready().IsZero() && a.Free() && a.Unused(at(0)), "an address without a request is not ready")
	for _, end := range []time.Duration{s, 2 * s, 2*s + s/4, 10 * s} {
		a.Begin()
		must.True(t, !a.Free(), "a second request fits, although there is a delay between two")
		a.Ended(at(end), SignalOK, 0)
		assert.Equal(t, a.Ready().Sub(epoch), end+s/4, "ready at")
		assert.True(t, !a.Unused(at(end+s/4-1)) && a.Unused(at(end+s/4)),
			"unused while a delay runs, or in use after it")
	}
	a.RestartHold(at(20 * s))
	assert.Equal(t, a.Ready().Sub(epoch), 20*s+s/4, "after a crash ready at")
}
