package politeness

import (
	"fmt"
	"math"
	"time"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// DecodeState reads what [State.AppendBinary] of this or an earlier version wrote. An error wraps
// [ErrState]. No bytes at all are the state of a host without a request.
func DecodeState(b []byte) (State, error) {
	if len(b) == 0 {
		return State{}, nil
	}
	d := decoder{wire.NewDecoder(b[1:])}
	var s State
	switch b[0] {
	case 1:
		s = d.state1()
	case 2, 3, stateVersion:
		s = d.state(b[0])
	default:
		return State{}, fmt.Errorf("%w: version %d, this program knows 1 to %d", ErrState, b[0], stateVersion)
	}
	if d.End() != nil {
		return State{}, fmt.Errorf("%w: %x", ErrState, b)
	}
	return s, nil
}

func (d *decoder) state(version byte) (s State) {
	has := d.Byte()
	d.Require(version > 3 || has < hasPolicy)
	if has&hasEnd != 0 {
		s.LastEnd = d.time()
	}
	if has&hasHolds != 0 {
		s.Holds = d.holds()
	}
	if has&hasDemands != 0 {
		s.Demands = d.demands()
	}
	if has&hasResponse != 0 {
		s.LastResponse = d.duration()
	}
	if has&hasSince != 0 {
		s.FailingSince = d.time()
	}
	if has&hasHealth != 0 {
		s.Backoff, s.Failures, s.Calm = d.Byte(), d.Byte(), d.Byte()
		if version > 2 {
			s.Cause = uint16(d.UvarintMax(math.MaxUint16))
		}
	}
	if has&hasSetDelay != 0 {
		s.SetDelay = d.duration()
	}
	if has&hasPolicy != 0 {
		s.Policy.Quota = uint32(d.UvarintMax(math.MaxUint32))
		s.Policy.Window = time.Duration(d.UvarintMax(maxWindow)) * time.Second
		d.Require(s.Policy.Window > 0)
	}
	return s
}

// state1 reads version 1, which had a single hold, no lines and no hours.
func (d *decoder) state1() (s State) {
	has := d.Byte()
	d.Require(has < hasSetDelay)
	if has&hasEnd != 0 {
		s.LastEnd = d.time()
	}
	if has&hasHolds != 0 {
		s.Holds = []Hold{{Until: d.time(), Length: d.duration(), Reason: Reason(d.Byte())}}
	}
	if has&hasDemands != 0 {
		s.Demands.Delay = d.duration()
	}
	if has&hasResponse != 0 {
		s.LastResponse = d.duration()
	}
	if has&hasSince != 0 {
		s.FailingSince = d.time()
	}
	if has&hasHealth != 0 {
		s.Backoff, s.Failures, s.Calm = d.Byte(), d.Byte(), d.Byte()
	}
	return s
}

func (d *decoder) holds() (list []Hold) {
	n, headers := d.Byte(), 0
	d.Require(n > 0 && n <= maxHolds)
	for ; n > 0 && d.OK(); n-- {
		x := Hold{Until: d.time(), Length: d.duration(), Reason: Reason(d.Byte())}
		x.Header = d.text()
		headers += len(x.Header)
		d.Require(headers <= MaxHeader)
		for _, other := range list {
			d.Require(other.Reason.kind() != x.Reason.kind())
		}
		list = append(list, x)
	}
	return list
}

func (d *decoder) demands() (a Demands) {
	counts := d.Byte()
	rates, visits := int(counts>>1&7), int(counts>>4&7)
	d.Require(rates <= MaxRates && visits <= MaxVisits && counts <= 0x7f)
	a.Rate, a.Delay, a.Line = counts&1 != 0, d.duration(), d.line()
	for ; rates > 0 && d.OK(); rates-- {
		a.Rates = append(a.Rates, Rate{d.window(), d.duration(), d.line()})
	}
	for ; visits > 0 && d.OK(); visits-- {
		a.Visits = append(a.Visits, Visit{d.window(), d.line()})
	}
	return a.bounded()
}

// decoder reads the parts of a state.
type decoder struct{ wire.Decoder }

func (d *decoder) text() string {
	n := int(d.Byte())
	d.Require(n <= MaxHeader)
	return string(d.Bytes(n))
}

func (d *decoder) line() Line {
	return Line{Origin: d.Byte(), Number: uint32(d.UvarintMax(maxLine))}
}

func (d *decoder) window() Window {
	return Window{uint16(d.UvarintMax(minutes)), uint16(d.UvarintMax(minutes))}
}

func (d *decoder) duration() time.Duration { return time.Duration(d.UvarintMax(math.MaxInt64)) }

func (d *decoder) time() time.Time {
	seconds, nanoseconds := d.Varint(), d.UvarintMax(uint64(time.Second)-1)
	d.Require(seconds >= -maxSeconds && seconds <= maxSeconds)
	if !d.OK() {
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanoseconds)).UTC()
}
