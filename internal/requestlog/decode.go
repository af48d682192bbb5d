package requestlog

import (
	"math"
	"net/netip"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// header is the first frame of a file.
type header struct {
	process Process
	begun   time.Time // the file
	place   uint64    // requests of earlier files stand before it in the start ledger
}

// maxTokens is more than any process has.
const maxTokens = 64

func decodeHeader(payload []byte) (*header, bool) {
	d := decoder{b: payload}
	if d.octet() != frameHeader || string(d.bytes(len(magic))) != magic || d.octet() != version {
		return nil, false
	}
	h := &header{}
	p := &h.process
	p.Began = time.Unix(0, d.varint()).UTC()
	p.Uptime = time.Duration(d.number(math.MaxInt64))
	p.Boot, p.Agent = d.text(), d.text()
	for range d.number(maxTokens) {
		p.Tokens = append(p.Tokens, d.text())
	}
	p.Obey = d.octet() == 1
	h.begun = time.Unix(0, d.varint()).UTC()
	h.place = d.uvarint()
	return h, d.complete()
}

// fileDecoder makes requests of the frames of one file.
type fileDecoder struct {
	clocks   map[string]int // numbers of the clocks, over all files
	process  *Process
	place    uint64
	contexts []context
	policies []*Policy
	bodies   map[robots.Version]body
	last     time.Duration
	offset   int64
	lost     uint64

	request Request
	ready   bool // there is a request
}

type context struct {
	origin  weburl.Origin
	address netip.Addr
	policy  *Policy
}

type body struct {
	packed []byte
	size   int
	kept   bool
}

func newFileDecoder(clocks map[string]int) *fileDecoder {
	d := &fileDecoder{clocks: clocks}
	d.reset()
	d.bodies = make(map[robots.Version]body)
	return d
}

func (f *fileDecoder) reset() {
	f.contexts, f.policies, f.last, f.offset = nil, nil, 0, 0
}

func (f *fileDecoder) takeLost() uint64 {
	n := f.lost
	f.lost = 0
	return n
}

// frame takes in a frame; false where it is not one that belongs there.
func (f *fileDecoder) frame(payload []byte) bool {
	if f.process == nil {
		return f.header(payload)
	}
	d := decoder{b: payload}
	switch d.octet() {
	case frameRequest:
		f.decodeRequest(&d)
	case frameContext:
		f.decodeContext(&d)
	case framePolicy:
		f.decodePolicy(&d)
	case frameBody:
		f.decodeBody(&d)
	case frameLost:
		f.lost += d.uvarint()
		f.reset()
		clear(f.bodies)
	case frameOpen:
		f.decodeOpen(&d)
	default:
		return false
	}
	if !d.complete() {
		f.ready = false
		return false
	}
	return true
}

func (f *fileDecoder) header(payload []byte) bool {
	h, ok := decodeHeader(payload)
	if !ok {
		return false
	}
	f.process, f.place = &h.process, h.place
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

func (f *fileDecoder) decodeContext(d *decoder) {
	origin, err := weburl.ParseOrigin(d.text())
	address, ok := netip.AddrFromSlice([]byte(d.text()))
	c := context{origin: origin, address: address}
	if n := d.number(uint64(len(f.policies))); n > 0 {
		c.policy = f.policies[n-1]
	}
	if err != nil || !ok || len(f.contexts) >= maxContexts {
		d.fail()
		return
	}
	f.contexts = append(f.contexts, c)
}

func (f *fileDecoder) decodePolicy(d *decoder) {
	p := &Policy{}
	copy(p.Version[:], d.bytes(len(p.Version)))
	record, err := robots.DecodeRecord(d.bytes(len(d.b)))
	if err != nil {
		d.fail()
		return
	}
	b := f.bodies[p.Version]
	p.Record, p.packed, p.size, p.kept = record, b.packed, b.size, b.kept
	f.policies = append(f.policies, p)
}

func (f *fileDecoder) decodeBody(d *decoder) {
	var v robots.Version
	copy(v[:], d.bytes(len(v)))
	b := body{size: d.number(robots.MaxBody)}
	if b.kept = d.octet() == 1; b.kept {
		b.packed = append([]byte(nil), d.bytes(len(d.b))...)
	}
	f.bodies[v] = b
}

// most bounds durations, so that sums of a few of them are durations too.
const most = math.MaxInt64 / 8

func (f *fileDecoder) decodeRequest(d *decoder) {
	flags, n := d.uvarint(), d.number(math.MaxInt32)
	if d.bad || flags >= flagsEnd || n >= len(f.contexts) {
		d.fail()
		return
	}
	c := &f.contexts[n]
	r := &f.request
	*r = Request{
		Kind: kindOf(flags), Again: flags&flagAgain != 0, Sent: flags&flagSent != 0, Allowed: flags&flagAllowed != 0,
		Address: c.address, Policy: c.policy, Process: f.process,
	}
	r.Place = f.place + uint64(d.varint())
	end := f.last + time.Duration(d.varint())
	offset := f.offset + d.varint()
	duration, waited := time.Duration(d.number(most)), time.Duration(d.number(most))
	r.Delay = time.Duration(d.number(most))
	r.DelayReason, r.Reason, r.Method = politeness.Reason(d.octet()), politeness.Reason(d.octet()), Method(d.octet())
	if end < -most || end > most || offset < -most/1000 || offset > most/1000 {
		d.fail()
		return
	}
	f.last, f.offset = end, offset
	r.End = f.process.Began.Add(end + time.Duration(offset)*time.Microsecond)
	r.Start = r.End.Add(-duration)
	r.Decided = r.Start.Add(-waited)
	r.ends, r.starts = f.process.instant(r.End, end), f.process.instant(r.Start, end-duration)
	f.decodeAnswer(d, flags, c.origin)
}

func (f *fileDecoder) decodeAnswer(d *decoder, flags uint64, origin weburl.Origin) {
	r := &f.request
	if flags&flagFailed != 0 {
		r.Failure = fetch.Kind(d.octet())
	} else {
		r.Status = d.number(999)
	}
	r.Bytes = d.uvarint()
	if flags&flagRetryAfter != 0 {
		r.RetryAfter = time.Duration(d.number(most))
	}
	if flags&flagFor != 0 {
		var err error
		if r.For, err = weburl.ParseOrigin(d.text()); err != nil {
			d.fail()
		}
	}
	if flags&flagLine != 0 {
		r.Line = d.number(math.MaxInt32)
	}
	target := d.text()
	if len(target) > 2*weburl.MaxLength || len(target) == 0 || target[0] != '/' {
		d.fail()
		return
	}
	r.URL = origin.URL(target)
	f.ready = true
}

func (f *fileDecoder) decodeOpen(d *decoder) {
	flags := d.uvarint()
	r := &f.request
	*r = Request{Kind: kindOf(flags), Sent: true, Again: flags&flagAgain != 0, Allowed: flags&flagAllowed != 0, Process: f.process}
	r.Place = d.uvarint()
	r.Start = time.Unix(0, d.varint()).UTC()
	r.Decided = r.Start
	r.Delay = time.Duration(d.varint())
	address, ok := netip.AddrFromSlice([]byte(d.text()))
	r.Address = address
	if n := d.number(uint64(len(f.policies))); n > 0 {
		r.Policy = f.policies[n-1]
	}
	r.Line = d.number(math.MaxInt32)
	u, err := weburl.Parse(d.text())
	if d.bad || err != nil || !ok || flags >= flagsEnd || r.Delay > most || r.Delay < -most {
		d.fail()
		return
	}
	r.URL = u
	r.starts = Instant{Wall: r.Start}
	r.ends = f.process.instant(f.process.Began, 0)
	f.ready = true
}

func kindOf(flags uint64) Kind {
	if flags&flagRobots != 0 {
		return Robots
	}
	return Page
}
