package politeness

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var stored = time.Date(2026, 11, 20, 13, 14, 15, 123456789, time.UTC)

func fullState() State {
	return State{
		LastEnd: stored,
		Holds: []Hold{
			{Until: stored.Add(time.Hour), Length: 2 * time.Hour, Reason: ReasonRetryAfter, Header: "7200"},
			{Until: stored.Add(time.Minute), Length: time.Minute, Reason: ReasonBackoff},
			{Until: stored.Add(Forever), Length: Forever, Reason: ReasonPause},
		},
		Demands: Demands{
			Delay: 10 * time.Second, Line: Line{1, 300},
			Rates:  []Rate{{Window{360, 525}, 30 * time.Second, Line{0, 4}}},
			Visits: []Visit{{Window{1320, 240}, Line{0, 5}}},
		},
		LastResponse: 250 * time.Millisecond, FailingSince: stored.Add(-time.Hour),
		Cause: 1066, Backoff: 3, Failures: 2, Calm: 1, SetDelay: 5 * time.Second,
		Policy: Policy{Quota: 300, Window: 90 * time.Second},
	}
}

func TestStateGolden(t *testing.T) {
	tests := []struct {
		name  string
		state State
		want  string
	}{
		{"no request", State{}, "0400"},
		{"answers", State{LastEnd: stored, LastResponse: time.Millisecond}, "0409ce9e82b00d959aef3ac0843d"},
		{"a wall", State{LastEnd: stored, Backoff: 1, Failures: 3, Cause: 403, FailingSince: stored, Holds: []Hold{
			{Until: stored.Add(time.Minute), Length: time.Minute, Reason: ReasonWall, Header: "refusal"},
		}}, "0433ce9e82b00d959aef3a01c69f82b00d959aef3a80b09dc2df01" + "0e077265667573616c" +
			"ce9e82b00d959aef3a0103009303"},
		{"everything", fullState(), "04ffce9e82b00d959aef3a" +
			"03eed682b00d959aef3a8080c58bc6d101050437323030" + "c69f82b00d959aef3a80b09dc2df010600" +
			"d6928e8c5294cabad203ffffffffffffffff7f0a00" +
			"1280c8afa02501ac02" + "e8028d0480d88ee16f0004" + "a80af0010005" +
			"80e59a77aee681b00d959aef3a030201aa0880e497d012" + "ac025a"},
	}
	for _, tt := range tests {
		b, err := tt.state.AppendBinary([]byte("x"))
		if err != nil || hex.EncodeToString(b[1:]) != tt.want {
			t.Errorf("%s: %x (%v), want %s", tt.name, b[1:], err, tt.want)
		}
		back, err := DecodeState(b[1:])
		assert.True(t, err == nil && reflect.DeepEqual(back, tt.state), "%s: came back as %+v (%v)", tt.name, back, err)
	}
}

// Later versions read what version 3 wrote.
func TestStateOfVersion3(t *testing.T) {
	want := fullState()
	want.Policy = Policy{}
	b := must.Get(hex.DecodeString("037fce9e82b00d959aef3a" +
		"03eed682b00d959aef3a8080c58bc6d101050437323030" + "c69f82b00d959aef3a80b09dc2df010600" +
		"d6928e8c5294cabad203ffffffffffffffff7f0a00" +
		"1280c8afa02501ac02" + "e8028d0480d88ee16f0004" + "a80af0010005" +
		"80e59a77aee681b00d959aef3a030201aa0880e497d012"))(t)
	got, err := DecodeState(b)
	assert.True(t, err == nil && reflect.DeepEqual(got, want), "%+v (%v)", got, err)
}

// Later versions read what version 2 wrote.
func TestStateOfVersion2(t *testing.T) {
	want := fullState()
	want.Cause, want.Policy = 0, Policy{}
	b, err := hex.DecodeString("027fce9e82b00d959aef3a" +
		"03eed682b00d959aef3a8080c58bc6d101050437323030" + "c69f82b00d959aef3a80b09dc2df010600" +
		"d6928e8c5294cabad203ffffffffffffffff7f0a00" +
		"1280c8afa02501ac02" + "e8028d0480d88ee16f0004" + "a80af0010005" + "80e59a77aee681b00d959aef3a03020180e497d012")
	must.Do(t, err)
	if got, err := DecodeState(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v (%v)", got, err)
	}
}

// Later versions read what version 1 wrote.
func TestStateOfVersion1(t *testing.T) {
	tests := []struct {
		name, bytes string
		want        State
	}{
		{"no request", "0100", State{}},
		{"answers", "0109ce9e82b00d959aef3ac0843d", State{LastEnd: stored, LastResponse: time.Millisecond}},
		{"everything", "013fce9e82b00d959aef3aeed682b00d959aef3a8080c58bc6d10106" +
			"80c8afa02580e59a77aee681b00d959aef3a030201", State{
			LastEnd: stored, Holds: []Hold{{Until: stored.Add(time.Hour), Length: 2 * time.Hour,
				Reason: ReasonBackoff}},
			Demands: Demands{Delay: 10 * time.Second}, LastResponse: 250 * time.Millisecond,
			FailingSince: stored.Add(-time.Hour),
			Backoff:      3, Failures: 2, Calm: 1,
		}},
	}
	for _, tt := range tests {
		b := must.Get(hex.DecodeString(tt.bytes))(t)
		got, err := DecodeState(b)
		assert.True(t, err == nil && reflect.DeepEqual(got, tt.want), "%s: %+v (%v)", tt.name, got, err)
	}
}

// The largest demands of a host and its operator fit into MaxStateBytes, and no hold is lost.
func TestStateStaysSmall(t *testing.T) {
	far := time.Unix(maxSeconds, 999_999_999)
	line := Line{255, math.MaxUint32}
	s := State{
		LastEnd: far, FailingSince: far, LastResponse: math.MaxInt64, Backoff: 255, Failures: 255, Calm: 255,
		SetDelay: math.MaxInt64, Policy: Policy{Quota: math.MaxUint32, Window: math.MaxInt64},
		Demands: Demands{Delay: math.MaxInt64, Rate: true, Line: line},
	}
	for _, r := range []Reason{ReasonRetryAfter, ReasonBackoff, ReasonPause} {
		s.Holds = append(s.Holds, Hold{far, Forever, r, strings.Repeat("x", MaxHeader)})
	}
	for range MaxRates + 5 {
		s.Demands.Rates = append(s.Demands.Rates, Rate{Window{math.MaxUint16, math.MaxUint16}, math.MaxInt64, line})
		s.Demands.Visits = append(s.Demands.Visits, Visit{Window{math.MaxUint16, math.MaxUint16}, line})
	}
	b, err := s.AppendBinary(nil)
	must.True(t, err == nil && len(b) <= MaxStateBytes, "%d bytes (%v)", len(b), err)
	back, err := DecodeState(b)
	must.True(t, err == nil && len(back.Holds) == 3 && len(back.Demands.Visits) == MaxVisits, "came back as %+v (%v)",
		back, err)
}

func TestDecodeStateRefuses(t *testing.T) {
	good, _ := fullState().AppendBinary(nil)
	for n := 1; n < len(good); n++ {
		if s, err := DecodeState(good[:n]); !errors.Is(err, ErrState) || !reflect.DeepEqual(s, State{}) {
			t.Errorf("the first %d bytes are taken for %+v (%v)", n, s, err)
		}
	}
	negative := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}
	for _, bad := range [][]byte{
		append(bytes.Clone(good), 0),
		{5, 0},
		{4, hasPolicy, 1, 0}, // no window
		{1, 0x40},
		{2, 0x80},
		{3, 0x80},
		{3, hasHealth, 1, 1, 1, 0x80, 0x80, 0x04},    // a cause of more than 16 bits
		{2, hasEnd, 0, 0x80, 0x94, 0xeb, 0xdc, 0x03}, // a second of nanoseconds
		append([]byte{1, hasDemands}, negative...),
		append([]byte{2, hasResponse}, negative...),
		{2, hasHolds, 0},
		{2, hasHolds, 4},
		{2, hasHolds, 2, 0, 0, 1, byte(ReasonPause), 0, 0, 0, 1, byte(ReasonPause), 0}, // two of a kind
		{2, hasHolds, 1, 0, 0, 1, byte(ReasonRetryAfter), 3, 'a', 'b'},                 // text too short
		{2, hasDemands, 0x06, 0, 0, 0},                                                 // three Request-rates
		{2, hasDemands, 0x10, 0, 0, 0, 0xa1, 0x0b, 0, 0, 0},                            // minute 1441
	} {
		assert.Fails(DecodeState(bad))(t, ErrState, bad, "is taken for")
	}
	s, err := DecodeState(nil)
	assert.True(t, err == nil && reflect.DeepEqual(s, State{}), "nothing is taken for %+v (%v)", s, err)
}

func FuzzDecodeState(f *testing.F) {
	good, _ := fullState().AppendBinary(nil)
	f.Add(good)
	f.Add([]byte{1, 0})
	f.Add([]byte{1, 0x3f, 0xff})
	f.Add([]byte{2, 0x7f, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeState(b)
		if err != nil {
			return
		}
		o := DefaultOptions()
		h := NewHost(&o, s, at(0)) // whatever was stored, it can be used
		_ = h.Explain(at(time.Hour)).String()
		again, _ := s.AppendBinary(nil)
		back, err := DecodeState(again)
		must.True(t, len(again) <= MaxStateBytes && err == nil && reflect.DeepEqual(back, s),
			"%x is %+v, which comes back as %+v (%v)", b, s, back, err)
	})
}
