package fetch

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// The bandwidth of the crawl and of each host can be limited. Every byte that a request receives
// counts as it comes over the connection: TLS handshakes and records, headers, and bodies in their
// content and transfer codings. A reader of a connection waits until the bytes fit within the
// limits. The server notices as soon as the buffers between it and the reader are full.
//
// A wait for bandwidth is not the host's fault, so it counts for no timeout and for no rate.

const (
	// burstTime is the time whose bytes may come at once.
	burstTime = 100 * time.Millisecond
	// chunk is how many bytes are taken off a connection at once under a limit, and the least
	// burst.
	chunk = 4 << 10
)

// bandwidth is shared by all requests of a Client. It is safe for concurrent use.
type bandwidth struct {
	now func() time.Time

	received atomic.Int64 // bytes
	waited   atomic.Int64 // nanoseconds, of all requests together
	limited  atomic.Bool  // there may be a limit

	mu        sync.Mutex // guards what follows; nothing blocks under it
	all       limit
	ofHost    func(host string) int64 // nil: no host has a limit
	hosts     map[string]*hostLimit
	refilling list.List     // of *hostLimit that no request uses, the first to be full in front
	changed   chan struct{} // closed when a limit changes
}

func newBandwidth(now func() time.Time) *bandwidth {
	return &bandwidth{now: now, hosts: make(map[string]*hostLimit), changed: make(chan struct{})}
}

// limit is one limit. The zero value is none.
type limit struct {
	perSecond int64
	limiter   *rate.Limiter
}

func newLimit(perSecond int64) limit {
	if perSecond <= 0 {
		return limit{}
	}
	burst := max(perSecond/int64(time.Second/burstTime), chunk)
	return limit{perSecond: perSecond, limiter: rate.NewLimiter(rate.Limit(perSecond), int(burst))}
}

// change replaces a limit and reports whether it differs. The new limit begins without a burst: the
// old one has counted the latest bytes.
func (l *limit) change(perSecond int64, now time.Time) bool {
	if perSecond = max(perSecond, 0); perSecond == l.perSecond {
		return false
	}
	if *l = newLimit(perSecond); l.limiter != nil {
		l.limiter.ReserveN(now, l.limiter.Burst())
	}
	return true
}

// claim is bytes that were taken from a limiter, and the instant at which they fit within the
// limit.
type claim struct {
	limiter *rate.Limiter // nil: there is no limit
	ready   time.Time
}

// claim takes n bytes, unless c is already of this limit.
func (l *limit) claim(c *claim, n int, now time.Time) {
	if c.limiter == l.limiter {
		return
	}
	if *c = (claim{limiter: l.limiter}); l.limiter == nil {
		return
	}
	for burst := l.limiter.Burst(); n > 0; n -= burst {
		c.ready = now.Add(l.limiter.ReserveN(now, min(n, burst)).DelayFrom(now))
	}
}

// hostLimit is the limit of one host. It exists while requests to the host are under way, and then
// until its burst is available again.
type hostLimit struct {
	limit
	host    string
	users   int           // requests under way
	element *list.Element // in bandwidth.refilling; nil while there are users
}

// set applies limits, also to bodies that are being received.
func (b *bandwidth) set(all int64, ofHost func(host string) int64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := b.all.change(all, now)
	b.ofHost = ofHost
	for _, h := range b.hosts {
		changed = h.change(b.limitOfLocked(h.host), now) || changed
	}
	b.limited.Store(b.all.limiter != nil || ofHost != nil)
	if changed || !b.limited.Load() {
		close(b.changed)
		b.changed = make(chan struct{})
	}
}

// most returns how many of n bytes may be read at once.
func (b *bandwidth) most(n int) int {
	if b.limited.Load() {
		return min(n, chunk)
	}
	return n
}

func (b *bandwidth) limitOfLocked(host string) int64 {
	if b.ofHost == nil {
		return 0
	}
	return b.ofHost(host)
}

// claim takes n bytes for a request, from the limit of the whole crawl and from that of its host.
// The returned channel is closed when a limit changes. Then claim must be called again; it takes
// bytes only from the limit that changed.
func (b *bandwidth) claim(a *account, all, host *claim, n int, now time.Time) (changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.limit == nil && !a.closed {
		a.limit = b.useLocked(a.host)
	}
	b.all.claim(all, n, now)
	if a.limit != nil {
		a.limit.claim(host, n, now)
	}
	return b.changed
}

// useLocked returns the limit of a host, for one more request; nil: it has none.
func (b *bandwidth) useLocked(host string) *hostLimit {
	h := b.hosts[host]
	if h == nil {
		perSecond := b.limitOfLocked(host)
		if perSecond <= 0 {
			return nil
		}
		h = &hostLimit{limit: newLimit(perSecond), host: host}
		b.hosts[host] = h
	}
	if h.users++; h.element != nil {
		b.refilling.Remove(h.element)
		h.element = nil
	}
	return h
}

// release records that a request ends, and forgets the limits that are no longer needed.
func (b *bandwidth) release(a *account, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.closed = true
	if h := a.limit; h != nil {
		if h.users--; h.users == 0 {
			h.element = b.refilling.PushBack(h)
		}
	}
	for e := b.refilling.Front(); e != nil; e = b.refilling.Front() {
		h := e.Value.(*hostLimit)
		if h.limiter != nil && h.limiter.TokensAt(now) < float64(h.limiter.Burst()) {
			return
		}
		b.refilling.Remove(e)
		delete(b.hosts, h.host)
	}
}

// account counts the bytes that one request receives, and finds out whether it may send any. Its zero
// value and nil have no limit.
type account struct {
	shared *bandwidth
	host   string
	permit func() error // nil: all may be written

	mu           sync.Mutex    // guards what follows
	total        time.Duration // of the waits that have ended
	since, until time.Time     // of the wait under way; zero: there is none

	limit  *hostLimit // guarded by shared.mu; nil: not needed so far
	closed bool       // guarded by shared.mu
}

// waiting returns how long the request has waited for bandwidth so far, and how long it will still
// wait if no limit changes.
func (a *account) waiting() (waited, still time.Duration) {
	if a == nil {
		return 0, 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		return a.total, 0
	}
	now := a.shared.now()
	return a.total + now.Sub(a.since), max(a.until.Sub(now), 0)
}

// waited returns how long the request has waited for bandwidth so far.
func (a *account) waited() time.Duration {
	waited, _ := a.waiting()
	return waited
}

// begin records the start of a wait, end its end.
func (a *account) begin(now time.Time, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since, a.until = now, now.Add(wait)
}

func (a *account) end(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	waited := now.Sub(a.since)
	a.total += waited
	a.since = time.Time{}
	a.shared.waited.Add(int64(waited))
}

// take counts n received bytes, and waits until they fit within the limits. It returns early when
// done is closed.
func (a *account) take(n int, done <-chan struct{}) {
	if a == nil {
		return
	}
	a.shared.received.Add(int64(n))
	var all, host claim
	for again := true; again && a.shared.limited.Load(); {
		now := a.shared.now()
		changed := a.shared.claim(a, &all, &host, n, now)
		wait := max(all.ready.Sub(now), host.ready.Sub(now))
		again = wait > 0 && a.wait(wait, changed, done)
	}
}

// wait waits, and reports whether the wait ended because a limit has changed.
func (a *account) wait(wait time.Duration, changed, done <-chan struct{}) (again bool) {
	a.begin(a.shared.now(), wait)
	defer func() { a.end(a.shared.now()) }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-done:
		return false
	case <-changed:
		return true
	}
}

// SetBandwidth limits the received bytes per second: of all requests together, and of the requests
// to each host, for which ofHost returns the limit. 0: no limit; a nil ofHost limits none. Any
// goroutine may call SetBandwidth; it takes effect at once, also for responses that are being
// received. ofHost is called while a lock is held, by any goroutine.
//
// What counts is every byte that comes over the connections of requests, TLS and headers included.
// In any period, at most the bytes of the limit for that period, those of a tenth of a second (4
// KiB at least) and 4 KiB for each connection are received. A server may have sent more, by what
// the buffers of both machines hold.
func (c *Client) SetBandwidth(all int64, ofHost func(host string) int64) {
	c.bandwidth.set(all, ofHost, c.now())
}

// Received returns how many bytes have come over the connections of requests, and how long all
// requests together have waited for bandwidth. Any goroutine may call it.
func (c *Client) Received() (bytes int64, waited time.Duration) {
	return c.bandwidth.received.Load(), time.Duration(c.bandwidth.waited.Load())
}
