//go:build !core

package requestlog

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// header is the first frame of a file.
type header struct {
	version    byte
	process    Process
	begun      time.Time // of the file
	ledgerBase uint64    // requests of earlier files have lower offsets in the start ledger
}

func decodeHeader(payload []byte) (*header, bool) {
	var f headerFields
	if len(payload) == 0 || payload[0] != frameHeader || !decode(payload, &f) {
		return nil, false
	}
	return &header{
		version: f.version,
		process: Process{
			Began: time.Unix(0, f.began).UTC(), Uptime: f.uptime, Boot: f.boot, Agent: f.agent, Tokens: f.tokens,
			Obey: f.obey == 1,
		},
		begun: time.Unix(0, f.begun).UTC(), ledgerBase: f.ledgerBase,
	}, true
}

// decode reads the fields of a payload behind its type.
func decode(payload []byte, f fields) bool {
	c := newReader(payload[1:])
	f.code(&c)
	return c.in.End() == nil
}

// fileDecoder makes requests from the frames of one file.
type fileDecoder struct {
	clocks     map[string]int // numbers of the clocks, over all files
	version    byte           // of the file
	process    *Process
	ledgerBase uint64
	contexts   []context
	policies   []policy
	bodies     map[robots.Version]body
	last       time.Duration
	offset     int64
	lost       uint64
	losts      uint64 // frames of that type so far
	read       uint64 // requests so far

	fields  requestFields
	request Request
	ready   bool // there is a request
	unknown bool // there is a request that refers to a damaged part
}

// context has the common values of requests. A context in a damaged part of the file is unknown.
type context struct {
	known   bool
	origin  weburl.Origin
	address netip.Addr
	policy  *Policy
}

// policy is a policy that contexts refer to. A policy in a damaged part of the file is unknown.
type policy struct {
	known bool
	*Policy
}

type body struct {
	packed []byte
	size   int
	kept   bool
}

func newFileDecoder(clocks map[string]int) *fileDecoder {
	d := &fileDecoder{clocks: clocks}
	d.reset()
	return d
}

func (f *fileDecoder) reset() {
	f.contexts, f.policies, f.bodies = nil, nil, make(map[robots.Version]body)
	f.last, f.offset = 0, 0
}

func (f *fileDecoder) takeLost() uint64 {
	n := f.lost
	f.lost = 0
	return n
}

// frame reads a frame. It returns false for a frame that cannot be at this place.
func (f *fileDecoder) frame(payload []byte) bool {
	f.ready, f.unknown = false, false
	if f.process == nil {
		return f.header(payload)
	}
	switch payload[0] {
	case frameRequest:
		f.fields = requestFields{}
		return f.counts(decode(payload, &f.fields) && f.takeRequest(&f.fields))
	case frameContext:
		var x contextFields
		return decode(payload, &x) && f.takeContext(&x)
	case framePolicy:
		var p policyFields
		return decode(payload, &p) && f.takePolicy(&p)
	case frameBody:
		var b bodyFields
		if !decode(payload, &b) {
			return false
		}
		f.bodies[b.version] = body{packed: append([]byte(nil), b.packed...), size: b.size, kept: b.kept == 1}
		return true
	case frameLost:
		var l lostFields
		if !decode(payload, &l) {
			return false
		}
		f.lost += l.requests
		f.losts++
		f.reset()
		return true
	case frameOpen:
		var q openFields
		return f.counts(decode(payload, &q) && f.takeOpen(&q))
	case frameSync:
		return decode(payload, &syncFields{})
	}
	return false
}

// counts counts a request that could be read.
func (f *fileDecoder) counts(ok bool) bool {
	if ok {
		f.read++
	}
	return ok
}

func (f *fileDecoder) header(payload []byte) bool {
	h, ok := decodeHeader(payload)
	if !ok {
		return false
	}
	f.version, f.process, f.ledgerBase = h.version, &h.process, h.ledgerBase
	name := "boot " + h.process.Boot
	if h.process.Boot == "" || h.process.Uptime == 0 {
		name = "process " + strconv.FormatInt(h.process.Began.UnixNano(), 10)
	}
	if f.clocks[name] == 0 {
		f.clocks[name] = len(f.clocks) + 1
	}
	f.process.clock = f.clocks[name]
	return true
}

// resume continues behind a damaged part of the file. It returns how many requests that part had.
func (f *fileDecoder) resume(s *syncFields) (missing uint64) {
	missing = s.requests - min(f.read, s.requests)
	if s.lost != f.losts { // the numbers began again in the damaged part
		f.contexts, f.policies = nil, nil
	}
	f.contexts, f.policies = grown(f.contexts, min(s.contexts, maxContexts)), grown(f.policies,
		min(s.policies, maxPolicies))
	f.read, f.losts = s.requests, s.lost
	f.last, f.offset = time.Duration(s.end), s.offset
	return missing
}

// grown returns a list with n elements; the added ones are zero.
func grown[T any](list []T, n int) []T { return append(list, make([]T, max(n-len(list), 0))...) }

func (f *fileDecoder) takeContext(x *contextFields) bool {
	if len(f.contexts) >= maxContexts || x.policy > len(f.policies) {
		return false
	}
	origin, err := weburl.ParseOrigin(x.origin)
	address, ok := addressOf(x.address)
	if err != nil || !ok {
		return false
	}
	c := context{known: true, origin: origin, address: address}
	if x.policy > 0 {
		p := f.policies[x.policy-1]
		c.known, c.policy = p.known, p.Policy
	}
	f.contexts = append(f.contexts, c)
	return true
}

// addressOf reads an address. An empty one means that the writer did not know it.
func addressOf(text string) (a netip.Addr, ok bool) {
	if text == "" {
		return a, true
	}
	return netip.AddrFromSlice([]byte(text))
}

// maxPolicies is more than any file has.
const maxPolicies = 1 << 20

func (f *fileDecoder) takePolicy(x *policyFields) bool {
	record, err := robots.DecodeRecord(x.record)
	if err != nil || len(f.policies) >= maxPolicies {
		return false
	}
	b := f.bodies[x.version]
	f.policies = append(f.policies, policy{known: true, Policy: &Policy{
		Record: record, Version: x.version, Packed: b.packed, size: b.size, kept: b.kept,
	}})
	return true
}

func (f *fileDecoder) takeRequest(q *requestFields) bool {
	if q.flags >= flagsEnd || q.context >= len(f.contexts) {
		return false
	}
	f.last = clamp(f.last+time.Duration(q.end), -maxDuration, maxDuration)
	f.offset = clamp(f.offset+q.offset, -maxOffset, maxOffset)
	c := &f.contexts[q.context]
	if !c.known {
		f.unknown = true
		return true
	}
	r := &f.request
	*r = Request{
		Kind: kindOf(q.flags), Again: q.flags&flagAgain != 0, Sent: q.flags&flagSent != 0,
		Allowed: q.flags&flagAllowed != 0,
		Address: c.address, Policy: c.policy, Process: f.process, LedgerOffset: f.ledgerBase + uint64(q.ledgerOffset),
		Delay: q.delay, DelayReason: politeness.Reason(q.delayReason), Reason: politeness.Reason(q.reason),
		Method:  Method(q.method),
		Failure: fetch.Kind(q.failure), Status: q.status, Bytes: q.bytes, RetryAfter: q.retryAfter, Line: q.line,
	}
	r.End = f.process.Began.Add(f.last + time.Duration(f.offset)*time.Microsecond)
	r.Start = r.End.Add(-q.duration)
	r.Decided = r.Start.Add(-q.waited)
	r.ends, r.starts = f.process.instant(r.End, f.last), f.process.instant(r.Start, f.last-q.duration)
	if q.flags&flagFetcher != 0 {
		r.Fetcher = q.fetcher
	}
	if q.flags&flagLease != 0 {
		r.Lease = q.lease
	}
	var err error
	if q.flags&flagFor != 0 {
		r.For, err = weburl.ParseOrigin(q.origin)
	}
	if err != nil || len(q.target) == 0 || len(q.target) > 2*weburl.MaxLength || q.target[0] != '/' {
		return false
	}
	r.URL = c.origin.URL(q.target)
	f.ready = true
	return true
}

func (f *fileDecoder) takeOpen(q *openFields) bool {
	if q.flags >= flagsEnd || q.policy > len(f.policies) {
		return false
	}
	r := &f.request
	*r = Request{
		Kind: kindOf(q.flags), Sent: true, Again: q.flags&flagAgain != 0, Allowed: q.flags&flagAllowed != 0,
		Process:      f.process,
		LedgerOffset: q.ledgerOffset, Start: time.Unix(0, q.start).UTC(), Delay: time.Duration(q.delay), Line: q.line,
	}
	if q.flags&flagFetcher != 0 {
		r.Fetcher = q.fetcher
	}
	if q.flags&flagLease != 0 {
		r.Lease = q.lease
	}
	r.Decided, r.starts = r.Start, Instant{Wall: r.Start}
	r.ends = f.process.instant(f.process.Began, 0)
	if q.policy > 0 {
		p := f.policies[q.policy-1]
		f.unknown, r.Policy = !p.known, p.Policy
	}
	var err error
	var ok bool
	r.Address, ok = addressOf(q.address)
	if r.URL, err = weburl.Parse(q.url); err != nil || !ok {
		return false
	}
	f.ready = !f.unknown
	return true
}

func kindOf(flags uint64) Kind {
	if flags&flagRobots != 0 {
		return Robots
	}
	return Page
}
