package server

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// How often one client may ask, and how often with a wrong token. After too many wrong ones, right ones are refused too for a
// while, else guessing would go on.
const (
	requestBurst, requestsPerSecond = 1000, 200.0
	failureBurst, failuresPerSecond = 20, 1.0 / 6
	maxClients                      = 4096
)

// buckets bound how often each client may do something: a token bucket for each, of which the number is bounded.
type buckets struct {
	burst, perSecond float64
	now              func() time.Time // nil: there is no bound

	mu      sync.Mutex
	clients map[netip.Prefix]*bucket
	tidied  time.Time
}

// bucket is what one client has left.
type bucket struct {
	left float64
	at   time.Time
}

func newBuckets(burst, perSecond float64, now func() time.Time) *buckets {
	return &buckets{burst: burst, perSecond: perSecond, now: now, clients: make(map[netip.Prefix]*bucket)}
}

// take takes one for a client; false: there is none left.
func (b *buckets) take(client netip.Prefix) bool { return b.draw(client, 1) }

// spent reports whether a client has none left, and takes nothing.
func (b *buckets) spent(client netip.Prefix) bool { return !b.draw(client, 0) }

func (b *buckets) draw(client netip.Prefix, n float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	c := b.clients[client]
	if c == nil {
		if n == 0 {
			return true
		}
		client = b.makeRoom(client, now)
		if c = b.clients[client]; c == nil {
			c = &bucket{left: b.burst, at: now}
			b.clients[client] = c
		}
	}
	b.fill(c, now)
	if c.left < 1 {
		return false
	}
	c.left -= n
	return true
}

func (b *buckets) fill(c *bucket, now time.Time) {
	c.left = min(b.burst, c.left+max(now.Sub(c.at).Seconds(), 0)*b.perSecond)
	c.at = now
}

// makeRoom drops clients that have all of it back. Where that does not help, those that come share one bucket.
func (b *buckets) makeRoom(client netip.Prefix, now time.Time) netip.Prefix {
	if len(b.clients) < maxClients {
		return client
	}
	if now.Sub(b.tidied) < time.Second {
		return netip.Prefix{}
	}
	b.tidied = now
	for p, c := range b.clients {
		if b.fill(c, now); c.left >= b.burst {
			delete(b.clients, p)
		}
	}
	if len(b.clients) < maxClients {
		return client
	}
	return netip.Prefix{}
}

// limitRate refuses clients that ask too often, or have guessed at tokens too often.
func (s *Server) limitRate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := s.clientOf(r)
		if !s.requests.take(client) || r.Header.Get("Authorization") != "" && s.failures.spent(client) {
			writeTooMany(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeTooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "6")
	writeProblem(w, http.StatusTooManyRequests, "too many requests, or too many wrong tokens, from your address: wait a little")
}

// clientOf is the network of whoever asks: an IPv4 address, or the /64 of an IPv6 one.
func (s *Server) clientOf(r *http.Request) netip.Prefix {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	address := peer.Addr()
	if s.o.BehindProxy {
		// The proxy adds whom it talks to behind what it was sent.
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
