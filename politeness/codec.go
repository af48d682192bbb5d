package politeness

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// stateVersion is the first byte of an encoded State.
const stateVersion = 1

const stateSize = 1 + 3*8 + 3*8 + 4

// ErrState says that bytes are not an encoded [State].
var ErrState = errors.New("not a politeness state of a version that can be read")

// Append appends the encoded state to b: a version byte; LastEnd, Until and TroubleSince in Unix
// milliseconds, rounded up, 0 for none; Length, CrawlDelay and LastResponse in nanoseconds; Reason,
// Backoff, Failures and Calm. All numbers are big-endian.
func (s State) Append(b []byte) []byte {
	b = append(b, stateVersion)
	for _, t := range [...]time.Time{s.LastEnd, s.Until, s.TroubleSince} {
		b = binary.BigEndian.AppendUint64(b, uint64(milliseconds(t)))
	}
	for _, d := range [...]time.Duration{s.Length, s.CrawlDelay, s.LastResponse} {
		b = binary.BigEndian.AppendUint64(b, uint64(d))
	}
	return append(b, byte(s.Reason), s.Backoff, s.Failures, s.Calm)
}

// DecodeState is the inverse of [State.Append]. No bytes at all are the zero State, that of a host
// never asked.
func DecodeState(b []byte) (State, error) {
	if len(b) == 0 {
		return State{}, nil
	}
	if len(b) != stateSize || b[0] != stateVersion {
		return State{}, ErrState
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[1+8*i:])) }
	tail := b[stateSize-4:]
	return State{
		LastEnd: fromMilliseconds(number(0)), Until: fromMilliseconds(number(1)), TroubleSince: fromMilliseconds(number(2)),
		Length: time.Duration(number(3)), CrawlDelay: time.Duration(number(4)), LastResponse: time.Duration(number(5)),
		Reason: Reason(tail[0]), Backoff: tail[1], Failures: tail[2], Calm: tail[3],
	}, nil
}

// milliseconds rounds up: a wait that was stored may not come back shorter.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 && ms != math.MaxInt64 {
		ms++
	}
	return ms
}

func fromMilliseconds(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
