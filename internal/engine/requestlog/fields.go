//go:build !core

package requestlog

import (
	"time"

	"github.com/amble-crawler/amble/robots"
)

// fields are the fields of one type of frame.
type fields interface {
	// code writes the fields to a payload, or reads them from one.
	code(*coder)
}

// The flags of a request.
const (
	flagRobots = 1 << iota
	flagAgain
	flagSent
	flagFailed     // a kind of failure replaces the status
	flagRetryAfter // Retry-After follows
	flagAllowed
	flagFor     // the origin whose rules are needed follows
	flagLine    // the line that decided follows
	flagFetcher // the name of the fetcher follows
	flagLease   // the id of its lease follows
	flagsEnd
)

// headerFields are the fields of frameHeader.
type headerFields struct {
	version    byte
	began      int64 // Unix time of the process in nanoseconds
	uptime     time.Duration
	boot       string
	agent      string
	tokens     []string
	obey       byte
	begun      int64  // Unix time of the file in nanoseconds
	ledgerBase uint64 // requests of earlier files have lower offsets in the start ledger
}

func (h *headerFields) code(c *coder) {
	name := [len(magic)]byte([]byte(magic))
	c.fixed(name[:])
	c.octet(&h.version)
	c.in.Require(string(name[:]) == magic && h.version > 0 && h.version <= version)
	c.signed(&h.began, maxTime)
	c.duration(&h.uptime)
	c.text(&h.boot)
	c.text(&h.agent)
	n := uint64(len(h.tokens))
	c.uvarint(&n)
	if c.reads {
		h.tokens = make([]string, min(n, uint64(c.in.Len()))) // a token takes at least a byte
	}
	for i := range h.tokens {
		c.text(&h.tokens[i])
	}
	c.octet(&h.obey)
	c.signed(&h.begun, maxTime)
	c.uvarint(&h.ledgerBase)
}

// requestFields are the fields of frameRequest. Times are in nanoseconds, that of the wall clock in
// microseconds.
type requestFields struct {
	flags        uint64
	context      int
	ledgerOffset int64 // relative to the base in the header
	end          int64 // relative to the end of the request before
	// of the wall clock against the monotonic one, relative to that of the request before
	offset           int64
	duration, waited time.Duration // of the request; from its decision to its start
	delay            time.Duration
	delayReason      byte
	reason           byte
	method           byte
	failure          byte
	status           int
	bytes            uint64
	retryAfter       time.Duration
	origin           string
	line             int
	fetcher          string
	lease            string
	target           string // path and query
}

func (q *requestFields) code(c *coder) {
	c.uvarint(&q.flags)
	c.number(&q.context, maxNumber)
	c.signed(&q.ledgerOffset, maxTime)
	c.signed(&q.end, 2*maxDuration)
	c.signed(&q.offset, 2*maxOffset)
	c.duration(&q.duration)
	c.duration(&q.waited)
	c.duration(&q.delay)
	c.octet(&q.delayReason)
	c.octet(&q.reason)
	c.octet(&q.method)
	if q.flags&flagFailed != 0 {
		c.octet(&q.failure)
	} else {
		c.number(&q.status, maxStatus)
	}
	c.uvarint(&q.bytes)
	if q.flags&flagRetryAfter != 0 {
		c.duration(&q.retryAfter)
	}
	if q.flags&flagFor != 0 {
		c.text(&q.origin)
	}
	if q.flags&flagLine != 0 {
		c.number(&q.line, maxNumber)
	}
	if q.flags&flagFetcher != 0 {
		c.text(&q.fetcher)
	}
	if q.flags&flagLease != 0 {
		c.text(&q.lease)
	}
	c.text(&q.target)
}

// contextFields are the fields of frameContext.
type contextFields struct {
	origin  string
	address string // 4 or 16 bytes
	policy  int    // its number, from 1; 0: none
}

func (x *contextFields) code(c *coder) {
	c.text(&x.origin)
	c.text(&x.address)
	c.number(&x.policy, maxNumber)
}

// policyFields are the fields of framePolicy.
type policyFields struct {
	version robots.Version
	record  []byte
}

func (p *policyFields) code(c *coder) {
	c.fixed(p.version[:])
	c.rest(&p.record)
}

// bodyFields are the fields of frameBody.
type bodyFields struct {
	version robots.Version
	size    int
	kept    byte
	packed  []byte
}

func (b *bodyFields) code(c *coder) {
	c.fixed(b.version[:])
	c.number(&b.size, robots.MaxBody)
	c.octet(&b.kept)
	c.rest(&b.packed)
}

// lostFields are the fields of frameLost.
type lostFields struct{ requests uint64 }

func (l *lostFields) code(c *coder) { c.uvarint(&l.requests) }

// openFields are the fields of frameOpen.
type openFields struct {
	flags        uint64
	ledgerOffset uint64
	start        int64 // Unix time in nanoseconds
	delay        int64 // in nanoseconds
	address      string
	policy       int // its number, from 1; 0: none
	line         int
	fetcher      string
	lease        string
	url          string
}

func (q *openFields) code(c *coder) {
	c.uvarint(&q.flags)
	c.uvarint(&q.ledgerOffset)
	c.signed(&q.start, maxTime)
	c.signed(&q.delay, maxDuration)
	c.text(&q.address)
	c.number(&q.policy, maxNumber)
	c.number(&q.line, maxNumber)
	if q.flags&flagFetcher != 0 {
		c.text(&q.fetcher)
	}
	if q.flags&flagLease != 0 {
		c.text(&q.lease)
	}
	c.text(&q.url)
}

// syncFields are the fields of frameSync: everything that a reader needs to continue from there.
type syncFields struct {
	at       uint64 // offset of the frame in its file
	requests uint64 // before it in the file
	lost     uint64 // frames of that type before it: each begins the numbers again
	contexts int    // that have a number
	policies int
	end      int64 // of the last request, since the start of the process
	offset   int64
}

func (s *syncFields) code(c *coder) {
	c.uvarint(&s.at)
	c.uvarint(&s.requests)
	c.uvarint(&s.lost)
	c.number(&s.contexts, maxNumber)
	c.number(&s.policies, maxNumber)
	c.signed(&s.end, maxDuration)
	c.signed(&s.offset, maxOffset)
}
