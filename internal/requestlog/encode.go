package requestlog

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
)

// The flags of a request.
const (
	flagRobots = 1 << iota
	flagAgain
	flagSent
	flagFailed     // a kind of failure stands in the place of the status
	flagRetryAfter // what Retry-After asked for follows
	flagAllowed
	flagFor  // the origin whose rules are wanted follows
	flagLine // the line that gave the verdict follows
	flagsEnd
)

// encoder makes frames of requests. What requests have in common is written once: a context where it is first used.
type encoder struct {
	began    time.Time
	place    uint64        // no request of an earlier file stands here in the start ledger, or behind it
	behind   uint64        // the same of all requests so far
	last     time.Duration // end of the last request, since began
	offset   int64         // by how many microseconds the wall clock had been set then
	contexts map[contextKey]uint64
	policies map[policyKey]uint64
	bodies   map[robots.Version]bool
	room     int // bytes that bodies may still take

	payload []byte
}

// maxContexts bounds the memory of the encoder; behind it the numbers begin again.
const maxContexts = 1 << 15

type contextKey struct {
	origin  weburl.Origin
	address netip.Addr
	policy  policyKey
}

// policyKey tells policies apart.
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
		p.Version, r.Class, r.Copy, r.Fetched.UnixMilli(), r.Refresh.UnixMilli(), r.FirstUnreachable.UnixMilli(), r.Expires.UnixMilli(),
	}
}

// reset begins a file: nothing is known to its reader.
func (e *encoder) reset(room int) {
	e.contexts, e.policies = make(map[contextKey]uint64), make(map[policyKey]uint64)
	e.bodies, e.room = make(map[robots.Version]bool), room
	e.last, e.offset = 0, 0
}

// header appends the frame that begins a file.
func (e *encoder) header(b []byte, p *Process, now time.Time, room int) []byte {
	e.reset(room)
	e.behind = max(e.behind, p.Place)
	e.began, e.place = p.Began, e.behind
	h := append(append(e.payload[:0], frameHeader), magic...)
	h = append(h, version)
	h = binary.AppendVarint(h, p.Began.UnixNano())
	h = binary.AppendUvarint(h, uint64(max(p.Uptime, 0)))
	h = appendText(appendText(h, p.Boot), p.Agent)
	h = binary.AppendUvarint(h, uint64(len(p.Tokens)))
	for _, t := range p.Tokens {
		h = appendText(h, t)
	}
	h = append(h, flag(p.Obey, 1))
	h = binary.AppendVarint(h, now.UnixNano())
	h = binary.AppendUvarint(h, e.place)
	e.payload = h
	return appendFrame(b, h)
}

// lost appends the frame that says how many requests are missing, and begins the numbers again.
func (e *encoder) lost(b []byte, n uint64) []byte {
	e.reset(e.room)
	e.payload = binary.AppendUvarint(append(e.payload[:0], frameLost), n)
	return appendFrame(b, e.payload)
}

// request appends the frame of a request that ended, and before it those of what it refers to.
func (e *encoder) request(b []byte, r *Request) []byte {
	b, context := e.context(b, r)
	end := r.End.Sub(e.began)
	offset := r.End.UnixMicro() - e.began.Add(end).UnixMicro()
	q := append(e.payload[:0], frameRequest)
	q = binary.AppendUvarint(q, requestFlags(r))
	q = binary.AppendUvarint(q, context)
	q = binary.AppendVarint(q, int64(r.Place-e.place))
	q = binary.AppendVarint(q, int64(end-e.last))
	q = binary.AppendVarint(q, offset-e.offset)
	q = binary.AppendUvarint(q, uint64(max(r.End.Sub(r.Start), 0)))
	q = binary.AppendUvarint(q, uint64(max(r.Start.Sub(r.Decided), 0)))
	q = binary.AppendUvarint(q, uint64(max(r.Delay, 0)))
	q = append(q, byte(r.DelayReason), byte(r.Reason), byte(r.Method))
	q = appendAnswer(q, r)
	e.last, e.offset, e.payload = end, offset, q
	e.behind = max(e.behind, r.Place+1)
	return appendFrame(b, q)
}

// appendAnswer appends the fields that are there as the flags say, and the path and query.
func appendAnswer(q []byte, r *Request) []byte {
	if r.Status == 0 {
		q = append(q, byte(r.Failure))
	} else {
		q = binary.AppendUvarint(q, uint64(r.Status))
	}
	q = binary.AppendUvarint(q, r.Bytes)
	if r.RetryAfter > 0 {
		q = binary.AppendUvarint(q, uint64(r.RetryAfter))
	}
	if r.For != (weburl.Origin{}) {
		q = appendText(q, r.For.String())
	}
	if r.Line > 0 {
		q = binary.AppendUvarint(q, uint64(r.Line))
	}
	return appendText(q, r.URL.RequestURI())
}

func requestFlags(r *Request) uint64 {
	return uint64(flag(r.Kind == Robots, flagRobots) | flag(r.Again, flagAgain) | flag(r.Sent, flagSent) | flag(r.Status == 0, flagFailed) |
		flag(r.RetryAfter > 0, flagRetryAfter) | flag(r.Allowed, flagAllowed) | flag(r.For != (weburl.Origin{}), flagFor) | flag(r.Line > 0, flagLine))
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

// context returns the number of a request's context. It appends its frame where there is none yet.
func (e *encoder) context(b []byte, r *Request) ([]byte, uint64) {
	key := contextKey{origin: r.URL.Origin(), address: r.Address, policy: keyOf(r.Policy)}
	if n, known := e.contexts[key]; known {
		return b, n
	}
	if len(e.contexts) >= maxContexts {
		b = e.lost(b, 0)
	}
	b, policy := e.policy(b, r.Policy, key.policy)
	c := appendText(append(e.payload[:0], frameContext), key.origin.String())
	c = appendText(c, string(r.Address.AsSlice()))
	c = binary.AppendUvarint(c, policy)
	e.payload = c
	n := uint64(len(e.contexts))
	e.contexts[key] = n
	return appendFrame(b, c), n
}

// policy returns the number of a policy, from 1; 0 for none. It appends its frame where there is none yet.
func (e *encoder) policy(b []byte, p *Policy, key policyKey) ([]byte, uint64) {
	if p == nil {
		return b, 0
	}
	if n, known := e.policies[key]; known {
		return b, n
	}
	b = e.body(b, p)
	record := p.Record
	record.Body = nil
	encoded, err := record.AppendBinary(append(append(e.payload[:0], framePolicy), p.Version[:]...))
	if err != nil {
		return b, 0 // no record that robots.Options.Next makes
	}
	e.payload = encoded
	n := uint64(len(e.policies)) + 1
	e.policies[key] = n
	return appendFrame(b, encoded), n
}

// body appends a robots.txt that is not in the file yet, or that there was no room for it.
func (e *encoder) body(b []byte, p *Policy) []byte {
	if len(p.Record.Body) == 0 || e.bodies[p.Version] {
		return b
	}
	e.bodies[p.Version] = true
	f := append(append(e.payload[:0], frameBody), p.Version[:]...)
	f = binary.AppendUvarint(f, uint64(len(p.Record.Body)))
	if packed := pack(p.Record.Body); len(packed) <= e.room {
		e.room -= len(packed)
		f = append(append(f, 1), packed...)
	} else {
		f = append(f, 0)
	}
	e.payload = f
	return appendFrame(b, f)
}

// open appends the frame of a request whose end nobody saw.
func (e *encoder) open(b []byte, r *Request) []byte {
	b, policy := e.policy(b, r.Policy, keyOf(r.Policy))
	q := append(e.payload[:0], frameOpen)
	q = binary.AppendUvarint(q, requestFlags(r))
	q = binary.AppendUvarint(q, r.Place)
	q = binary.AppendVarint(q, r.Start.UnixNano())
	q = binary.AppendVarint(q, int64(r.Delay))
	q = appendText(q, string(r.Address.AsSlice()))
	q = binary.AppendUvarint(q, policy)
	q = binary.AppendUvarint(q, uint64(max(r.Line, 0)))
	q = appendText(q, r.URL.String())
	e.payload = q
	return appendFrame(b, q)
}
