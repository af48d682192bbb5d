package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// gate is a listener that holds a bounded number of connections. If one more arrives, the
// connection that has been idle longest is closed, so idle connections keep nobody out. If all are
// busy, the new one is closed.
type gate struct {
	net.Listener
	most int

	mu     sync.Mutex
	idle   *list.List // of *guest, longest first
	guests int        // all of them, busy or idle
}

// guest is one connection.
type guest struct {
	net.Conn
	gate *gate
	idle *list.Element // in gate.idle; nil: a request is in progress
	left bool
}

func newGate(l net.Listener, most int) *gate { return &gate{Listener: l, most: most, idle: list.New()} }

// Accept waits for a connection that there is room for.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if v := g.admit(c); v != nil {
			return v, nil
		}
		_ = c.Close()
	}
}

// admit makes room for a connection. It returns nil if there is none.
func (g *gate) admit(c net.Conn) *guest {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.guests >= g.most {
		longest := g.idle.Front()
		if longest == nil {
			return nil
		}
		v := longest.Value.(*guest)
		g.leave(v)
		_ = v.Conn.Close()
	}
	v := &guest{Conn: c, gate: g}
	g.guests++
	v.idle = g.idle.PushBack(v)
	return v
}

// leave forgets a connection. The caller holds the lock.
func (g *gate) leave(v *guest) {
	if v.left {
		return
	}
	v.left = true
	g.guests--
	if v.idle != nil {
		g.idle.Remove(v.idle)
		v.idle = nil
	}
}

// Close closes the connection.
func (v *guest) Close() error {
	v.gate.mu.Lock()
	v.gate.leave(v)
	v.gate.mu.Unlock()
	return v.Conn.Close()
}

// work records whether a request is in progress.
func (v *guest) work(at bool) {
	v.gate.mu.Lock()
	defer v.gate.mu.Unlock()
	switch {
	case v.left:
	case at && v.idle != nil:
		v.gate.idle.Remove(v.idle)
		v.idle = nil
	case !at && v.idle == nil:
		v.idle = v.gate.idle.PushBack(v)
	}
}

type guestKey struct{}

// connContext is http.Server.ConnContext.
func (g *gate) connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, guestOf(c))
}

// connState is http.Server.ConnState.
func (g *gate) connState(c net.Conn, state http.ConnState) {
	if v := guestOf(c); v != nil && state == http.StateIdle {
		v.work(false)
	}
}

// atWork marks the connections of requests whose header has been read.
func (g *gate) atWork(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, _ := r.Context().Value(guestKey{}).(*guest); v != nil {
			v.work(true)
		}
		next.ServeHTTP(w, r)
	})
}

// guestOf finds the connection below TLS.
func guestOf(c net.Conn) *guest {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	v, _ := c.(*guest)
	return v
}

// Limits of the requests of one client, and of its requests with a wrong token. After too many
// wrong tokens, right ones are refused for a while too; otherwise guessing could continue.
const (
	requestBurst, requestsPerSecond = 1000, 200
	failureBurst, failuresPerSecond = 20, 1.0 / 6
	maxClients                      = 4096
)

// limiters holds a limiter for each client, and bounds the number of clients.
type limiters struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu      sync.Mutex
	clients map[netip.Prefix]*rate.Limiter // guarded by mu
	tidied  time.Time                      // guarded by mu
}

func newLimiters(burst int, limit rate.Limit, now func() time.Time) *limiters {
	return &limiters{limit: limit, burst: burst, now: now, clients: make(map[netip.Prefix]*rate.Limiter)}
}

// allow takes a token of a client. It returns false if none is left.
func (l *limiters) allow(client netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	return l.of(client, now).AllowN(now, 1)
}

// exhausted reports whether a client has no token left, and takes none.
func (l *limiters) exhausted(client netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.clients[client]
	return limiter != nil && limiter.TokensAt(l.now()) < 1
}

// of returns the limiter of a client. Clients without room for a limiter share one. The caller
// holds mu.
func (l *limiters) of(client netip.Prefix, now time.Time) *rate.Limiter {
	if l.clients[client] == nil && !l.hasRoom(now) {
		client = netip.Prefix{}
	}
	limiter := l.clients[client]
	if limiter == nil {
		limiter = rate.NewLimiter(l.limit, l.burst)
		l.clients[client] = limiter
	}
	return limiter
}

// hasRoom reports whether there is room for another client. If there is none, it drops those whose
// bucket is full again, at most once a second.
func (l *limiters) hasRoom(now time.Time) bool {
	if len(l.clients) >= maxClients && now.Sub(l.tidied) >= time.Second {
		l.tidied = now
		for client, limiter := range l.clients {
			if limiter.TokensAt(now) >= float64(l.burst) {
				delete(l.clients, client)
			}
		}
	}
	return len(l.clients) < maxClients
}

// limitRate refuses clients that send requests too often, or too many wrong tokens.
func (s *Server) limitRate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := s.clientOf(r)
		if !s.requests.allow(client) || r.Header.Get("Authorization") != "" && s.failures.exhausted(client) {
			writeTooMany(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeTooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "6")
	writeProblem(w, http.StatusTooManyRequests, "too many requests, or too many wrong tokens, from your address: "+
		"wait a little")
}

// clientOf returns the network of the client: an IPv4 address, or the /64 of an IPv6 address.
func (s *Server) clientOf(r *http.Request) netip.Prefix {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	address := peer.Addr()
	if s.o.BehindProxy {
		// The proxy appends its peer to the received value.
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if a, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1])); err == nil {
			address = a
		}
	}
	address = address.Unmap().WithZone("")
	bits := 32
	if address.Is6() {
		bits = 64
	}
	client, _ := address.Prefix(bits)
	return client
}
