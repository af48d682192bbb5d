package fetch

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// connKey says which requests a connection may carry: those for the same
// scheme and host name (the certificate was checked for it) that are pinned to
// the same address and port.
type connKey struct {
	scheme, host string
	port         uint16
	addr         netip.Addr // invalid: whatever a proxy takes for the host
}

// remote is where a connection leads, zero where a proxy knows.
func (k connKey) remote() netip.AddrPort {
	if !k.addr.IsValid() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(k.addr, k.port)
}

// pool keeps idle connections, the newest of a key on top, bounded in number
// and in time. It is safe for concurrent use.
type pool struct {
	max int
	ttl time.Duration

	mu     sync.Mutex // guards what follows; nothing blocks under it
	idle   map[connKey][]*conn
	order  *list.List // of *conn, the longest idle first
	lossy  memory     // a connection of theirs failed a request without being at fault; none is kept
	http1  memory     // they want HTTP/1.1
	closed bool
}

// lossyFor is for how long no connection is kept where a kept one broke under a request. That may happen to any connection that its
// server was about to close. But a server that breaks them on purpose, because it has had enough, must not be able to hide behind
// that: on a new connection it is the server's failure.
const lossyFor = 10 * time.Minute

// http1For is for how long a server that wants HTTP/1.1 is not offered HTTP/2.
const http1For = 24 * time.Hour

func newConnPool(max int, ttl time.Duration) *pool {
	return &pool{max: max, ttl: ttl, idle: make(map[connKey][]*conn), order: list.New(), lossy: newMemory(lossyFor), http1: newMemory(http1For)}
}

// take returns a connection for key that still looks alive, or nil.
func (p *pool) take(key connKey) *conn {
	for {
		c := p.pop(key)
		if c == nil || c.alive() {
			return c
		}
		c.close()
	}
}

func (p *pool) pop(key connKey) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := p.idle[key]
	if len(conns) == 0 {
		return nil
	}
	c := conns[len(conns)-1]
	p.removeLocked(c)
	return c
}

// broke notes that a connection failed a request without being at fault, and reports whether that is news.
func (p *pool) broke(key connKey, now time.Time) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lossy.note(key, now)
}

// wantsHTTP1 notes that a server wants HTTP/1.1, and reports whether that is news.
func (p *pool) wantsHTTP1(key connKey, now time.Time) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.http1.note(key, now)
}

// http2 reports whether a server may be offered HTTP/2.
func (p *pool) http2(key connKey, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.http1.has(key, now)
}

// put keeps c for later, or closes it.
func (p *pool) put(c *conn, now time.Time) {
	if evicted := p.add(c, now); evicted != nil {
		evicted.close()
	}
}

// add keeps c and returns the connection that has to go instead, if any.
func (p *pool) add(c *conn, now time.Time) (evicted *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.max == 0 || p.lossy.has(c.key, now) {
		return c
	}
	if p.order.Len() >= p.max {
		evicted = p.order.Front().Value.(*conn)
		p.removeLocked(evicted)
	}
	p.idle[c.key] = append(p.idle[c.key], c)
	c.place = p.order.PushBack(c)
	c.expiry = time.AfterFunc(p.ttl, func() { p.expire(c) })
	return evicted
}

// expire closes c if it is still idle since the same put.
func (p *pool) expire(c *conn) {
	p.mu.Lock()
	idle := c.place != nil
	if idle {
		p.removeLocked(c)
	}
	p.mu.Unlock()
	if idle {
		c.close()
	}
}

func (p *pool) removeLocked(c *conn) {
	c.expiry.Stop()
	p.order.Remove(c.place)
	c.place = nil
	conns := p.idle[c.key]
	i := slices.Index(conns, c)
	if conns = slices.Delete(conns, i, i+1); len(conns) == 0 {
		delete(p.idle, c.key)
	} else {
		p.idle[c.key] = conns
	}
}

// close closes every idle connection, and from now on every one that is put.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.closeIdle()
}

// closeIdle closes every idle connection and reports whether there was one.
func (p *pool) closeIdle() bool {
	p.mu.Lock()
	var conns []*conn
	for e := p.order.Front(); e != nil; e = p.order.Front() {
		c := e.Value.(*conn)
		p.removeLocked(c)
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
	return len(conns) > 0
}

// len is the number of idle connections.
func (p *pool) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.order.Len()
}
