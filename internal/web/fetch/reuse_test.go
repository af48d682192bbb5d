package fetch

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// keepAlive answers every request, counting them.
func keepAlive(requests *atomic.Int32) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		for readHead(r) != "" {
			requests.Add(1)
			fmt.Fprint(c, okEmpty)
		}
	}
}

func TestConnectionsAreReused(t *testing.T) {
	var requests atomic.Int32
	s := serve(t, keepAlive(&requests))
	c := newClient(t, quick())
	for range 5 {
		must.Get(get(t, c, s))(t)
	}
	assert.True(t, s.accepted() == 1 && requests.Load() == 5, "%d connections for %d requests", s.accepted(),
		requests.Load())
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	for cn := c.pool.fresh.oldest; cn != nil; cn = cn.newer {
		assert.True(t, cn.br == nil && cn.head.pace == nil, "an idle connection holds the buffer of its last request")
	}
}

// net/http would send such a GET twice.
func TestNoSecondSendOnAReusedConnection(t *testing.T) {
	for _, end := range []string{"close", "reset"} {
		t.Run(end, func(t *testing.T) {
			var requests atomic.Int32
			s := serve(t, func(c net.Conn, r *bufio.Reader) {
				for readHead(r) != "" {
					if requests.Add(1) == 1 {
						fmt.Fprint(c, okEmpty)
						continue
					}
					if end == "reset" {
						_ = c.(*net.TCPConn).SetLinger(0)
					}
					return
				}
			})
			c := newClient(t, quick())
			must.Get(get(t, c, s))(t)
			_, err := get(t, c, s)
			assert.True(t, wantKind(t, err, KindLostOnReuse).Sent, "the request had been sent")
			assert.Equal(t, requests.Load(), 2, "the server saw requests")
		})
	}
}

// TestNoReuse: after a reused connection broke under a request, no connection to that server is
// kept for a while, so the next break counts as the failure of the server.
func TestNoReuse(t *testing.T) {
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		for n := 0; readHead(r) != ""; n++ {
			if n == 1 {
				return
			}
			fmt.Fprint(c, okEmpty)
		}
	})
	c := newClient(t, quick())
	now := time.Now()
	c.now = func() time.Time { return now }
	request := func(want Kind) {
		t.Helper()
		_, err := get(t, c, s)
		if want != KindUnknown {
			wantKind(t, err, want)
		} else if err != nil {
			t.Error(err)
		}
	}
	request(KindUnknown)
	request(KindLostOnReuse)
	for range 3 {
		request(KindUnknown)
	}
	now = now.Add(noReuseFor)
	request(KindUnknown)
	request(KindLostOnReuse)
	for n := range maxMemory + 10 {
		c.pool.broke(connKey{host: fmt.Sprint(n)}, now)
	}
	assert.AtMost(t, len(c.pool.noReuse.until), maxMemory, "hosts are remembered at most")
}

// The client notices that the server closed an idle connection before it sends anything on it.
func TestClosedIdleConnectionIsReplaced(t *testing.T) {
	closed := make(chan struct{}, 1)
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		readHead(r)
		fmt.Fprint(c, okEmpty)
		c.Close()
		closed <- struct{}{}
	})
	c := newClient(t, quick())
	for range 3 {
		must.Get(get(t, c, s))(t)
		<-closed
		for _, idle := range c.pool.idle {
			for idle.silent() {
				time.Sleep(time.Millisecond)
			}
		}
	}
	assert.Equal(t, s.accepted(), 3, "connections")
}

// Unsolicited bytes must not become the response to the next request.
func TestUnsolicitedBytesAreNoAnswer(t *testing.T) {
	s := serve(t, answer(okEmpty, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"))
	c := newClient(t, quick())
	for range 2 {
		r, err := get(t, c, s)
		must.True(t, err == nil && r.Body.Size() == 0, "body of %d bytes, %v", r.Body.Size(), err)
	}
	assert.Equal(t, s.accepted(), 2, "connections")
}

func TestConnectionsThatMayNotBeReused(t *testing.T) {
	for name, response := range map[string]string{
		"close":     "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.0":  "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"truncated": "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + string(make([]byte, 2<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(c net.Conn, r *bufio.Reader) {
				for readHead(r) != "" {
					fmt.Fprint(c, response)
				}
			})
			c := newClient(t, quick())
			must.Get(get(t, c, s))(t)
			assert.Equal(t, c.pool.len(), 0, "idle connections")
		})
	}
}

// The name stays, the address changes: the old connection must not be used.
func TestAddressIsPinned(t *testing.T) {
	var first, second atomic.Int32
	a := serveOn(t, "127.0.0.1:0", keepAlive(&first))
	b := serveOn(t, fmt.Sprintf("127.0.0.2:%d", a.port()), keepAlive(&second))
	c := newClient(t, quick())
	for range 2 {
		for _, address := range []string{"127.0.0.1", "127.0.0.2", "::ffff:127.0.0.2"} {
			addr := netip.MustParseAddr(address)
			r := must.Get(c.Do(context.Background(), Request{URL: a.url(t, "/"), Address: addr}))(t)
			assert.Equal(t, r.RemoteAddr.Addr(), addr.Unmap(), "fetched from", r.RemoteAddr, addr)
		}
	}
	assert.True(t, first.Load() == 2 && second.Load() == 4 && a.accepted() == 1 && b.accepted() == 1,
		"requests %d and %d on %d and %d connections", first.Load(), second.Load(), a.accepted(), b.accepted())
}

// The address stays, the name changes: TLS was checked for the other name.
func TestConnectionsBelongToOneName(t *testing.T) {
	var requests atomic.Int32
	s := serve(t, keepAlive(&requests))
	c := newClient(t, quick())
	for _, host := range []string{"a.test", "b.test"} {
		u := parseURL(t, fmt.Sprintf("http://%s:%d/", host, s.port()))
		must.Get(c.Do(context.Background(), Request{URL: u, Address: loopback}))(t)
	}
	assert.Equal(t, s.accepted(), 2, "connections")
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	var requests atomic.Int32
	s := serve(t, keepAlive(&requests))
	c := newClient(t, quick(func(o *Options) { o.MaxIdleConns = 2 }))
	request := func(host string) {
		u := parseURL(t, fmt.Sprintf("http://%s.test:%d/", host, s.port()))
		must.Get(c.Do(context.Background(), Request{URL: u, Address: loopback}))(t)
	}
	idle := func() string {
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		var hosts []string
		for key := range c.pool.idle {
			hosts = append(hosts, strings.TrimSuffix(key.host, ".test"))
		}
		slices.Sort(hosts)
		return strings.Join(hosts, " ")
	}
	hosts := strings.Split("abcdefghijklm", "")
	for i, host := range hosts {
		request(host)
		request(host) // which finds its connection, however many there are
		must.True(t, s.accepted() == i+1, "%d connections to %d hosts", s.accepted(), i+1)
		want := host
		switch first := hosts[replaceOneOf]; {
		case i > replaceOneOf:
			want = first + " " + host
		case i > 0:
			want = "a " + host
		}
		assert.Equal(t, idle(), want, "after host", host, "the connections of are idle")
	}
}

// TestWeights: idle connections of all kinds together never take more places than there are, nor do the
// newest of them, and a connection that had to leave is not found any more.
func TestWeights(t *testing.T) {
	const most = 16
	p, now, random := newConnPool(most, time.Hour), time.Now(), rand.New(rand.NewPCG(1, 2))
	left := make(map[*conn]bool)
	for i := range 500 {
		c := &conn{key: connKey{scheme: []string{"http", "https"}[random.IntN(2)], host: fmt.Sprint(i % 40)}}
		for _, evicted := range p.add(c, now) {
			left[evicted] = true
		}
		taken := 0
		for _, c := range p.idle {
			for ; c != nil; c = c.below {
				if taken += map[string]int{"http": 1, "https": 2}[c.key.scheme]; left[c] {
					t.Fatal("a connection that had to leave is idle")
				}
			}
		}
		must.True(t, taken <= most && taken == p.fresh.weight+p.kept.weight && p.fresh.weight <= most/freshOneOf,
			"connections with %d places: %d among the newest, %d others", taken, p.fresh.weight, p.kept.weight)
		if random.IntN(3) == 0 {
			p.pop(c.key)
		}
	}
	assert.AtLeast(t, p.fresh.weight+p.kept.weight, most-2, "places are taken of", most)
	for _, l := range []*idleConns{&p.fresh, &p.kept} {
		for l.oldest != nil {
			p.removeLocked(l.oldest)
		}
	}
	assert.True(t, p.len() == 0 && p.fresh.weight == 0 && p.kept.weight == 0,
		"%d connections are left, with %d and %d places", p.len(), p.fresh.weight, p.kept.weight)
}

// TestHostsInTurnReuseConnections: with more hosts in turn than idle connections, those that are
// kept are used again, and hosts that are visited no more give up theirs.
func TestHostsInTurnReuseConnections(t *testing.T) {
	const room, hosts, rounds = 4, 12, 30
	var requests atomic.Int32
	s := serve(t, keepAlive(&requests))
	c := newClient(t, quick(func(o *Options) { o.MaxIdleConns = room }))
	visit := func(from int) {
		for i := range hosts {
			u := parseURL(t, fmt.Sprintf("http://h%d.test:%d/", from+i, s.port()))
			must.Get(c.Do(context.Background(), Request{URL: u, Address: loopback}))(t)
		}
	}
	for range rounds {
		visit(0)
	}
	assert.AtMost(t, s.accepted(), hosts*rounds-room*rounds/2, "connections for", hosts*rounds, "requests at most")
	before := s.accepted()
	for range rounds { // other hosts
		visit(hosts)
	}
	assert.AtMost(t, s.accepted()-before, hosts*rounds-room*rounds/2, "connections after the hosts changed at most")
}

func TestIdleConnectionsExpire(t *testing.T) {
	var requests atomic.Int32
	s := serve(t, keepAlive(&requests))
	c := newClient(t, quick(func(o *Options) { o.IdleTimeout = 10 * time.Millisecond }))
	must.Get(get(t, c, s))(t)
	for c.pool.len() > 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestNoIdleConnections(t *testing.T) {
	heads := make(chan string, 1)
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		heads <- readHead(r)
		fmt.Fprint(c, okEmpty)
	})
	c := newClient(t, quick(func(o *Options) { o.MaxIdleConns = 0 }))
	must.Get(get(t, c, s))(t)
	if head := <-heads; !strings.Contains(head, "\r\nConnection: close\r\n") || c.pool.len() != 0 {
		t.Errorf("head %q, %d idle", head, c.pool.len())
	}
}

func TestCloseWhileBusy(t *testing.T) {
	received, proceed := make(chan struct{}), make(chan struct{})
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		readHead(r)
		close(received)
		<-proceed
		fmt.Fprint(c, okEmpty)
	})
	c := newClient(t, quick())
	done := make(chan error)
	go func() {
		_, err := c.Do(context.Background(), Request{URL: s.url(t, "/"), Address: loopback})
		done <- err
	}()
	<-received
	c.Close()
	close(proceed)
	assert.NoError(t, <-done)
	assert.Equal(t, c.pool.len(), 0, "a closed client keeps no connection")
}
