package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// gate is a listener that holds a bounded number of connections. Where one more comes, the one that has longest had no request at
// work makes room; so those that only hold connections open keep nobody out. Where all are at work, the new one is closed.
type gate struct {
	net.Listener
	most int

	mu     sync.Mutex
	idle   *list.List // of *guest, longest first
	guests int        // all of them, at work or not
}

// guest is one connection.
type guest struct {
	net.Conn
	gate *gate
	idle *list.Element // in gate.idle; nil: a request is at work
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

// admit makes room for a connection; nil: there is none.
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

// leave forgets a connection. The lock is held.
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

// Close ends the connection.
func (v *guest) Close() error {
	v.gate.mu.Lock()
	v.gate.leave(v)
	v.gate.mu.Unlock()
	return v.Conn.Close()
}

// work says whether a request is at work.
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

// connContext is that of http.Server.
func (g *gate) connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, guestOf(c))
}

// connState is that of http.Server.
func (g *gate) connState(c net.Conn, state http.ConnState) {
	if v := guestOf(c); v != nil && state == http.StateIdle {
		v.work(false)
	}
}

// atWork marks the connections of requests that have been read as far as their header.
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
