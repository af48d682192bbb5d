package testweb

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestDNSAnswers(t *testing.T) {
	web := start(t, Config{Sites: []Site{{Host: "a.test"}, {Host: "b.test"}}})
	for _, network := range []string{"udp", "tcp"} {
		r := resolver(web, network)
		got, err := r.LookupNetIP(context.Background(), "ip4", "a.test")
		assert.True(t, err == nil && len(got) == 1 && got[0] == web.Address("a.test"), "%s: a.test is %v, %v; want %v",
			network, got, err, web.Address("a.test"))
		if got, err := r.LookupNetIP(context.Background(), "ip6", "a.test"); len(got) != 0 || !notFound(err) {
			t.Errorf("%s: AAAA of a.test is %v, %v; want no record", network, got, err)
		}
		if _, err := r.LookupNetIP(context.Background(), "ip4", "nowhere.test"); !notFound(err) {
			t.Errorf("%s: unknown name: %v, want NXDOMAIN", network, err)
		}
	}
	assert.True(t, web.Lookups("a.test") >= 4 && web.Lookups("b.test") == 0,
		"lookups counted: a.test %d, b.test %d; want at least 4, and 0", web.Lookups("a.test"), web.Lookups("b.test"))
}

func notFound(err error) bool {
	var dnsError *net.DNSError
	return errors.As(err, &dnsError) && dnsError.IsNotFound
}

func TestDNSAnswersChange(t *testing.T) {
	web := start(t, Config{Sites: []Site{{Host: "a.test"}}})
	r := resolver(web, "udp")
	v4, v6 := netip.MustParseAddr("127.9.9.9"), netip.MustParseAddr("2001:db8::1")
	web.SetAnswer("A.test", v4, v6)
	for network, want := range map[string]netip.Addr{"ip4": v4, "ip6": v6} {
		got, err := r.LookupNetIP(context.Background(), network, "a.test")
		assert.True(t, err == nil && len(got) == 1 && got[0] == want, "%s: %v, %v; want %v", network, got, err, want)
	}
	web.SetAnswer("a.test")
	_, err := r.LookupNetIP(context.Background(), "ip", "a.test")
	assert.True(t, notFound(err), "a name without answers: %v, want NXDOMAIN", err)
}

func TestDNSMessage(t *testing.T) {
	web := start(t, Config{TTL: 7 * time.Second, Sites: []Site{{Host: "a.test"}}})
	for name, want := range map[string]dnsmessage.RCode{
		"A.Test.":     dnsmessage.RCodeSuccess,
		"sub.a.test.": dnsmessage.RCodeNameError,
	} {
		query := dnsmessage.Message{
			Header: dnsmessage.Header{ID: 4711, RecursionDesired: true},
			Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA,
				Class: dnsmessage.ClassINET}},
		}
		packed := must.Get(query.Pack())(t)
		var reply dnsmessage.Message
		answer, _ := web.dns.reply(packed)
		must.Do(t, reply.Unpack(answer))
		assert.True(t, reply.ID == 4711 && reply.Response && reply.RCode == want && len(reply.Questions) == 1,
			"%s: reply %+v, want code %v", name, reply.Header, want)
		if want != dnsmessage.RCodeSuccess {
			continue
		}
		assert.True(t, len(reply.Answers) == 1 && reply.Answers[0].Header.TTL == 7,
			"%s: answers %+v, want one with TTL 7", name, reply.Answers)
	}
}

func FuzzDNSReply(f *testing.F) {
	d := &dnsServer{answers: map[string][]netip.Addr{"a.test": {loopback(1)}}, questions: make(map[string]int)}
	query := dnsmessage.Message{Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName("a.test."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
	}}
	packed := must.Get(query.Pack())(f)
	f.Add(packed)
	f.Add(packed[:12])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, query []byte) {
		reply, _ := d.reply(query)
		if reply == nil {
			return
		}
		var message dnsmessage.Message
		err := message.Unpack(reply)
		assert.True(t, err == nil && message.Response, "reply to %x: %v, response %v", query, err, message.Response)
	})
}
