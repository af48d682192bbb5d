package politeness

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// DecodeState reads what [State.AppendBinary] of this or an earlier version wrote. An error wraps
// [ErrState]. No bytes at all are the state of a host without a request.
func DecodeState(b []byte) (State, error) {
	if len(b) == 0 {
		return State{}, nil
	}
	d := decoder{rest: b[1:]}
	var s State
	switch b[0] {
	case 1:
		s = d.state1()
	case 2, stateVersion:
		s = d.state(b[0])
	default:
		return State{}, fmt.Errorf("%w: version %d, this program knows 1 to %d", ErrState, b[0], stateVersion)
	}
	if d.bad || len(d.rest) > 0 {
		return State{}, fmt.Errorf("%w: %x", ErrState, b)
	}
	return s, nil
}

func (d *decoder) state(version byte) (s State) {
	has := d.byte()
	d.refuse(has >= hasEnds)
	if has&hasEnd != 0 {
		s.LastEnd = d.time()
	}
	if has&hasHolds != 0 {
		s.Holds = d.holds()
	}
	if has&hasDemands != 0 {
		s.Asked = d.demands()
	}
	if has&hasResponse != 0 {
		s.LastResponse = d.duration()
	}
	if has&hasSince != 0 {
		s.TroubleSince = d.time()
	}
	if has&hasHealth != 0 {
		s.Backoff, s.Failures, s.Calm = d.byte(), d.byte(), d.byte()
		if version > 2 {
			cause := d.uvarint()
			d.refuse(cause > math.MaxUint16)
			s.Cause = uint16(cause)
		}
	}
	if has&hasSetDelay != 0 {
		s.SetDelay = d.duration()
	}
	return s
}

// state1 reads version 1, which had a single hold, no lines and no hours.
func (d *decoder) state1() (s State) {
	has := d.byte()
	d.refuse(has >= hasSetDelay)
	if has&hasEnd != 0 {
		s.LastEnd = d.time()
	}
	if has&hasHolds != 0 {
		s.Holds = []Hold{{Until: d.time(), Length: d.duration(), Reason: Reason(d.byte())}}
	}
	if has&hasDemands != 0 {
		s.Asked.Delay = d.duration()
	}
	if has&hasResponse != 0 {
		s.LastResponse = d.duration()
	}
	if has&hasSince != 0 {
		s.TroubleSince = d.time()
	}
	if has&hasHealth != 0 {
		s.Backoff, s.Failures, s.Calm = d.byte(), d.byte(), d.byte()
	}
	return s
}

func (d *decoder) holds() (list []Hold) {
	n, headers := d.byte(), 0
	d.refuse(n == 0 || n > maxHolds)
	for ; n > 0 && !d.bad; n-- {
		x := Hold{Until: d.time(), Length: d.duration(), Reason: Reason(d.byte())}
		x.Header = d.text()
		headers += len(x.Header)
		d.refuse(headers > MaxHeader)
		for _, other := range list {
			d.refuse(other.Reason.kind() == x.Reason.kind())
		}
		list = append(list, x)
	}
	return list
}

func (d *decoder) demands() (a Asked) {
	counts := d.byte()
	rates, visits := int(counts>>1&7), int(counts>>4&7)
	d.refuse(rates > MaxRates || visits > MaxVisits || counts > 0x7f)
	a.Rate, a.Delay, a.Line = counts&1 != 0, d.duration(), d.line()
	for ; rates > 0 && !d.bad; rates-- {
		a.Rates = append(a.Rates, Rate{d.window(), d.duration(), d.line()})
	}
	for ; visits > 0 && !d.bad; visits-- {
		a.Visits = append(a.Visits, Visit{d.window(), d.line()})
	}
	return a.bounded()
}

// decoder reads parts from the front of rest. After the first missing part, all others are zero.
type decoder struct {
	rest []byte
	bad  bool
}

// refuse records that the bytes read have no valid meaning.
func (d *decoder) refuse(bad bool) {
	if bad {
		d.rest, d.bad = nil, true
	}
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.bad = true
		return 0
	}
	c := d.rest[0]
	d.rest = d.rest[1:]
	return c
}

func (d *decoder) text() string {
	n := int(d.byte())
	if d.refuse(n > MaxHeader || n > len(d.rest)); d.bad {
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.rest, d.bad = nil, true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) line() Line {
	l := Line{Origin: d.byte()}
	n := d.uvarint()
	d.refuse(n > maxLine)
	l.Number = uint32(n)
	return l
}

func (d *decoder) window() Window {
	from, to := d.uvarint(), d.uvarint()
	d.refuse(from > minutes || to > minutes)
	return Window{uint16(from), uint16(to)}
}

func (d *decoder) duration() time.Duration {
	v := time.Duration(d.uvarint())
	d.refuse(v < 0)
	return max(v, 0)
}

func (d *decoder) time() time.Time {
	seconds, n := binary.Varint(d.rest)
	if n <= 0 {
		d.rest, d.bad = nil, true
		return time.Time{}
	}
	d.rest = d.rest[n:]
	nanoseconds := d.uvarint()
	if d.refuse(nanoseconds >= uint64(time.Second) || seconds > maxSeconds || seconds < -maxSeconds); d.bad {
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanoseconds)).UTC()
}
