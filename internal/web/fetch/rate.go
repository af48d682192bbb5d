package fetch

import (
	"errors"
	"sync/atomic"
	"time"
)

// A response that comes a byte at a time passes every timeout except that of the whole request. So
// a response has a minimum rate, over windows that begin with the first byte. Options.HeaderTimeout
// bounds the time before that.
//
// One response does not show whether the server or this machine's line is slow. Round trips do: on
// an overloaded line they last seconds, whatever the server. So a rate counts only while round
// trips of any request are quick.

const (
	// rateWindow is how long a response may stay below the minimum rate.
	rateWindow = 10 * time.Second
	// quickTrip is the longest round trip on a line that is not overloaded. A quick round trip
	// proves that for quickFor.
	quickTrip = time.Second
	quickFor  = 2 * rateWindow
)

// ErrTooSlow ends a request whose host has sent less than Options.MinRate. A caller who aborts a
// request for that reason also uses it as the cause of the context's end: the kind is KindTooSlow.
var ErrTooSlow = errors.New("the host sends less than fetch.min_rate")

// line records whether this machine's line is overloaded. It is safe for concurrent use.
type line struct {
	now   func() time.Time
	base  time.Time
	quick atomic.Int64 // when the last quick round trip ended, in nanoseconds since base; 0: none has
}

func newLine(now func() time.Time) *line { return &line{now: now, base: now()} }

// trip records a round trip that ends.
func (l *line) trip(took time.Duration) {
	if took < quickTrip {
		l.quick.Store(max(int64(l.now().Sub(l.base)), 1))
	}
}

// isQuick reports whether the line is not overloaded, as far as is known.
func (l *line) isQuick() bool {
	quick := l.quick.Load()
	return quick > 0 && l.now().Sub(l.base)-time.Duration(quick) <= quickFor
}

// pace holds the response of one Do to the minimum rate, and belongs to its goroutine.
type pace struct {
	c       *Client
	account *account
	start   time.Time     // of the window; zero: it has not begun
	waited  time.Duration // for bandwidth, before the window
	bytes   int64         // in the window
}

// open begins a window.
func (p *pace) open(bytes int) {
	p.start, p.waited, p.bytes = p.c.now(), p.account.waited(), int64(bytes)
}

// begin begins the first window, with bytes that have come already.
func (p *pace) begin(bytes int) {
	if p.c.o.MinRate > 0 && p.start.IsZero() {
		p.open(bytes)
	}
}

// took records received bytes, and returns ErrTooSlow if they are too few.
func (p *pace) took(n int) error {
	if p.start.IsZero() {
		return nil
	}
	p.bytes += int64(n)
	lasted := p.c.now().Sub(p.start) - (p.account.waited() - p.waited)
	if lasted < rateWindow {
		return nil
	}
	if p.c.isTooSlow(p.bytes, lasted) {
		return ErrTooSlow
	}
	p.open(0)
	return nil
}

// isTooSlow reports whether a host that has sent n bytes in a time is slower than it may be, and
// neither the line nor the bandwidth limit is the cause.
func (c *Client) isTooSlow(bytes int64, in time.Duration) bool {
	return c.o.MinRate > 0 && float64(bytes) < float64(c.o.MinRate)*in.Seconds() && c.line.isQuick()
}

// Progress reports how far a request is while it is under way. Any goroutine may call it. The zero
// value is that of a request that has not begun.
type Progress struct {
	account atomic.Pointer[account]
	wire    atomic.Pointer[meter]
	before  atomic.Int64 // bytes that had come over the connection before
	ended   atomic.Bool
}

// begin records that the request begins. It does nothing if p is nil.
func (p *Progress) begin(a *account) {
	if p != nil {
		p.account.Store(a)
	}
}

// end records that the request has ended. It does nothing if p is nil.
func (p *Progress) end() {
	if p != nil {
		p.ended.Store(true)
	}
}

// connected records the connection that the request uses. It does nothing if p is nil.
func (p *Progress) connected(wire *meter) {
	if p != nil {
		p.before.Store(wire.read.Load())
		p.wire.Store(wire)
	}
}

// received returns how many bytes of the response have come; 0 while there is no connection.
func (p *Progress) received() int64 {
	if wire := p.wire.Load(); wire != nil {
		return wire.read.Load() - p.before.Load()
	}
	return 0
}

// IsSlow reports whether a request that has not ended has been below Options.MinRate for longer
// than patience. Time in which it waited for bandwidth does not count. A caller whose other
// requests wait for it may then abort it with ErrTooSlow.
func (c *Client) IsSlow(p *Progress, lasts, patience time.Duration) bool {
	lasts -= p.account.Load().waited()
	return !p.ended.Load() && lasts > patience && c.isTooSlow(p.received(), lasts)
}
