package politeness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ErrState is wrapped by the errors of [DecodeState].
var ErrState = errors.New("politeness: not a stored state")

// MaxStateBytes is the most that [State.AppendBinary] appends.
const MaxStateBytes = 96

// stateVersion is the first byte of an encoded State.
const stateVersion = 1

// The bits of the second byte: which parts follow, in this order. Numbers are varints, times are Unix
// seconds and nanoseconds, durations nanoseconds.
const (
	hasEnd        = 1 << iota // LastEnd
	hasHold                   // Until, Length, Reason
	hasCrawlDelay             // CrawlDelay
	hasResponse               // LastResponse
	hasSince                  // TroubleSince
	hasTrouble                // Backoff, Failures, Calm: a byte each
)

// AppendBinary appends the state to b as [DecodeState] reads it: two bytes for a host never asked, about
// 18 for one that answers, MaxStateBytes at most. The error is always nil.
func (s State) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = append(b, stateVersion, 0)
	part := func(bit byte, there bool) bool {
		if there {
			b[start+1] |= bit
		}
		return there
	}
	if part(hasEnd, !s.LastEnd.IsZero()) {
		b = appendTime(b, s.LastEnd)
	}
	if part(hasHold, !s.Until.IsZero()) {
		b = appendTime(b, s.Until)
		b = appendDuration(b, s.Length)
		b = append(b, byte(s.Reason))
	}
	if part(hasCrawlDelay, s.CrawlDelay > 0) {
		b = appendDuration(b, s.CrawlDelay)
	}
	if part(hasResponse, s.LastResponse > 0) {
		b = appendDuration(b, s.LastResponse)
	}
	if part(hasSince, !s.TroubleSince.IsZero()) {
		b = appendTime(b, s.TroubleSince)
	}
	if part(hasTrouble, s.Backoff|s.Failures|s.Calm > 0) {
		b = append(b, s.Backoff, s.Failures, s.Calm)
	}
	return b, nil
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

func appendDuration(b []byte, d time.Duration) []byte {
	return binary.AppendUvarint(b, uint64(max(d, 0)))
}

// DecodeState reads what [State.AppendBinary] wrote. An error wraps [ErrState]. No bytes at all are the state of a
// host that was never asked.
func DecodeState(b []byte) (State, error) {
	if len(b) == 0 {
		return State{}, nil
	}
	if b[0] != stateVersion {
		return State{}, fmt.Errorf("%w: version %d, this program knows %d", ErrState, b[0], stateVersion)
	}
	d := decoder{rest: b[1:]}
	has := d.byte()
	var s State
	if has&hasEnd != 0 {
		s.LastEnd = d.time()
	}
	if has&hasHold != 0 {
		s.Until, s.Length, s.Reason = d.time(), d.duration(), Reason(d.byte())
	}
	if has&hasCrawlDelay != 0 {
		s.CrawlDelay = d.duration()
	}
	if has&hasResponse != 0 {
		s.LastResponse = d.duration()
	}
	if has&hasSince != 0 {
		s.TroubleSince = d.time()
	}
	if has&hasTrouble != 0 {
		s.Backoff, s.Failures, s.Calm = d.byte(), d.byte(), d.byte()
	}
	if d.bad || len(d.rest) > 0 || has >= hasTrouble<<1 {
		return State{}, fmt.Errorf("%w: %x", ErrState, b)
	}
	return s, nil
}

// decoder reads parts from the front of rest. After the first that is not there all are zero.
type decoder struct {
	rest []byte
	bad  bool
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

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.rest, d.bad = nil, true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) duration() time.Duration {
	v := time.Duration(d.uvarint())
	if v < 0 {
		d.bad = true
	}
	return v
}

func (d *decoder) time() time.Time {
	seconds, n := binary.Varint(d.rest)
	if n <= 0 {
		d.rest, d.bad = nil, true
		return time.Time{}
	}
	d.rest = d.rest[n:]
	nanoseconds := d.uvarint()
	if nanoseconds >= uint64(time.Second) {
		d.bad = true
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanoseconds)).UTC()
}
