package fetch

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// zone says what a name server answers: per name, addresses or the lack of them.
type zone map[string]record

type record struct {
	addrs  []string
	ttl    uint32
	alias  string // a CNAME before the addresses
	stray  string // an address of another name behind them, whose alias this name is
	rcode  dnsmessage.RCode
	silent bool
	cut    bool // over UDP, so that the resolver repeats the query over TCP
}

// nameServer serves a zone over UDP and TCP on one loopback port.
type nameServer struct {
	zone    zone
	address string
	mu      sync.Mutex
	queries []string          // name and transport
	types   []dnsmessage.Type // of the queries
}

func serveDNS(t testing.TB, z zone) *nameServer {
	t.Helper()
	udp := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	s := &nameServer{zone: z, address: udp.LocalAddr().String()}
	tcp, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Skipf("the TCP port of the name server is taken: %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			if reply := s.reply(b[:n], "udp"); reply != nil {
				_, _ = udp.WriteTo(reply, from)
			}
		}
	})
	wg.Go(func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			var size [2]byte
			if _, err := io.ReadFull(c, size[:]); err == nil {
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(c, query); err == nil {
					reply := s.reply(query, "tcp")
					_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
				}
			}
			c.Close()
		}
	})
	t.Cleanup(func() { udp.Close(); tcp.Close(); wg.Wait() })
	return s
}

// typesQueried returns the types of the queries so far.
func (s *nameServer) typesQueried() []dnsmessage.Type {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.types)
}

func (s *nameServer) reply(query []byte, transport string) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	name := strings.ToLower(q.Name.String())
	s.mu.Lock()
	s.queries = append(s.queries, strings.TrimSuffix(name, ".")+" "+transport)
	s.types = append(s.types, q.Type)
	s.mu.Unlock()
	r, known := s.zone[strings.TrimSuffix(name, ".")]
	if r.silent {
		return nil
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: h.ID, Response: true, RecursionAvailable: true, RCode: r.rcode},
		Questions: []dnsmessage.Question{q},
	}
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	if r.cut && transport == "udp" {
		m.Truncated = true
		return pack(m)
	}
	owner := q.Name
	if r.alias != "" {
		alias := dnsmessage.MustNewName(r.alias + ".")
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header(owner, r.ttl),
			Body: &dnsmessage.CNAMEResource{CNAME: alias}})
		owner = alias
	}
	for _, text := range r.addrs {
		a := netip.MustParseAddr(text)
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header(owner, r.ttl+1),
				Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header(owner, r.ttl),
				Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	if r.stray != "" && q.Type == dnsmessage.TypeA {
		other, alias := dnsmessage.MustNewName("other.test."), dnsmessage.MustNewName("cdn.test.")
		m.Answers = append(m.Answers,
			dnsmessage.Resource{Header: header(other, 1), Body: &dnsmessage.CNAMEResource{CNAME: alias}},
			dnsmessage.Resource{Header: header(alias, 1),
				Body: &dnsmessage.AResource{A: netip.MustParseAddr(r.stray).As4()}})
		slices.Reverse(m.Answers) // the order of records means nothing
	}
	if len(m.Answers) == 0 {
		m.Authorities = []dnsmessage.Resource{{Header: header(dnsmessage.MustNewName("test."), 900),
			Body: &dnsmessage.SOAResource{
				NS: dnsmessage.MustNewName("ns.test."), MBox: dnsmessage.MustNewName("admin.test."), MinTTL: 77}}}
	}
	return pack(m)
}

func header(name dnsmessage.Name, ttl uint32) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: ttl}
}

func pack(m dnsmessage.Message) []byte {
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

func manyAddrs(n int) (addrs []string) {
	for i := range n {
		addrs = append(addrs, netip.AddrFrom4([4]byte{93, 184, 216, byte(n - i)}).String())
	}
	return addrs
}

func TestResolve(t *testing.T) {
	ns := serveDNS(t, zone{
		"one.test":     {addrs: []string{"93.184.216.34"}, ttl: 299},
		"both.test":    {addrs: []string{"2606:2800:220:1::1", "93.184.216.35", "93.184.216.34"}, ttl: 600},
		"alias.test":   {addrs: []string{"93.184.216.34"}, alias: "Real.test", ttl: 120},
		"short.test":   {addrs: []string{"93.184.216.34"}, ttl: 0},
		"long.test":    {addrs: []string{"93.184.216.34"}, ttl: 86400},
		"mixed.test":   {addrs: []string{"10.0.0.1", "93.184.216.34", "127.0.0.1", "::1", "fe80::1"}, ttl: 100},
		"private.test": {addrs: []string{"192.168.1.1", "::ffff:10.1.1.1"}, ttl: 100},
		"rebind.test":  {addrs: []string{"127.0.0.1"}, ttl: 100},
		"many.test":    {addrs: manyAddrs(25), ttl: 100},
		"large.test":   {addrs: []string{"93.184.216.34"}, ttl: 200, cut: true},
		"empty.test":   {},
		"broken.test":  {rcode: dnsmessage.RCodeServerFailure},
		"refused.test": {rcode: dnsmessage.RCodeRefused},
	})
	c := newClient(t, quick(func(o *Options) { o.Resolver = ns.address; o.AllowPrivate = false }))
	tests := []struct {
		host  string
		addrs []string
		ttl   time.Duration
		kind  Kind
	}{
		{"one.test", []string{"93.184.216.34"}, 300 * time.Second, 0},
		{"both.test", []string{"93.184.216.34", "93.184.216.35"}, 601 * time.Second, 0},
		{"alias.test", []string{"93.184.216.34"}, 120 * time.Second, 0},
		{"short.test", []string{"93.184.216.34"}, minTTL, 0},
		{"long.test", []string{"93.184.216.34"}, maxTTL, 0},
		{"mixed.test", []string{"93.184.216.34"}, 101 * time.Second, 0},
		{"private.test", nil, 101 * time.Second, KindBlockedAddress},
		{"rebind.test", nil, 101 * time.Second, KindBlockedAddress},
		{"large.test", []string{"93.184.216.34"}, 201 * time.Second, 0},
		{"empty.test", nil, 77 * time.Second, KindDNSNotFound},
		{"missing.test", nil, 77 * time.Second, KindDNSNotFound},
		{"broken.test", nil, 0, KindDNSFailure},
		{"refused.test", nil, 0, KindDNSFailure},
		{"93.184.216.34", []string{"93.184.216.34"}, maxTTL, 0},
		{"[2606:2800:220:1::1]", []string{"2606:2800:220:1::1"}, maxTTL, 0},
		{"127.0.0.1", nil, maxTTL, KindBlockedAddress},
		{"[::1]", nil, maxTTL, KindBlockedAddress},
		{"169.254.169.254", nil, maxTTL, KindBlockedAddress},
		{"localhost", nil, 0, KindBlockedAddress},
	}
	for _, tt := range tests {
		t.Run(tt.host, func(t *testing.T) {
			res, err := c.Resolve(context.Background(), tt.host, false)
			if tt.kind != 0 {
				e := wantKind(t, err, tt.kind)
				assert.True(t, e.Op == "resolve" && e.URL == tt.host && !e.Sent, "%+v", e)
			} else if err != nil {
				t.Fatal(err)
			}
			var want []netip.Addr
			for _, a := range tt.addrs {
				want = append(want, netip.MustParseAddr(a))
			}
			assert.Slice(t, res.Addrs, want, "addresses")
			assert.True(t, tt.host == "localhost" || res.TTL == tt.ttl, "TTL %v, want %v", res.TTL, tt.ttl)
		})
	}
	for range 2 { // from the name server, and from the cache
		res, err := c.Resolve(context.Background(), "alias.test", false)
		assert.True(t, err == nil && slices.Equal(res.Aliases, []string{"real.test"}), "aliases %v (%v)", res.Aliases,
			err)
	}
	res, err := c.Resolve(context.Background(), "many.test", false)
	assert.True(t, err == nil && len(res.Addrs) == maxAddrs && slices.IsSortedFunc(res.Addrs, netip.Addr.Compare),
		"many: %v %v", res.Addrs, err)
}

// The search list of the machine must not be tried for any name: the dot at the end of the query
// prevents it.
func TestResolveQueriesTheNameItself(t *testing.T) {
	ns := serveDNS(t, zone{})
	for _, host := range []string{"no.such.test", "no.such.test.", "wiki"} {
		c := newClient(t, quick(func(o *Options) { o.Resolver = ns.address }))
		_, err := c.Resolve(context.Background(), host, false)
		wantKind(t, err, KindDNSNotFound)
		ns.mu.Lock()
		for _, query := range ns.queries {
			assert.Equal(t, query, strings.TrimSuffix(host, ".")+" udp", host, "query for")
		}
		ns.queries = nil
		ns.mu.Unlock()
	}
}

// The machine that runs a test may have no search list.
func TestNamesAreAbsolute(t *testing.T) {
	for host, want := range map[string]string{"wiki": "wiki.", "wiki.": "wiki.", "a.b": "a.b.", "a.b.": "a.b."} {
		assert.Equal(t, absolute(host), want, host, "is queried as")
	}
}

func TestResolveTimeoutAndCancel(t *testing.T) {
	ns := serveDNS(t, zone{"silent.test": {silent: true}})
	c := newClient(t, quick(func(o *Options) { o.Resolver = ns.address; o.ResolveTimeout = impatient }))
	_, err := c.Resolve(context.Background(), "silent.test", false)
	wantKind(t, err, KindDNSTimeout)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = c.Resolve(ctx, "silent.test", false)
	wantKind(t, err, KindCanceled)
}

func TestResolverThatIsNotThere(t *testing.T) {
	c := newClient(t, quick(func(o *Options) { o.Resolver = "127.0.0.1:1"; o.ResolveTimeout = time.Second }))
	_, err := c.Resolve(context.Background(), "a.test", false)
	e, ok := err.(*Error)
	assert.True(t, ok && (e.Kind == KindDNSFailure || e.Kind == KindDNSTimeout), "error %v", err)
}

// The name may change its address between the check and the request: the dialled address counts.
func TestPinnedAddressIsCheckedAgain(t *testing.T) {
	c := newClient(t, quick(func(o *Options) { o.AllowPrivate = false }))
	s := serve(t, answer(okEmpty))
	for _, address := range []string{"127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "10.0.0.1", "fe80::1%eth0"} {
		_, err := c.Do(context.Background(), Request{URL: s.url(t, "/"), Address: netip.MustParseAddr(address)})
		assert.True(t, !wantKind(t, err, KindBlockedAddress).Sent, "%s: sent", address)
	}
	_, err := c.Do(context.Background(), Request{URL: s.url(t, "/")})
	wantKind(t, err, KindBlockedAddress)
	assert.Equal(t, s.accepted(), 0, "a blocked address was dialled")
}

// TestRecordsOffTheChain: records of names that no CNAME leads to from the name that was looked up give
// it neither an address, nor an alias, nor a time to live. What stands in another case is the same name.
func TestRecordsOffTheChain(t *testing.T) {
	ns := serveDNS(t, zone{
		"plain.test":  {addrs: []string{"93.184.216.34"}, ttl: 300, stray: "93.184.216.66"},
		"alias.test":  {addrs: []string{"93.184.216.34"}, ttl: 300, alias: "At.Edge.Test", stray: "93.184.216.66"},
		"nobody.test": {stray: "93.184.216.66"},
		"six.test":    {addrs: []string{"2606:2800:220:1::1"}, ttl: 300, stray: "93.184.216.66"},
	})
	c := newClient(t, quick(func(o *Options) { o.Resolver = ns.address }))
	for host, want := range map[string]string{
		"plain.test": "[93.184.216.34] 5m1s []", "alias.test": "[93.184.216.34] 5m0s [at.edge.test]",
		"PLAIN.test": "[93.184.216.34] 5m1s []", "six.test": "[2606:2800:220:1::1] 5m0s []",
	} {
		res, err := c.Resolve(context.Background(), host, true)
		got := fmt.Sprint(res.Addrs, res.TTL, res.Aliases)
		assert.True(t, err == nil && got == want, "%s: %s, %v, want %s", host, got, err, want)
	}
	_, err := c.Resolve(context.Background(), "nobody.test", false)
	wantKind(t, err, KindDNSFailure)
}

// A panic at a message of a name server stays in the goroutine of the resolver that reads it.
func TestDNSMessageThatPanics(t *testing.T) {
	var none *ttlRecord
	none.addMessage(pack(dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Answers: []dnsmessage.Resource{
		{Header: header(dnsmessage.MustNewName("a.test."), 5), Body: &dnsmessage.AResource{}}}}))
}

func FuzzDNSMessage(f *testing.F) {
	f.Add(pack(dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Answers: []dnsmessage.Resource{
		{Header: header(dnsmessage.MustNewName("a.test."), 5), Body: &dnsmessage.AResource{}}}}))
	f.Add([]byte{0, 1, 0x80})
	f.Fuzz(func(t *testing.T, msg []byte) {
		var r ttlRecord
		r.addMessage(msg)
		d := clampTTL(r.least())
		assert.True(t, d >= minTTL && d <= maxTTL, "TTL %v", d)
	})
}

// TestKnown: what takes no lookup is known without one, and nothing else is.
func TestKnown(t *testing.T) {
	ns := serveDNS(t, zone{
		"one.test":     {addrs: []string{"93.184.216.34"}, ttl: 300},
		"private.test": {addrs: []string{"10.0.0.1"}, ttl: 300},
	})
	c := newClient(t, quick(func(o *Options) { o.Resolver = ns.address; o.AllowPrivate = false }))
	for _, host := range []string{"one.test", "private.test", "missing.test"} {
		_, _, known := c.Known(host, false)
		assert.True(t, !known, "%s is known before it was looked up", host)
		_, _ = c.Resolve(context.Background(), host, false)
	}
	for host, want := range map[string]struct {
		known bool
		kind  Kind
	}{
		"one.test": {true, 0}, "private.test": {true, KindBlockedAddress}, "missing.test": {}, "other.test": {},
		"93.184.216.34": {true, 0}, "[2606:2800:220:1::1]": {true, 0}, "127.0.0.1": {true, KindBlockedAddress},
	} {
		res, err, known := c.Known(host, false)
		usable := len(res.Addrs) == 1 && res.TTL > 0
		assert.True(t, known == want.known && (err == nil) == (want.kind == 0) && (!known || err != nil || usable),
			"%s: %+v, %v, known: %t", host, res, err, known)
		if err != nil {
			wantKind(t, err, want.kind)
		}
	}
	proxied := newClient(t, quick(func(o *Options) { o.Proxy = "http://127.0.0.1:1" }))
	res, err, known := proxied.Known("any.test", false)
	assert.True(t, known && err == nil && len(res.Addrs) == 1, "behind a proxy: %+v, %v, known: %t", res, err, known)
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
		assert.Equal(t, r.absence(), want, seconds, "s of absence")
	}
}
