package politeness

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"
	"time"
)

func fullState() State {
	day := time.Date(2026, 11, 20, 13, 14, 15, 123456789, time.UTC)
	return State{
		LastEnd: day, Until: day.Add(time.Hour), Length: 2 * time.Hour, Reason: ReasonBackoff,
		CrawlDelay: 10 * time.Second, LastResponse: 250 * time.Millisecond, TroubleSince: day.Add(-time.Hour),
		Backoff: 3, Failures: 2, Calm: 1,
	}
}

func TestStateGolden(t *testing.T) {
	tests := []struct {
		name  string
		state State
		want  string
	}{
		{"never asked", State{}, "0100"},
		{"answers", State{LastEnd: fullState().LastEnd, LastResponse: time.Millisecond}, "0109ce9e82b00d959aef3ac0843d"},
		{"everything", fullState(), "013fce9e82b00d959aef3aeed682b00d959aef3a8080c58bc6d10106" + "80c8afa02580e59a77aee681b00d959aef3a030201"},
	}
	for _, tt := range tests {
		b, err := tt.state.AppendBinary([]byte("x"))
		if err != nil || hex.EncodeToString(b[1:]) != tt.want {
			t.Errorf("%s: %x (%v), want %s", tt.name, b[1:], err, tt.want)
		}
		back, err := DecodeState(b[1:])
		if err != nil || back != tt.state {
			t.Errorf("%s: came back as %+v (%v)", tt.name, back, err)
		}
	}
}

func TestStateStaysSmall(t *testing.T) {
	far := time.Unix(math.MaxInt64>>2, 999_999_999)
	s := State{far, far, math.MaxInt64, 255, math.MaxInt64, math.MaxInt64, far, 255, 255, 255}
	b, err := s.AppendBinary(nil)
	if err != nil || len(b) > MaxStateBytes {
		t.Fatalf("%d bytes (%v)", len(b), err)
	}
}

func TestDecodeStateRefuses(t *testing.T) {
	good, _ := fullState().AppendBinary(nil)
	for n := 1; n < len(good); n++ {
		if s, err := DecodeState(good[:n]); !errors.Is(err, ErrState) || s != (State{}) {
			t.Errorf("the first %d bytes are taken for %+v (%v)", n, s, err)
		}
	}
	for _, bad := range [][]byte{
		append(bytes.Clone(good), 0),
		{2, 0},
		{1, 0x40},
		{1, hasEnd, 0, 0x80, 0x94, 0xeb, 0xdc, 0x03},                                         // a second of nanoseconds
		{1, hasCrawlDelay, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},       // negative
		{1, hasCrawlDelay, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, // too long
	} {
		if s, err := DecodeState(bad); !errors.Is(err, ErrState) {
			t.Errorf("%x is taken for %+v (%v)", bad, s, err)
		}
	}
	if s, err := DecodeState(nil); err != nil || s != (State{}) {
		t.Errorf("nothing is taken for %+v (%v)", s, err)
	}
}

func FuzzDecodeState(f *testing.F) {
	good, _ := fullState().AppendBinary(nil)
	f.Add(good)
	f.Add([]byte{1, 0})
	f.Add([]byte{1, 0x3f, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeState(b)
		if err != nil {
			return
		}
		o := DefaultOptions()
		NewHost(&o, s, at(0)).Explain() // whatever was stored, it can be used
		again, _ := s.AppendBinary(nil)
		back, err := DecodeState(again)
		if err != nil || back != s {
			t.Fatalf("%x is %+v, which comes back as %+v (%v)", b, s, back, err)
		}
	})
}
