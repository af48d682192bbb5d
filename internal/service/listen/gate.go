package listen

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// Gate is a listener that holds a bounded number of connections. If one more arrives, the
// connection that has been idle longest is closed, so idle connections keep nobody out. If all are
// busy, the new one is closed.
type Gate struct {
	net.Listener
	most int

	mu     sync.Mutex
	idle   *list.List // of *guest, longest first
	guests int        // all of them, busy or idle
}

// guest is one connection.
type guest struct {
	net.Conn
	gate *Gate
	idle *list.Element // in gate.idle; nil: a request is in progress
	left bool
}

// NewGate returns a gate around l that holds at most that many connections.
func NewGate(l net.Listener, most int) *Gate { return &Gate{Listener: l, most: most, idle: list.New()} }

// Connections returns how many connections are held.
func (g *Gate) Connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.guests
}

// Accept waits for a connection that there is room for.
func (g *Gate) Accept() (net.Conn, error) {
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
func (g *Gate) admit(c net.Conn) *guest {
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
func (g *Gate) leave(v *guest) {
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

// ConnContext is for http.Server.ConnContext.
func (g *Gate) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, guestOf(c))
}

// ConnState is for http.Server.ConnState.
func (g *Gate) ConnState(c net.Conn, state http.ConnState) {
	if v := guestOf(c); v != nil && state == http.StateIdle {
		v.work(false)
	}
}

// AtWork marks the connections of requests whose header has been read.
func (g *Gate) AtWork(next http.Handler) http.Handler {
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
