package fetch

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"
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
	c, err := New(o, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	resolve := func(host string, want bool) Resolution {
		t.Helper()
		ns.mu.Lock()
		ns.queries = nil
		ns.mu.Unlock()
		res, _ := c.Resolve(context.Background(), host)
		if res.Remembered == want {
			t.Errorf("%s: remembered is %v", host, res.Remembered)
		}
		ns.mu.Lock()
		defer ns.mu.Unlock()
		if got := slices.Contains(ns.queries, host+" udp"); got != want {
			t.Errorf("%s: queried %v, want %v", host, got, want)
		}
		return res
	}
	resolve("one.test", true)
	now = now.Add(100 * time.Second)
	if res := resolve("one.test", false); res.TTL != 200*time.Second || len(res.Addrs) != 1 {
		t.Errorf("%+v, want what is left of it", res)
	}
	now = now.Add(200 * time.Second)
	resolve("one.test", true)
	resolve("missing.test", true)
	if res := resolve("missing.test", false); res.TTL != 77*time.Second {
		t.Errorf("absence %+v", res)
	}
	resolve("silent.test", true)
	resolve("silent.test", true)
	resolve("other.test", true) // the third: one.test has to go
	resolve("missing.test", false)
	resolve("one.test", true)
}

func TestAbsenceIsNotRememberedForLong(t *testing.T) {
	c := newResolutions(10)
	now := time.Unix(1000, 0)
	c.put("a.test", now, Resolution{TTL: time.Hour}, KindDNSNotFound, errBlocked)
	if _, kind, err, known := c.get("a.test", now.Add(maxAbsence-1)); !known || kind != KindDNSNotFound || err == nil {
		t.Errorf("%v %v %v", kind, err, known)
	}
	if _, _, _, known := c.get("a.test", now.Add(maxAbsence)); known {
		t.Error("still known")
	}
}

func TestFamilies(t *testing.T) {
	ns := serveDNS(t, zone{
		"both.test": {addrs: []string{"2606:2800:220:1::2", "93.184.216.34", "2606:2800:220:1::1", "93.184.216.35"},
			ttl: 600},
		"four.test": {addrs: []string{"93.184.216.34"}, ttl: 600},
	})
	for name, want := range map[string]string{
		"ipv4-first": "[93.184.216.34 93.184.216.35 2606:2800:220:1::1 2606:2800:220:1::2] [93.184.216.34] [2606:2800:220:1::1]",
		"ipv6-first": "[2606:2800:220:1::1 2606:2800:220:1::2 93.184.216.34 93.184.216.35] [93.184.216.34] [2606:2800:220:1::1]",
		"ipv4":       "[93.184.216.34 93.184.216.35] [93.184.216.34] []",
		"ipv6":       "[2606:2800:220:1::1 2606:2800:220:1::2] [] [2606:2800:220:1::1]",
	} {
		f, err := ParseFamily(name)
		if err != nil || f.String() != name {
			t.Fatalf("%s: %v %v", name, f, err)
		}
		c := newClient(t, quick(func(o *Options) { o.Resolver, o.Family = ns.address, f }))
		var got [3][]netip.Addr
		for i, host := range []string{"both.test", "four.test", "[2606:2800:220:1::1]"} {
			res, _ := c.Resolve(context.Background(), host)
			got[i] = res.Addrs
		}
		if text := fmt.Sprint(got[0], got[1], got[2]); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
	if _, err := ParseFamily("ipv5"); err == nil {
		t.Error("ipv5 is known")
	}
}
