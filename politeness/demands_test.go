package politeness

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// clockTime is a time of a day of the wall clock.
func clockTime(hour, minute int) time.Time {
	return time.Date(2026, 11, 20, hour, minute, 0, 0, time.UTC)
}

func hours(from, to int) Window {
	return Window{uint16(from/100*60 + from%100), uint16(to/100*60 + to%100)}
}

func TestVisitTime(t *testing.T) {
	visits := func(windows ...Window) (a Demands) {
		for i, w := range windows {
			a.Visits = append(a.Visits, Visit{w, Line{Number: uint32(i + 1)}})
		}
		return a
	}
	tests := []struct {
		name    string
		demands Demands
		now     time.Time // at which a request ended
		want    time.Time
		line    uint32
	}{
		{"within", visits(hours(600, 845)), clockTime(7, 0), clockTime(7, 0).Add(time.Second), 0},
		{"before", visits(hours(600, 845)), clockTime(3, 0), clockTime(6, 0), 1},
		{"after", visits(hours(600, 845)), clockTime(9, 0), clockTime(30, 0), 1},
		{"the first minute", visits(hours(600, 845)), clockTime(6, 0), clockTime(6, 0).Add(time.Second), 0},
		{"the minute after the last", visits(hours(600, 845)), clockTime(8, 45), clockTime(30, 0), 1},
		{"the delay ends outside", visits(hours(600, 845)), clockTime(8, 45).Add(-time.Millisecond),
			clockTime(30, 0), 1},
		{"over midnight, before", visits(hours(2200, 400)), clockTime(23, 0), clockTime(23, 0).Add(time.Second), 0},
		{"over midnight, after", visits(hours(2200, 400)), clockTime(3, 0), clockTime(3, 0).Add(time.Second), 0},
		{"over midnight, outside", visits(hours(2200, 400)), clockTime(12, 0), clockTime(22, 0), 1},
		{"the next of two", visits(hours(600, 700), hours(1200, 1300)), clockTime(8, 0), clockTime(12, 0), 2},
		{"the whole day", visits(hours(0, 2400)), clockTime(23, 59), clockTime(23, 59).Add(time.Second), 0},
		{"from and to alike", visits(hours(600, 600)), clockTime(5, 0), clockTime(5, 0).Add(time.Second), 0},
		{"one minute a day", visits(hours(0, 1)), clockTime(0, 1), clockTime(24, 0), 1},
	}
	for _, tt := range tests {
		h := newHost(nil)
		h.SetDemands(tt.demands)
		h.Ended(tt.now, ok(0))
		got := h.Ready(tt.now)
		assert.True(t, got.Equal(tt.want), "%s: ready at %v, want %v", tt.name, got, tt.want)
		e := h.Explain(tt.now)
		assert.True(t, e.Source.Line.Number == tt.line && (e.Reason == ReasonVisitTime) == (tt.line > 0),
			"%s: because of %v", tt.name, e)
		assert.True(t, tt.line <= 0 || (!e.Since.After(tt.now) || !e.Since.After(e.Until)) &&
			e.Until.Sub(e.Since) < day, "%s: closed from %v to %v", tt.name, e.Since, e.Until)
	}
}

// A host without a request has to wait for its hours too.
func TestVisitTimeBeforeTheFirstRequest(t *testing.T) {
	h := newHost(nil)
	h.SetDemands(Demands{Visits: []Visit{{hours(600, 845), Line{}}}})
	got := h.Ready(clockTime(7, 0))
	assert.True(t, got.IsZero(), "within its hours: %v", got)
	if got := h.Ready(clockTime(9, 0)); !got.Equal(clockTime(30, 0)) {
		t.Errorf("outside of its hours: %v", got)
	}
}

func TestRequestRateAtSomeHours(t *testing.T) {
	rate := func(w Window, d time.Duration) Rate { return Rate{w, d, Line{Number: 7}} }
	tests := []struct {
		name  string
		rates []Rate
		now   time.Time
		want  time.Time
		delay time.Duration
	}{
		{"within", []Rate{rate(hours(600, 845), time.Minute)}, clockTime(7, 0), clockTime(7, 1), time.Minute},
		{"outside", []Rate{rate(hours(600, 845), time.Minute)}, clockTime(9, 0), clockTime(9, 0).Add(time.Second),
			time.Second},
		{"the hours end first", []Rate{rate(hours(600, 845), 24*time.Hour)}, clockTime(8, 0), clockTime(8, 45),
			24 * time.Hour},
		{"the delay reaches into the hours", []Rate{rate(hours(600, 845), time.Minute)},
			clockTime(6, 0).Add(-time.Second / 2), clockTime(6, 1).Add(-time.Second / 2), time.Second},
		{"one after the other", []Rate{rate(hours(600, 700), day), rate(hours(700, 800), day)}, clockTime(6, 30),
			clockTime(8, 0), day},
		{"all day", []Rate{rate(hours(0, 0), 3*day)}, clockTime(6, 30), clockTime(6, 30).Add(3 * day), 3 * day},
	}
	for _, tt := range tests {
		h := newHost(nil)
		h.SetDemands(Demands{Rates: tt.rates})
		h.Ended(tt.now, ok(0))
		got := h.Ready(tt.now)
		assert.True(t, got.Equal(tt.want), "%s: ready at %v, want %v", tt.name, got, tt.want)
		e := h.Explain(tt.now)
		assert.Equal(t, e.Delay, tt.delay, tt.name, "in force")
		assert.True(t, tt.delay <= time.Second || e.DelayReason == ReasonRequestRate && e.DelaySource.Line.Number == 7,
			"%s: %+v", tt.name, e)
	}
}

// A Request-rate at some hours allows one request in flight at all hours. Hours also count during a
// hold.
func TestHoursWithOtherSigns(t *testing.T) {
	h := newHost(func(o *Options) { o.Delay, o.PerHost = 0, 8 })
	h.SetDemands(Demands{Rates: []Rate{{hours(600, 845), time.Minute, Line{}}}})
	assert.Equal(t, h.InFlightLimit(), 1, "in flight")
	h = newHost(nil)
	h.SetDemands(Demands{Visits: []Visit{{hours(600, 845), Line{}}}})
	h.Ended(clockTime(7, 0), Result{Signal: SignalThrottled, RetryAfter: 2 * time.Hour})
	got := h.Ready(clockTime(7, 0))
	assert.True(t, got.Equal(clockTime(30, 0)), "a Retry-After that ends outside of the hours: ready at %v", got)
}

// Setting the clock changes when the hours are, never the delay.
func TestHoursUseTheWallClock(t *testing.T) {
	midnight := time.Now().Add(-time.Hour) // with a monotonic reading
	c := clock{}
	wallOf := func() time.Time { return c.now().Round(0).UTC() }
	h := NewHost(&Options{Delay: time.Hour, PerHost: 1}, State{}, midnight)
	opens := wallOf().Add(3 * time.Hour)
	from := uint16(opens.Hour()*60 + opens.Minute())
	h.SetDemands(Demands{Visits: []Visit{{Window{from, (from + 60) % minutes}, Line{}}}})
	h.Ended(c.now(), ok(0))
	before := h.Ready(c.now()).Sub(c.now())
	must.True(t, before >= 2*time.Hour && before <= 3*time.Hour, "%v left, want about 3h", before)
	c.wall = 2*time.Hour + 30*time.Minute // forward, to half an hour before the hours begin
	assert.AtLeast(t, h.Ready(c.now()).Sub(c.now()), time.Hour, "set forward left, and the delay is an hour")
	c.wall = -time.Hour
	assert.Equal(t, h.Ready(c.now()).Sub(c.now()), before+time.Hour, "set back by an hour left, before", before)
}

func TestMerge(t *testing.T) {
	s := time.Second
	visit := func(from, to int) Visit { return Visit{hours(from, to), Line{}} }
	tests := []struct {
		name       string
		a, b, want Demands
	}{
		{"nothing", Demands{}, Demands{}, Demands{}},
		{"the longer delay", Demands{Delay: s, Line: Line{0, 1}}, Demands{Delay: 2 * s, Rate: true, Line: Line{1, 2}},
			Demands{Delay: 2 * s, Rate: true, Line: Line{1, 2}}},
		{"hours of one", Demands{}, Demands{Visits: []Visit{visit(600, 700)}},
			Demands{Visits: []Visit{visit(600, 700)}}},
		{"common hours", Demands{Visits: []Visit{visit(600, 1200)}}, Demands{Visits: []Visit{visit(1000, 1400)}},
			Demands{Visits: []Visit{visit(1000, 1200)}}},
		{"over midnight", Demands{Visits: []Visit{visit(2200, 400)}}, Demands{Visits: []Visit{visit(300, 2300)}},
			Demands{Visits: []Visit{visit(2200, 2300), visit(300, 400)}}},
		{"no common hours", Demands{Visits: []Visit{visit(600, 700)}}, Demands{Visits: []Visit{visit(800, 900)}},
			Demands{Visits: []Visit{visit(600, 700), visit(800, 900)}}},
		{"rates of both", Demands{Rates: []Rate{{hours(0, 100), s, Line{}}}},
			Demands{Rates: []Rate{{hours(0, 100), 2 * s, Line{}}}},
			Demands{Rates: []Rate{{hours(0, 100), s, Line{}}, {hours(0, 100), 2 * s, Line{}}}}},
		{"too many rates: the slowest is kept as it is, others hold always",
			Demands{Rates: []Rate{{hours(0, 100), 3 * s, Line{}}, {hours(1, 100), s, Line{0, 9}}}},
			Demands{Rates: []Rate{{hours(2, 100), 2 * s, Line{}}}},
			Demands{Delay: s, Rate: true, Line: Line{0, 9}, Rates: []Rate{{hours(0, 100), 3 * s, Line{}},
				{hours(2, 100), 2 * s, Line{}}}}},
	}
	for _, tt := range tests {
		assert.Deep(t, tt.a.Merge(tt.b), tt.want, tt.name)
	}
}

// TestHoursAreKept: for any hours and rates, Ready returns an instant that respects them and the
// delay, and it ends.
func TestHoursAreKept(t *testing.T) {
	window := rapid.Custom(func(rt *rapid.T) Window {
		return Window{rapid.Uint16Range(0, 1440).Draw(rt, "from"), rapid.Uint16Range(0, 1440).Draw(rt, "to")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		var a Demands
		for _, w := range rapid.SliceOfN(window, 0, MaxVisits).Draw(rt, "visits") {
			a.Visits = append(a.Visits, Visit{w, Line{}})
		}
		for _, w := range rapid.SliceOfN(window, 0, MaxRates).Draw(rt, "rates") {
			d := time.Duration(rapid.Int64Range(0, int64(100*24*time.Hour)).Draw(rt, "rate"))
			a.Rates = append(a.Rates, Rate{w, d, Line{}})
		}
		h := newHost(nil)
		h.SetDemands(a)
		end := clockTime(0, 0).Add(time.Duration(rapid.Int64Range(0, int64(day)).Draw(rt, "end")))
		h.Ended(end, ok(0))
		ready := h.Ready(end)
		must.True(rt, !ready.Before(end.Add(time.Second)), "ready at %v, before the delay is over", ready)
		for _, r := range a.Rates {
			must.True(rt, !(span{Window: r.Window}).open(ready) || !ready.Before(end.Add(r.Delay)),
				"ready at %v, the last request ended at %v, and %v holds then", ready, end, r)
		}
		inside := len(a.Visits) == 0
		for _, v := range a.Visits {
			inside = inside || (span{Window: v.Window}).open(ready)
		}
		must.True(rt, inside, "ready at %v, outside of %v", ready, a.Visits)
	})
}
