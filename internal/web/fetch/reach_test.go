package fetch

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestReach(t *testing.T) {
	blocked := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
		"169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.1",
		"203.0.113.1",
		"224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1",
		"2001::1", "2001:db8::1",
		"2002:7f00:1::", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
	}
	free := []string{"1.1.1.1", "93.184.216.34", "::ffff:93.184.216.34", "2606:4700:4700::1111", "168.63.129.17"}
	public := newReach(DefaultOptions())
	for _, a := range blocked {
		assert.Is(t, public.checkAddr(netip.MustParseAddr(a)), errBlocked, a, "may be reached")
	}
	for _, a := range free {
		must.Do(t, public.checkAddr(netip.MustParseAddr(a)))
	}
	assert.True(t, public.checkAddr(netip.Addr{}) != nil, "no address may be reached")
}

func TestReachOptions(t *testing.T) {
	o := DefaultOptions()
	o.AllowRanges = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}
	o.DenyRanges = []netip.Prefix{netip.MustParsePrefix("10.1.9.0/24"), netip.MustParsePrefix("1.1.1.0/24")}
	o.Ports = []uint16{80, 8080}
	ranges := newReach(o)
	o = DefaultOptions()
	o.AllowPrivate = true
	o.DenyRanges = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}
	private := newReach(o)
	tests := []struct {
		r    *reach
		addr string
		want bool
	}{
		{ranges, "10.1.0.1:80", true}, {ranges, "10.2.0.1:80", false}, {ranges, "10.1.9.1:80", false},
		{ranges, "[fd00:1::1]:80", true},
		{ranges, "1.1.1.1:80", false}, {ranges, "8.8.8.8:8080", true}, {ranges, "8.8.8.8:443", false},
		{private, "127.0.0.1:81", true}, {private, "192.168.0.1:2222", true}, {private, "127.0.0.2:80", false},
		{private, "[::ffff:127.0.0.2]:80", false},
		{private, "224.0.0.1:80", false}, {private, "0.0.0.0:80", false}, {private, "8.8.8.8:0", false},
	}
	for _, tt := range tests {
		assert.Equal(t, (tt.r.check(netip.MustParseAddrPort(tt.addr)) == nil), tt.want, tt.addr)
	}
}

// The kernel's address is checked too, whatever its source.
func TestDialerChecksWhatIsDialled(t *testing.T) {
	s := serve(t, answer(okEmpty))
	w := newWatch(t.Context(), time.Minute, nil, time.Now)
	defer w.stop()
	d, err := newDialer(quick(), newReach(DefaultOptions()), nil, time.Now)
	must.Do(t, err)
	_, _, err = d.dial(w, connKey{scheme: "http", host: "site.test", port: s.port(), addr: loopback}, true)
	assert.True(t, errors.Is(err, errBlocked) && s.accepted() == 0, "error %v, %d connections", err, s.accepted())
	kind, _ := w.classify(err)
	assert.True(t, kind == KindBlockedAddress, "kind %v", kind)
}

// Ports of other protocols are refused unless fetch.ports names them.
func TestBadPorts(t *testing.T) {
	must.True(t, slices.IsSorted(badPorts()), "the ports are not in order")
	usual, chosen := newReach(quick()), newReach(quick(func(o *Options) { o.Ports = []uint16{80, 25} }))
	for port, want := range map[uint16][2]bool{
		80: {true, true}, 443: {true, false}, 8080: {true, false}, 25: {false, true}, 22: {false, false},
		6667:  {false, false},
		10080: {false, false}, 10081: {true, false}, 1: {false, false}, 0: {false, false}, 65535: {true, false},
	} {
		for i, r := range []*reach{usual, chosen} {
			if err := r.checkPort(port); (err == nil) != want[i] || err != nil && !errors.Is(err, errBlocked) {
				t.Errorf("port %d: %v", port, err)
			}
		}
	}
	c := newClient(t, quick())
	_, err := c.Do(t.Context(), Request{URL: parseURL(t, "http://site.test:25/"), Address: loopback})
	assert.True(t, !wantKind(t, err, KindBlockedAddress).Sent, "sent")
}
