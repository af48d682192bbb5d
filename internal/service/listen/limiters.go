package listen

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxClients bounds the clients that have a limiter of their own.
const maxClients = 4096

// Limiters holds a limiter for each client, and bounds the number of clients.
type Limiters struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu      sync.Mutex
	clients map[netip.Prefix]*rate.Limiter // guarded by mu
	tidied  time.Time                      // guarded by mu
}

// NewLimiters returns limiters that allow each client burst events, and then limit a second. now is
// the clock.
func NewLimiters(burst int, limit rate.Limit, now func() time.Time) *Limiters {
	return &Limiters{limit: limit, burst: burst, now: now, clients: make(map[netip.Prefix]*rate.Limiter)}
}

// Allow takes a token of a client. It returns false if none is left.
func (l *Limiters) Allow(client netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	return l.of(client, now).AllowN(now, 1)
}

// Exhausted reports whether a client has no token left, and takes none.
func (l *Limiters) Exhausted(client netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.clients[client]
	return limiter != nil && limiter.TokensAt(l.now()) < 1
}

// of returns the limiter of a client. Clients without room for a limiter share one. The caller
// holds mu.
func (l *Limiters) of(client netip.Prefix, now time.Time) *rate.Limiter {
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
func (l *Limiters) hasRoom(now time.Time) bool {
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
