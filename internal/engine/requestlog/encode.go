//go:build !core

package requestlog

import (
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// encoder makes frames from requests. Common values of requests are written once, as a context,
// before the first request that has them.
type encoder struct {
	began      time.Time
	ledgerBase uint64        // every request of an earlier file has a lower offset in the start ledger
	ledgerEnd  uint64        // the same for all requests so far
	last       time.Duration // end of the last request, since began
	offset     int64         // microseconds by which the wall clock had been set at that time
	contexts   map[contextKey]int
	policies   map[policyKey]int
	bodies     map[robots.Version]bool
	room       int    // bytes that bodies may still take
	losts      uint64 // frames of that type in the file

	coder  coder
	fields requestFields
}

// maxContexts bounds the memory of the encoder; beyond it, the numbers begin again.
const maxContexts = 1 << 15

type contextKey struct {
	origin  weburl.Origin
	address netip.Addr
	policy  policyKey
}

// policyKey distinguishes policies.
type policyKey struct {
	version                          robots.Version
	class, copied                    robots.Class
	fetched, refresh, since, expires int64
}

func keyOf(p *Policy) policyKey {
	if p == nil {
		return policyKey{}
	}
	r := &p.Record
	return policyKey{
		p.Version, r.Class, r.Copy, r.Fetched.UnixMilli(), r.Refresh.UnixMilli(), r.FirstUnreachable.UnixMilli(),
		r.Expires.UnixMilli(),
	}
}

// reset begins a file: its reader knows nothing yet.
func (e *encoder) reset(room int) {
	e.contexts, e.policies = make(map[contextKey]int), make(map[policyKey]int)
	e.bodies, e.room = make(map[robots.Version]bool), room
	e.last, e.offset = 0, 0
}

// header appends the frame that begins a file.
func (e *encoder) header(b []byte, p *Process, now time.Time, room int) []byte {
	e.reset(room)
	e.ledgerEnd = max(e.ledgerEnd, p.LedgerBase)
	e.began, e.ledgerBase, e.losts = p.Began, e.ledgerEnd, 0
	return e.frame(b, frameHeader, &headerFields{
		version: version, began: p.Began.UnixNano(), uptime: p.Uptime, boot: p.Boot, agent: p.Agent, tokens: p.Tokens,
		obey: flag(p.Obey, byte(1)), begun: now.UnixNano(), ledgerBase: e.ledgerBase,
	})
}

// frame appends a frame of a type.
func (e *encoder) frame(b []byte, kind byte, f fields) []byte {
	e.coder.b = append(e.coder.b[:0], kind)
	f.code(&e.coder)
	return appendFrame(b, e.coder.b)
}

// lost appends a frame with the number of missing requests, and begins the numbers again.
func (e *encoder) lost(b []byte, n uint64) []byte {
	e.reset(e.room)
	e.losts++
	return e.frame(b, frameLost, &lostFields{n})
}

// sync appends a frame from which a reader can continue that does not know the frames before it. at
// is its offset in the file, and requests the number of requests before it.
func (e *encoder) sync(b []byte, at int64, requests uint64) []byte {
	return e.frame(b, frameSync, &syncFields{
		at: uint64(at), requests: requests, lost: e.losts, contexts: len(e.contexts), policies: len(e.policies),
		end: int64(e.last), offset: e.offset,
	})
}

// request appends the frame of a request that ended, after the frames that it refers to.
func (e *encoder) request(b []byte, r *Request) []byte {
	b, context := e.context(b, r)
	end := clamp(r.End.Sub(e.began), -maxDuration, maxDuration)
	offset := clamp(r.End.UnixMicro()-e.began.Add(end).UnixMicro(), -maxOffset, maxOffset)
	q := &e.fields
	*q = requestFields{
		flags: requestFlags(r), context: context, ledgerOffset: int64(r.LedgerOffset - e.ledgerBase),
		end:      int64(end - e.last),
		offset:   offset - e.offset,
		duration: r.End.Sub(r.Start), waited: r.Start.Sub(r.Decided), delay: r.Delay,
		delayReason: byte(r.DelayReason), reason: byte(r.Reason), method: byte(r.Method),
		failure: byte(r.Failure), status: r.Status, bytes: r.Bytes, retryAfter: r.RetryAfter, line: r.Line,
		fetcher: r.Fetcher, lease: r.Lease,
		target: r.URL.RequestURI(),
	}
	if q.flags&flagFor != 0 {
		q.origin = r.For.String()
	}
	e.last, e.offset = end, offset
	e.ledgerEnd = max(e.ledgerEnd, r.LedgerOffset+1)
	return e.frame(b, frameRequest, q)
}

func requestFlags(r *Request) uint64 {
	return uint64(flag(r.Kind == Robots, flagRobots) | flag(r.Again, flagAgain) | flag(r.Sent, flagSent) |
		flag(r.Status <= 0, flagFailed) | flag(r.RetryAfter > 0, flagRetryAfter) | flag(r.Allowed, flagAllowed) |
		flag(r.For != (weburl.Origin{}), flagFor) | flag(r.Line > 0, flagLine) | flag(r.Fetcher != "", flagFetcher) |
		flag(r.Lease != "", flagLease))
}

func flag[T byte | int](set bool, bit T) T {
	if set {
		return bit
	}
	return 0
}

// context returns the number of a request's context. It appends the frame of a new context first.
func (e *encoder) context(b []byte, r *Request) ([]byte, int) {
	key := contextKey{origin: r.URL.Origin(), address: r.Address, policy: keyOf(r.Policy)}
	if n, known := e.contexts[key]; known {
		return b, n
	}
	if len(e.contexts) >= maxContexts {
		b = e.lost(b, 0)
	}
	b, policy := e.policy(b, r.Policy, key.policy)
	n := len(e.contexts)
	e.contexts[key] = n
	return e.frame(b, frameContext, &contextFields{
		origin: key.origin.String(), address: string(r.Address.AsSlice()), policy: policy,
	}), n
}

// policy returns the number of a policy, from 1; 0 for none. It appends the frame of a new policy
// first.
func (e *encoder) policy(b []byte, p *Policy, key policyKey) ([]byte, int) {
	if p == nil {
		return b, 0
	}
	if n, known := e.policies[key]; known {
		return b, n
	}
	b = e.body(b, p)
	record := p.Record
	record.Body = nil
	encoded, err := record.AppendBinary(nil)
	if err != nil {
		return b, 0 // no record that robots.Options.Next makes
	}
	n := len(e.policies) + 1
	e.policies[key] = n
	return e.frame(b, framePolicy, &policyFields{p.Version, encoded}), n
}

// body appends a robots.txt that is not in the file yet, or a frame that says that there was no
// room for it.
func (e *encoder) body(b []byte, p *Policy) []byte {
	if len(p.Record.Body) == 0 || e.bodies[p.Version] {
		return b
	}
	e.bodies[p.Version] = true
	f := bodyFields{version: p.Version, size: len(p.Record.Body)}
	packed := p.Packed
	if packed == nil {
		packed = robots.Pack(p.Record.Body)
	}
	if len(packed) <= e.room {
		e.room -= len(packed)
		f.kept, f.packed = 1, packed
	}
	return e.frame(b, frameBody, &f)
}

// open appends the frame of a request whose end is unknown.
func (e *encoder) open(b []byte, r *Request) []byte {
	b, policy := e.policy(b, r.Policy, keyOf(r.Policy))
	return e.frame(b, frameOpen, &openFields{
		flags: requestFlags(r), ledgerOffset: r.LedgerOffset, start: r.Start.UnixNano(), delay: int64(r.Delay),
		address: string(r.Address.AsSlice()), policy: policy, line: r.Line, fetcher: r.Fetcher, lease: r.Lease,
		url: r.URL.String(),
	})
}
