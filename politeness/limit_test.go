package politeness

import (
	"net/netip"
	"testing"
	"time"
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
		if got := AddressKey(netip.MustParseAddr(address)); got != netip.MustParsePrefix(want) {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	if got := AddressKey(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("no address: %v", got)
	}
}

func TestAddressCountsRequestsInFlight(t *testing.T) {
	o := DefaultOptions()
	o.PerIP = 3
	a := NewLimit(o.Address())
	for i := range 3 {
		if !a.Free() {
			t.Fatalf("full with %d requests", i)
		}
		a.Begin()
	}
	if a.Free() || a.Unused(at(time.Hour)) {
		t.Fatal("not full with 3 requests")
	}
	a.Ended(at(0), SignalOK, 0)
	if !a.Free() || !a.Ready().Equal(at(0)) {
		t.Fatalf("free %v, ready at %v", a.Free(), a.Ready())
	}
	a.Ended(at(1), SignalOK, 0)
	a.Ended(at(2), SignalOK, 0)
	if !a.Unused(at(2)) {
		t.Fatal("in use without requests")
	}
	a.Ended(at(3), SignalOK, 0) // an end without a beginning does not make room
	for range 3 {
		a.Begin()
	}
	if a.Free() {
		t.Fatal("more than 3 requests fit")
	}
}

func TestAddressDelay(t *testing.T) {
	const s = time.Second
	o := DefaultOptions()
	o.PerIP, o.IPDelay = 3, s/4
	a := NewLimit(o.Address())
	if !a.Ready().IsZero() || !a.Free() || !a.Unused(at(0)) {
		t.Fatal("an address without a request is not ready")
	}
	for _, end := range []time.Duration{s, 2 * s, 2*s + s/4, 10 * s} {
		a.Begin()
		if a.Free() {
			t.Fatal("a second request fits, although there is a delay between two")
		}
		a.Ended(at(end), SignalOK, 0)
		if got, want := a.Ready().Sub(epoch), end+s/4; got != want {
			t.Errorf("ready at %v, want %v", got, want)
		}
		if a.Unused(at(end+s/4-1)) || !a.Unused(at(end+s/4)) {
			t.Error("unused while a delay runs, or in use after it")
		}
	}
	a.RestartHold(at(20 * s))
	if got, want := a.Ready().Sub(epoch), 20*s+s/4; got != want {
		t.Errorf("after a crash ready at %v, want %v", got, want)
	}
}
