package politeness

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// ErrState is wrapped by the errors of [DecodeState].
var ErrState = errors.New("politeness: not a stored state")

// MaxStateBytes is the largest number of bytes that [State.AppendBinary] appends.
const MaxStateBytes = 255

// stateVersion is the first byte of an encoded State. DecodeState reads versions 1 to 3 as well.
const stateVersion = 4

// The bits of the second byte say which parts follow, in this order. Numbers are varints, times are
// Unix seconds and nanoseconds, durations nanoseconds.
const (
	hasEnd      = 1 << iota // LastEnd
	hasHolds                // Holds: their number, then Until, Length, Reason, length of Header, Header of each
	hasDemands              // Demands
	hasResponse             // LastResponse
	hasSince                // FailingSince
	hasHealth               // Backoff, Failures, Calm: a byte each; Cause, since version 3
	hasSetDelay             // SetDelay
	hasPolicy               // Policy: Quota, Window in seconds; since version 4
)

// Limits of stored values. Larger values cannot be meant.
const (
	maxSeconds = 1 << 40 // of a time, either way from 1970
	maxLine    = 1<<21 - 1
	maxHolds   = 3
	maxWindow  = math.MaxInt64 / uint64(time.Second) // seconds of a Policy
)

// AppendBinary appends the state to b in the form that [DecodeState] reads: two bytes for a host
// without a request, about 18 for one that responds, MaxStateBytes at most. The error is always
// nil.
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
	if part(hasHolds, len(s.Holds) > 0) {
		b = appendHolds(b, s.Holds)
	}
	if part(hasDemands, s.Demands.Delay > 0 || len(s.Demands.Rates)+len(s.Demands.Visits) > 0) {
		b = appendDemands(b, s.Demands.bounded())
	}
	if part(hasResponse, s.LastResponse > 0) {
		b = appendDuration(b, s.LastResponse)
	}
	if part(hasSince, !s.FailingSince.IsZero()) {
		b = appendTime(b, s.FailingSince)
	}
	if part(hasHealth, s.Backoff|s.Failures|s.Calm > 0 || s.Cause > 0) {
		b = binary.AppendUvarint(append(b, s.Backoff, s.Failures, s.Calm), uint64(s.Cause))
	}
	if part(hasSetDelay, s.SetDelay > 0) {
		b = appendDuration(b, s.SetDelay)
	}
	if part(hasPolicy, s.Policy.Window >= time.Second) {
		b = binary.AppendUvarint(b, uint64(s.Policy.Quota))
		b = binary.AppendUvarint(b, uint64(s.Policy.Window/time.Second))
	}
	return b, nil
}

func appendHolds(b []byte, list []Hold) []byte {
	list = list[:min(len(list), maxHolds)]
	b = append(b, byte(len(list)))
	room := MaxHeader // for all headers together
	for _, x := range list {
		b = appendDuration(appendTime(b, x.Until), x.Length)
		header := x.Header[:min(len(x.Header), room)]
		room -= len(header)
		b = append(b, byte(x.Reason), byte(len(header)))
		b = append(b, header...)
	}
	return b
}

// appendDemands writes all counts in one byte: a bit for Rate, three bits each for Rates and
// Visits.
func appendDemands(b []byte, a Demands) []byte {
	counts := byte(len(a.Rates)<<1 | len(a.Visits)<<4)
	if a.Rate {
		counts |= 1
	}
	b = appendLine(appendDuration(append(b, counts), a.Delay), a.Line)
	for _, r := range a.Rates {
		b = appendLine(appendDuration(appendWindow(b, r.Window), r.Delay), r.Line)
	}
	for _, v := range a.Visits {
		b = appendLine(appendWindow(b, v.Window), v.Line)
	}
	return b
}

func appendWindow(b []byte, w Window) []byte {
	w = w.valid()
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(w.From)), uint64(w.To))
}

func appendLine(b []byte, l Line) []byte {
	return binary.AppendUvarint(append(b, l.Origin), uint64(min(l.Number, maxLine)))
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, max(-maxSeconds, min(t.Unix(), maxSeconds)))
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

func appendDuration(b []byte, d time.Duration) []byte {
	return binary.AppendUvarint(b, uint64(max(d, 0)))
}
