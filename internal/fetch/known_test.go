package fetch

import (
	"context"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// TestKnown: what takes no lookup is known without one, and nothing else is.
func TestKnown(t *testing.T) {
	ns := serveDNS(t, zone{
		"one.test":     {addrs: []string{"93.184.216.34"}, ttl: 300},
		"private.test": {addrs: []string{"10.0.0.1"}, ttl: 300},
	})
	c := newClient(t, quick(func(o *Options) { o.Resolver = ns.address; o.AllowPrivate = false }))
	for _, host := range []string{"one.test", "private.test", "missing.test"} {
		if _, _, known := c.Known(host); known {
			t.Errorf("%s is known before it was looked up", host)
		}
		_, _ = c.Resolve(context.Background(), host)
	}
	for host, want := range map[string]struct {
		known bool
		kind  Kind
	}{
		"one.test": {true, 0}, "private.test": {true, KindBlockedAddress}, "missing.test": {}, "other.test": {},
		"93.184.216.34": {true, 0}, "[2606:2800:220:1::1]": {true, 0}, "127.0.0.1": {true, KindBlockedAddress},
	} {
		res, err, known := c.Known(host)
		usable := len(res.Addrs) == 1 && res.TTL > 0
		if known != want.known || (err == nil) != (want.kind == 0) || known && err == nil && !usable {
			t.Errorf("%s: %+v, %v, known: %t", host, res, err, known)
		}
		if err != nil {
			wantKind(t, err, want.kind)
		}
	}
	proxied := newClient(t, quick(func(o *Options) { o.Proxy = "http://127.0.0.1:1" }))
	if res, err, known := proxied.Known("any.test"); !known || err != nil || len(res.Addrs) != 1 {
		t.Errorf("behind a proxy: %+v, %v, known: %t", res, err, known)
	}
}

// TestAbsenceHolds for as long as the name server says, and not at all where it does not say.
func TestAbsenceHolds(t *testing.T) {
	absent := func(seconds uint32, rcode dnsmessage.RCode) []byte {
		m := dnsmessage.Message{Header: dnsmessage.Header{Response: true, RCode: rcode}}
		if seconds > 0 {
			root := dnsmessage.MustNewName(".")
			m.Authorities = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: root, Class: dnsmessage.ClassINET, TTL: 86400},
				Body:   &dnsmessage.SOAResource{NS: root, MBox: root, MinTTL: seconds},
			}}
		}
		return pack(m)
	}
	for seconds, want := range map[uint32]time.Duration{0: 0, 1: minTTL, 60: time.Minute, 86400: maxAbsence} {
		var r ttlRecord
		r.addMessage(absent(seconds, dnsmessage.RCodeNameError))
		if got := r.absence(); got != want {
			t.Errorf("%d s of absence: %v, want %v", seconds, got, want)
		}
	}
}
