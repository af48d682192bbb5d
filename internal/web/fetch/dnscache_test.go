package fetch

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// A name is resolved once while its result holds, absence included. The cache has no more names
// than its bound.
func TestResolutionsAreCached(t *testing.T) {
	ns := serveDNS(t, zone{
		"one.test":    {addrs: []string{"93.184.216.34"}, ttl: 299},
		"silent.test": {silent: true},
	})
	now := time.Unix(1_000_000, 0)
	o := quick(func(o *Options) { o.Resolver, o.ResolveCache, o.ResolveTimeout = ns.address, 2, 500*time.Millisecond })
	c := must.Get(New(o, func() time.Time { return now }))(t)
	defer c.Close()
	resolve := func(host string, want bool) Resolution {
		t.Helper()
		ns.mu.Lock()
		ns.queries = nil
		ns.mu.Unlock()
		res, _ := c.Resolve(context.Background(), host, false)
		assert.Not(t, res.Remembered, want, host, "remembered is")
		ns.mu.Lock()
		defer ns.mu.Unlock()
		assert.Equal(t, slices.Contains(ns.queries, host+" udp"), want, host, "queried")
		return res
	}
	resolve("one.test", true)
	now = now.Add(100 * time.Second)
	res := resolve("one.test", false)
	assert.True(t, res.TTL == 200*time.Second && len(res.Addrs) == 1, "%+v, want what is left of it", res)
	now = now.Add(200 * time.Second)
	resolve("one.test", true)
	resolve("missing.test", true)
	assert.Equal(t, resolve("missing.test", false).TTL, 77*time.Second, "absence")
	resolve("silent.test", true)
	resolve("silent.test", true)
	resolve("other.test", true) // the third: one.test has to go
	resolve("missing.test", false)
	resolve("one.test", true)
}

func TestAbsenceIsNotRememberedForLong(t *testing.T) {
	c := newResolutions(10)
	now := time.Unix(1000, 0)
	c.put("a.test", false, now, Resolution{TTL: time.Hour}, KindDNSNotFound, errBlocked)
	_, kind, err, known := c.get("a.test", true, now.Add(maxAbsence-1))
	assert.True(t, known && kind == KindDNSNotFound && err != nil, "%v %v %v", kind, err, known)
	if _, _, _, known := c.get("a.test", true, now.Add(maxAbsence)); known {
		t.Error("still known")
	}
}

// TestFamilies: the second family is looked up if the first has no address that may be dialled, or if
// every address is wanted. A name that does not exist has no second family, unless a server that was
// queried for IPv6 says so.
func TestFamilies(t *testing.T) {
	ns := serveDNS(t, zone{
		"both.test": {addrs: []string{"2606:2800:220:1::2", "93.184.216.34", "2606:2800:220:1::1", "93.184.216.35"},
			ttl: 600},
		"four.test":    {addrs: []string{"93.184.216.34"}, ttl: 600},
		"six.test":     {addrs: []string{"2606:2800:220:1::1"}, ttl: 600},
		"blocked.test": {addrs: []string{"10.0.0.1", "2606:2800:220:1::1"}, ttl: 600},
		"private.test": {addrs: []string{"10.0.0.1"}, ttl: 600},
		"broken.test":  {rcode: dnsmessage.RCodeServerFailure},
	})
	const a, aaaa = dnsmessage.TypeA, dnsmessage.TypeAAAA
	either := []dnsmessage.Type{a, aaaa}
	four, six := "[93.184.216.34 93.184.216.35]", "[2606:2800:220:1::1 2606:2800:220:1::2]"
	for _, tt := range []struct {
		family, host string
		every        bool
		addrs        string
		kind         Kind
		types        []dnsmessage.Type
	}{
		{"ipv4-first", "both.test", false, four, 0, []dnsmessage.Type{a}},
		{"ipv6-first", "both.test", false, six, 0, []dnsmessage.Type{aaaa}},
		{"ipv4-first", "both.test", true, four[:len(four)-1] + " " + six[1:], 0, either},
		{"ipv6-first", "both.test", true, six[:len(six)-1] + " " + four[1:], 0, either},
		{"ipv4", "both.test", true, four, 0, []dnsmessage.Type{a}},
		{"ipv6", "both.test", true, six, 0, []dnsmessage.Type{aaaa}},
		{"ipv4-first", "six.test", false, "[2606:2800:220:1::1]", 0, either},
		{"ipv6-first", "four.test", false, "[93.184.216.34]", 0, either},
		{"ipv4-first", "blocked.test", false, "[2606:2800:220:1::1]", 0, either},
		{"ipv4-first", "private.test", false, "[]", KindBlockedAddress, either},
		{"ipv6-first", "private.test", false, "[]", KindBlockedAddress, either},
		{"ipv4", "six.test", false, "[]", KindDNSNotFound, []dnsmessage.Type{a}},
		{"ipv4-first", "missing.test", false, "[]", KindDNSNotFound, []dnsmessage.Type{a}},
		{"ipv6-first", "missing.test", false, "[]", KindDNSNotFound, either},
		{"ipv4-first", "broken.test", false, "[]", KindDNSFailure, either},
	} {
		f, err := ParseFamily(tt.family)
		must.True(t, err == nil && f.String() == tt.family, "%s: %v %v", tt.family, f, err)
		c := newClient(t, quick(func(o *Options) { o.Resolver, o.Family, o.AllowPrivate = ns.address, f, false }))
		before := len(ns.typesQueried())
		res, err := c.Resolve(context.Background(), tt.host, tt.every)
		assert.Equal(t, fmt.Sprint(res.Addrs), tt.addrs, tt.family, tt.host, "every", tt.every)
		if (err == nil) != (tt.kind == 0) {
			t.Errorf("%s, %s: %v", tt.family, tt.host, err)
		} else if err != nil {
			wantKind(t, err, tt.kind)
		}
		types := ns.typesQueried()[before:]
		slices.Sort(types)
		assert.Slice(t, slices.Compact(types), tt.types, tt.family, tt.host, "every", tt.every, "queries for")
	}
	assert.Fails(ParseFamily("ipv5"))(t, nil, "ipv5 is known")
}

// TestEveryAddressIsCached: what is cached of one family does not do where both are wanted, and
// what is cached of both does for one.
func TestEveryAddressIsCached(t *testing.T) {
	ns := serveDNS(t, zone{"both.test": {addrs: []string{"2606:2800:220:1::1", "93.184.216.34"}, ttl: 600}})
	c := newClient(t, quick(func(o *Options) { o.Resolver = ns.address }))
	for i, step := range []struct {
		every, known bool
		queries      int
	}{{false, false, 1}, {false, true, 1}, {true, false, 3}, {true, true, 3}, {false, true, 3}} {
		_, _, known := c.Known("both.test", step.every)
		assert.True(t, known == step.known, "step %d: known: %t", i, known)
		must.Get(c.Resolve(context.Background(), "both.test", step.every))(t)
		assert.Equal(t, len(ns.typesQueried()), step.queries, "step", i, "queries")
	}
	for range 2 {
		_, _ = c.Resolve(context.Background(), "missing.test", false)
	}
	_, err := c.Resolve(context.Background(), "missing.test", true)
	if n := len(ns.typesQueried()); err == nil || n != 4 {
		t.Errorf("%v after %d queries: the absence of a name is that of every address", err, n)
	}
}
