package fetch

import (
	"maps"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// connKey says which requests a connection may carry: those for the same scheme and host name, for
// which the certificate was checked, that are pinned to the same address and port.
type connKey struct {
	scheme, host string
	port         uint16
	addr         netip.Addr // invalid with a proxy, which resolves the host
}

// remote returns the address of the other end; zero if only a proxy knows it.
func (k connKey) remote() netip.AddrPort {
	if !k.addr.IsValid() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(k.addr, k.port)
}

// pool keeps idle connections, the newest of a key on top. It is bounded in places and in time, and
// safe for concurrent use.
type pool struct {
	max int // places
	ttl time.Duration

	mu      sync.Mutex        // guards what follows; nothing blocks under it
	idle    map[connKey]*conn // the newest; those below follow
	fresh   idleConns         // the newest, whichever they are
	kept    idleConns         // those that left fresh
	late    int               // connections that left fresh while kept was full
	noReuse memory            // servers that broke a reused connection: no connection to them is kept
	http1   memory            // they want HTTP/1.1
	closed  bool
}

// idleConns are idle connections, the longest idle first. A connection is in one at most.
type idleConns struct {
	oldest, newest *conn
	weight         int // of all
}

func (l *idleConns) add(c *conn) {
	c.in, c.older, c.newer = l, l.newest, nil
	if l.newest = c; c.older == nil {
		l.oldest = c
	} else {
		c.older.newer = c
	}
	l.weight += c.weight()
}

func (l *idleConns) remove(c *conn) {
	if c.older == nil {
		l.oldest = c.newer
	} else {
		c.older.newer = c.newer
	}
	if c.newer == nil {
		l.newest = c.older
	} else {
		c.newer.older = c.older
	}
	c.in, c.older, c.newer = nil, nil, nil
	l.weight -= c.weight()
}

// tlsWeight is how many places an idle connection with TLS takes; others take one. It holds some 50
// KB, others 2.
const tlsWeight = 2

func (c *conn) weight() int {
	if c.key.scheme == "https" {
		return tlsWeight
	}
	return 1
}

// noReuseFor is how long no connection to a server is kept after a reused one broke under a
// request. That can happen to any connection that its server was about to close. A server that
// breaks connections on purpose, because it has had enough, must not be able to hide behind that:
// on a new connection a break is the server's failure.
const noReuseFor = 10 * time.Minute

// freshOneOf says how many of the places are for the newest connections: one of as many. A host that
// has several requests in a row finds its connection there, however many others are kept.
const freshOneOf = 4

// replaceOneOf says how many of the connections that leave these places while the others are taken
// replace the longest idle one: one of as many; the rest are closed. A crawl visits its hosts in
// turn. If each replaced one, then with a few more hosts than places every connection would be
// closed just before its turn, and none would be used again.
const replaceOneOf = 8

// http1For is how long a server that wants HTTP/1.1 is not offered HTTP/2.
const http1For = 24 * time.Hour

func newConnPool(max int, ttl time.Duration) *pool {
	return &pool{
		max: max, ttl: ttl, idle: make(map[connKey]*conn),
		noReuse: newMemory(noReuseFor), http1: newMemory(http1For),
	}
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
	c := p.idle[key]
	if c != nil {
		p.removeLocked(c)
	}
	return c
}

// broke records that a connection failed a request without the server being at fault, and reports
// whether that is new.
func (p *pool) broke(key connKey, now time.Time) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noReuse.note(key, now)
}

// wantsHTTP1 records that a server wants HTTP/1.1, and reports whether that is new.
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

// put keeps c for a later request, or closes it.
func (p *pool) put(c *conn, now time.Time) {
	for _, evicted := range p.add(c, now) {
		evicted.close()
	}
}

// add keeps c, and returns the connections that must be closed instead.
func (p *pool) add(c *conn, now time.Time) (evicted []*conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.max == 0 || p.noReuse.has(c.key, now) {
		return []*conn{c}
	}
	c.below = p.idle[c.key]
	p.idle[c.key] = c
	p.fresh.add(c)
	if c.expiry == nil {
		c.expiry = time.AfterFunc(p.ttl, func() { p.expire(c) })
	} else {
		c.expiry.Reset(p.ttl)
	}
	for room := (p.max + freshOneOf - 1) / freshOneOf; p.fresh.weight > room; {
		evicted = p.ageLocked(p.max-room, evicted)
	}
	return evicted
}

// ageLocked moves the longest idle of the newest connections to the others, which have so many
// places. It appends the connections that must be closed instead.
func (p *pool) ageLocked(room int, evicted []*conn) []*conn {
	c := p.fresh.oldest
	if p.kept.weight+c.weight() > room {
		if p.late++; p.late%replaceOneOf != 0 || c.weight() > room {
			p.removeLocked(c)
			return append(evicted, c)
		}
	}
	for p.kept.weight+c.weight() > room {
		oldest := p.kept.oldest
		p.removeLocked(oldest)
		evicted = append(evicted, oldest)
	}
	p.fresh.remove(c)
	p.kept.add(c)
	return evicted
}

// expire closes c if it is idle.
func (p *pool) expire(c *conn) {
	p.mu.Lock()
	idle := c.in != nil
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
	c.in.remove(c)
	switch top := p.idle[c.key]; {
	case top != c:
		for top.below != c {
			top = top.below
		}
		top.below = c.below
	case c.below == nil:
		delete(p.idle, c.key)
	default:
		p.idle[c.key] = c.below
	}
	c.below = nil
}

// close closes every idle connection, and every connection that is put later.
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
	for _, l := range []*idleConns{&p.fresh, &p.kept} {
		for l.weight > 0 {
			c := l.oldest
			p.removeLocked(c)
			conns = append(conns, c)
		}
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
	return len(conns) > 0
}

// maxMemory bounds the number of servers in a memory.
const maxMemory = 4096

// memory is a set of servers. Each leaves it after a while. The set is bounded: servers beyond the
// bound are not added.
type memory struct {
	hold  time.Duration
	until map[connKey]time.Time
}

func newMemory(hold time.Duration) memory {
	return memory{hold: hold, until: make(map[connKey]time.Time)}
}

// has reports whether the set has key.
func (m *memory) has(key connKey, now time.Time) bool { return now.Before(m.until[key]) }

// note adds key to the set. It reports whether key is in the set now and was not before.
func (m *memory) note(key connKey, now time.Time) (news bool) {
	if m.has(key, now) {
		return false
	}
	if len(m.until) >= maxMemory {
		maps.DeleteFunc(m.until, func(_ connKey, until time.Time) bool { return !now.Before(until) })
	}
	if len(m.until) >= maxMemory {
		return false
	}
	key.host = strings.Clone(key.host) // it may be a part of a long URL
	m.until[key] = now.Add(m.hold)
	return true
}
