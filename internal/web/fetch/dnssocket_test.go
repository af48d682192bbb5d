package fetch

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// portedServer is a name server that notes from which port each query comes. Before each answer it
// repeats its last one to that port.
type portedServer struct {
	*nameServer
	ports map[uint16]int // queries from each; valid after stop
	stop  func()
}

func servePorts(t *testing.T, z zone) *portedServer {
	t.Helper()
	udp := must.Get(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	s := &portedServer{nameServer: &nameServer{zone: z, address: udp.LocalAddr().String()}, ports: make(map[uint16]int)}
	var wg sync.WaitGroup
	wg.Go(func() {
		last := make(map[netip.AddrPort][]byte)
		b := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			s.ports[from.Port()]++
			if again := last[from]; again != nil {
				_, _ = udp.WriteToUDPAddrPort(again, from)
			}
			last[from] = s.reply(b[:n], "udp")
			_, _ = udp.WriteToUDPAddrPort(last[from], from)
		}
	})
	s.stop = func() { udp.Close(); wg.Wait() }
	t.Cleanup(s.stop)
	return s
}

// Lookups use the sockets of earlier ones, each for a bounded number of queries. An answer that comes
// twice says nothing about the next lookup.
func TestQuerySockets(t *testing.T) {
	const names = 100
	z := zone{}
	for i := range names {
		z[fmt.Sprintf("n%d.test", i)] = record{addrs: []string{"93.184.216.34"}, ttl: uint32(3000 - 20*i),
			alias: fmt.Sprintf("a%d.test", i)}
	}
	ns := servePorts(t, z)
	c := newClient(t, quick(func(o *Options) { o.Resolver = ns.address }))
	for i := range names {
		res := must.Get(c.Resolve(context.Background(), fmt.Sprintf("n%d.test", i), false))(t)
		want := time.Duration(3000-20*i) * time.Second
		assert.True(t, res.TTL == want && slices.Equal(res.Aliases, []string{fmt.Sprintf("a%d.test", i)}),
			"n%d.test: %v, aliases %q, want %v and its own alias", i, res.TTL, res.Aliases, want)
	}
	c.Close()
	ns.stop()
	assert.AtMost(t, len(c.sockets.idle), 0, "sockets are left")
	assert.AtMost(t, len(ns.ports), names/4, names, "queries came from ports")
	for port, n := range ns.ports {
		assert.AtMost(t, n, maxSocketQueries, "queries came from port", port)
	}
}

// A socket to another machine serves one query: who can send packets there may find out its port.
func TestQuerySocketsOfLoopback(t *testing.T) {
	for address, want := range map[net.Addr]bool{
		&net.UDPAddr{IP: net.IPv4(127, 0, 0, 53), Port: 53}:    true,
		&net.UDPAddr{IP: net.IPv6loopback, Port: 53}:           true,
		&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 53}:     false,
		&net.UDPAddr{IP: net.ParseIP("2001:db8::1"), Port: 53}: false,
		&net.UnixAddr{Name: "/run/resolver", Net: "unixgram"}:  false,
	} {
		assert.Equal(t, isLocal(address), want, address, !want)
	}
}

// A socket is not used for longer than maxSocketAge.
func TestQuerySocketsAge(t *testing.T) {
	now := time.Now()
	s := &querySockets{now: func() time.Time { return now }}
	dial := func(address string) *querySocket {
		conn := must.Get(net.Dial("udp", "127.0.0.1:9"))(t)
		return &querySocket{UDPConn: conn.(*net.UDPConn), address: address, made: now}
	}
	c := dial("a")
	must.Do(t, s.put(c))
	assert.True(t, s.take("b") == nil, "a socket to another address")
	assert.Equal(t, s.take("a"), c, "the socket was not kept")
	must.Do(t, s.put(c))
	now = now.Add(maxSocketAge)
	assert.True(t, s.take("a") == nil && c.SetDeadline(time.Time{}) != nil, "an old socket is used, or not closed")
	assert.True(t, s.closeIdle() || len(s.idle) == 0, "idle sockets are left")
}
