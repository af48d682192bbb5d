package politeness

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestParseRateLimit(t *testing.T) {
	const year = 365 * 24 * time.Hour
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	unix := func(after time.Duration) string { return fmt.Sprint(end.Add(after).Unix()) }
	millis := fmt.Sprint(end.Add(90 * time.Second).UnixMilli())
	tests := []struct {
		name   string
		fields []string // name, value, name, value
		hold   time.Duration
		header string
		delay  time.Duration // of the policy
	}{
		{"nothing", nil, 0, "", 0},
		{"some left", []string{"RateLimit", `"default";r=50;t=30`}, 0, "", 0},
		{"none left", []string{"RateLimit", `"default";r=0;t=30`}, 30 * time.Second, `"default";r=0;t=30`, 0},
		{"one of two", []string{"RateLimit", `"a";r=9;t=99, "b";r=0;t=7`}, 7 * time.Second,
			`"a";r=9;t=99, "b";r=0;t=7`, 0},
		{"two lines", []string{"RateLimit", `"a";r=0;t=5`, "RateLimit", `"b";r=0;t=7`}, 7 * time.Second,
			`"a";r=0;t=5, "b";r=0;t=7`, 0},
		{"no time", []string{"RateLimit", `"a";r=0`}, 0, "", 0},
		{"the window of its policy", []string{"RateLimit", `"day";r=0`,
			"RateLimit-Policy", `"burst";q=10;w=1, "day";q=1000;w=86400`}, 24 * time.Hour, `"day";r=0`,
			86400 * time.Millisecond},
		{"policy", []string{"RateLimit-Policy", `"default";q=100;w=60`}, 0, "", 600 * time.Millisecond},
		{"rounded up", []string{"RateLimit-Policy", `"default";q=3;w=1`}, 0, "", 333_333_334},
		{"partition", []string{"RateLimit-Policy", `"peruser";q=10;w=60;pk=:cHsdsRa894==:`}, 0, "", 6 * time.Second},
		{"other units", []string{"RateLimit-Policy",
			`"bytes";q=1;qu="content-bytes";w=60, "at once";q=1;qu="concurrent-requests";w=60, "r";q=30;qu="requests";w=60`},
			0, "", 2 * time.Second},
		{"no window", []string{"RateLimit-Policy", `"default";q=1`}, 0, "", 0},
		{"window 0", []string{"RateLimit-Policy", `"default";q=1;w=0`}, 0, "", 0},
		{"quota 0", []string{"RateLimit-Policy", `"default";q=0;w=60`}, 0, "", time.Minute},
		{"negative",
			[]string{"RateLimit-Policy", `"a";q=-5;w=60, "b";q=5;w=-60`, "RateLimit", `"a";r=-1;t=9`}, 0, "", 0},
		{"absurd", []string{"RateLimit", `"a";r=0;t=999999999999999`, "RateLimit-Policy", `"a";q=1;w=999999999999999`},
			math.MaxInt64, `"a";r=0;t=999999999999999`, math.MaxInt64},
		{"token for a name", []string{"RateLimit", `default;r=0;t=3`, "RateLimit-Policy", `default;q=1;w=2`},
			3 * time.Second,
			`default;r=0;t=3`, 2 * time.Second},
		{"decimal", []string{"RateLimit", `"a";r=0;t=1.5`}, 0, "", 0},
		{"inner list", []string{"RateLimit", `("a");r=0;t=1`, "RateLimit-Policy", `("a");q=1;w=1`}, 0, "", 0},
		{"broken", []string{"RateLimit", `"a";r=0;t=`, "RateLimit-Policy", `"a;q=1;w=1`}, 0, "", 0},
		{"too long", []string{"RateLimit", strings.Repeat(`"a";r=0;t=9, `, 100) + `"a";r=0;t=9`}, 0, "", 0},

		{"draft 07", []string{"RateLimit", "limit=100, remaining=0, reset=5", "RateLimit-Policy", "100;w=300"},
			5 * time.Second, "limit=100, remaining=0, reset=5", 3 * time.Second},
		{"draft 07, some left", []string{"RateLimit", "limit=100, remaining=1, reset=5"}, 0, "", 0},
		{"draft 07, halves", []string{"RateLimit", "limit=100, remaining=0"}, 0, "", 0},
		{"draft 06",
			[]string{"RateLimit-Limit", "10, 10;w=50, 1000;w=3600", "RateLimit-Remaining", "0",
				"RateLimit-Reset", "50"},
			50 * time.Second, "50", 5 * time.Second},
		{"draft 06, some left", []string{"RateLimit-Remaining", "3", "RateLimit-Reset", "50"}, 0, "", 0},
		{"draft 06, no reset", []string{"RateLimit-Remaining", "0"}, 0, "", 0},
		{"two lines of each", []string{"RateLimit-Remaining", "3", "RateLimit-Remaining", "0", "RateLimit-Reset", "x",
			"RateLimit-Reset", "8"}, 8 * time.Second, "8", 0},
		{"with X", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "12.2"}, 13 * time.Second, "12.2", 0},
		{"a time", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix(time.Minute)}, 61 * time.Second,
			unix(time.Minute), 0},
		{"a time without X", []string{"RateLimit-Remaining", "0", "RateLimit-Reset", unix(time.Hour)},
			time.Hour + time.Second, unix(time.Hour), 0},
		{"a time in milliseconds", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", millis},
			90 * time.Second, millis, 0},
		{"a time that is over",
			[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix(-time.Hour)}, 0, "", 0},
		{"seconds of 30 years", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "946080000"}, 30 * year,
			"946080000", 0},
		{"more than any clock has",
			[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strings.Repeat("9", 30)},
			math.MaxInt64, strings.Repeat("9", 30), 0},
	}
	for _, tt := range tests {
		h := make(http.Header)
		for i := 0; i < len(tt.fields); i += 2 {
			h.Add(tt.fields[i], tt.fields[i+1])
		}
		r := ParseRateLimit(h, end)
		assert.True(t, r.Hold == tt.hold && r.Header == clipped(tt.header) && r.Policy.Delay() == tt.delay,
			"%s: hold %v (%q), delay %v (%v), want %v (%q), %v", tt.name, r.Hold, r.Header, r.Policy.Delay(), r.Policy,
			tt.hold, tt.header, tt.delay)
	}
}

// A quota that is used up holds the host, a policy slows it down and never speeds it up, and both
// are kept.
func TestRateLimitOfHost(t *testing.T) {
	o := DefaultOptions()
	h := NewHost(&o, State{}, at(0))
	left := Result{RateLimit: RateLimit{Policy: Policy{Quota: 10, Window: time.Minute}}}
	h.Ended(at(0), left)
	wantReady(t, h, 6*time.Second, ReasonRatePolicy)
	if got := h.Explain(at(time.Second)).String(); !strings.HasSuffix(got,
		`: its RateLimit-Policy header ("q=10;w=60"); 6s between requests`) {
		t.Error(got)
	}
	used := left
	used.RateLimit.Hold, used.RateLimit.Header = 40*time.Second, `"a";r=0;t=40`
	h.Ended(at(10*time.Second), used)
	wantReady(t, h, 50*time.Second, ReasonRateLimit)
	assert.Equal(t, h.Explain(at(11*time.Second)).Source.String(), `"\"a\";r=0;t=40"`, "source")
	b := must.Get(h.State(at(11 * time.Second)).AppendBinary(nil))(t)
	s := must.Get(DecodeState(b))(t)
	h = NewHost(&o, s, at(12*time.Second))
	wantReady(t, h, 50*time.Second, ReasonRateLimit)
	h.Ended(at(51*time.Second), Result{Signal: SignalUnreachable}) // no response, so the policy stays
	assert.Equal(t, h.Delay(at(51*time.Second)), 12*time.Second, "after a failure between requests")
	h.Ended(at(2*time.Minute), Result{})
	wantReady(t, h, 2*time.Minute+time.Second, ReasonDelay)
	fast := Result{RateLimit: RateLimit{Policy: Policy{Quota: 1000, Window: time.Second}}}
	h.Ended(at(3*time.Minute), fast)
	wantReady(t, h, 3*time.Minute+time.Second, ReasonDelay)
}

// A response that names a time needs no backoff. Times beyond a week park the host.
func TestRateLimitInsteadOfBackoff(t *testing.T) {
	o := DefaultOptions()
	h := NewHost(&o, State{}, at(0))
	h.Ended(at(0), Result{Signal: SignalThrottled, RateLimit: RateLimit{Hold: 10 * time.Second}})
	wantReady(t, h, 10*time.Second, ReasonRateLimit)
	for _, r := range []RateLimit{{Hold: math.MaxInt64}, {Policy: Policy{1, 8 * 24 * time.Hour}}} {
		h = NewHost(&o, State{}, at(0))
		h.Ended(at(0), Result{RateLimit: r})
		e := h.Explain(at(0))
		assert.True(t, e.Parked, "%+v does not park: %v", r, e)
	}
}

func FuzzParseRateLimit(f *testing.F) {
	f.Add(`"default";r=0;t=30`, `"burst";q=100;w=60, "day";q=1;w=86400`, "0", "30")
	f.Add("limit=100, remaining=0, reset=5", "100;w=60", "0", "1763900000")
	f.Fuzz(func(t *testing.T, quota, policy, remaining, reset string) {
		r := ParseRateLimit(http.Header{"Ratelimit": {quota}, "Ratelimit-Policy": {policy},
			"Ratelimit-Remaining": {remaining}, "Ratelimit-Reset": {reset}}, at(0))
		must.True(t, r.Hold >= 0 && r.Policy.Delay() >= 0 && len(r.Header) <= MaxHeader, "%+v", r)
		o := DefaultOptions()
		h := NewHost(&o, State{}, at(0))
		h.Ended(at(0), Result{RateLimit: r})
		b, _ := h.State(at(0)).AppendBinary(nil)
		if s, err := DecodeState(b); err != nil || len(b) > MaxStateBytes || s.Policy != h.policy {
			t.Fatalf("%+v comes back as %+v (%v)", r, s, err)
		}
	})
}
