package politeness

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// epoch is the start of every test. It has a monotonic reading, like every instant of the real
// clock.
var epoch = time.Now()

// at returns the instant d after the start.
func at(d time.Duration) time.Time { return epoch.Add(d) }

func ok(d time.Duration) Result { return Result{Duration: d} }

func newHost(change func(*Options)) *Host {
	o := DefaultOptions()
	if change != nil {
		change(&o)
	}
	return NewHost(&o, State{}, at(0))
}

func wantReady(t *testing.T, h *Host, want time.Duration, reason Reason) {
	t.Helper()
	assert.Equal(t, h.Ready(epoch).Sub(epoch), want, "ready at")
	assert.Equal(t, h.Reason(epoch), reason, "because of")
}

func TestNewHostIsReady(t *testing.T) {
	h := newHost(nil)
	must.True(t, h.Ready(epoch).IsZero() && h.Reason(epoch) == ReasonNone, "ready at %v because of %v", h.Ready(epoch),
		h.Reason(epoch))
	h.SetDemands(Demands{Delay: time.Hour})
	must.True(t, h.Ready(epoch).IsZero(), "a Crawl-delay alone holds a host without a request until %v", h.Ready(epoch))
}

func TestReadyCountsFromTheEnd(t *testing.T) {
	const s = time.Second
	tests := []struct {
		end  time.Duration
		want time.Duration
	}{
		{3 * s, 8 * s},
		{8 * s, 13 * s},          // no time at all
		{20 * s, 25 * s},         // late
		{25*s + 1, 30*s + 1},     // to the nanosecond
		{60 * s, 65 * s},         // a request of half a minute
		{62 * s, 67 * s},         // a request before its time: still from the end
		{61 * s, 67 * s},         // reported out of order
		{900000 * s, 900005 * s}, // days later
	}
	h := newHost(func(o *Options) { o.Delay = 5 * s })
	for _, tt := range tests {
		h.Ended(at(tt.end), ok(s))
		wantReady(t, h, tt.want, ReasonDelay)
	}
}

// TestNeverEarly compares the limiter's floating-point answers with whole nanoseconds.
func TestNeverEarly(t *testing.T) {
	delays := []time.Duration{
		1, 2, 3, 7, 999, 1001, time.Millisecond, time.Second / 3, time.Second / 7, time.Second / 30, time.Second,
		time.Second + 1, 10 * time.Second, 59*time.Second + 999999999, 7 * time.Hour, 7*time.Hour + 1, 24 * time.Hour,
		24*time.Hour - 1, 365 * 24 * time.Hour, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<62 + 12345, math.MaxInt64 - 1,
		math.MaxInt64,
	}
	for d := time.Duration(1); d < 1<<61; d = d*3 + 1 {
		delays = append(delays, d, d-1, d*3/2)
	}
	for _, d := range delays {
		if d <= 0 {
			continue
		}
		h := newHost(func(o *Options) { o.Delay = 0 })
		h.SetDemands(Demands{Delay: d})
		end := at(time.Second)
		for i := range 50 {
			h.Ended(end, ok(0))
			ready := h.Ready(epoch)
			late := ready.Sub(end.Add(d))
			must.True(t, !ready.Before(end.Add(d)) && (d > math.MaxInt64/2 || late <= time.Microsecond+d>>49),
				"delay %d, request %d: ready %v after its time", d, i, late)
			if d > 1<<55 {
				break // the next request lies beyond what a Time counts monotonically
			}
			end = ready.Add(time.Duration(i*i) * (d / 1000))
		}
	}
}

func TestDelayInForce(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name       string
		options    Options
		crawlDelay time.Duration
		last       time.Duration
		want       time.Duration
		reason     Reason
	}{
		{"nothing", Options{PerHost: 1}, 0, s, 0, ReasonNone},
		{"configured", Options{Delay: s}, 0, s, s, ReasonDelay},
		{"the configured delay is a floor", Options{Delay: 2 * s}, s, 0, 2 * s, ReasonDelay},
		{"crawl-delay", Options{Delay: s}, 10 * s, 0, 10 * s, ReasonCrawlDelay},
		{"crawl-delay of a month", Options{Delay: s}, 720 * time.Hour, 0, 720 * time.Hour, ReasonCrawlDelay},
		{"crawl-delay without end", Options{Delay: s}, math.MaxInt64, 0, math.MaxInt64, ReasonCrawlDelay},
		{"negative crawl-delay", Options{Delay: s}, -s, 0, s, ReasonDelay},
		{"adaptive", Options{Delay: s, AdaptiveFactor: 5, AdaptiveMax: time.Minute}, 0, 2 * s, 10 * s, ReasonAdaptive},
		{"adaptive below the floor", Options{Delay: s, AdaptiveFactor: 5, AdaptiveMax: time.Minute}, 0, s / 10, s,
			ReasonDelay},
		{"adaptive clamped", Options{Delay: s, AdaptiveFactor: 5, AdaptiveMax: time.Minute}, 0, time.Hour, time.Minute,
			ReasonAdaptive},
		{"adaptive does not clamp crawl-delay", Options{Delay: s, AdaptiveFactor: 5, AdaptiveMax: time.Minute},
			time.Hour, time.Hour, time.Hour, ReasonCrawlDelay},
		{"adaptive beyond all numbers", Options{AdaptiveFactor: 1e300, AdaptiveMax: math.MaxInt64}, 0, math.MaxInt64,
			math.MaxInt64, ReasonAdaptive},
		{"adaptive off", Options{Delay: s, AdaptiveMax: time.Minute}, 0, time.Hour, s, ReasonDelay},
		{"adaptive, negative duration", Options{Delay: s, AdaptiveFactor: 5, AdaptiveMax: time.Minute}, 0, -time.Hour,
			s, ReasonDelay},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := NewHost(&tt.options, State{}, at(0))
			h.SetDemands(Demands{Delay: tt.crawlDelay})
			h.Ended(at(s), ok(tt.last))
			assert.Equal(t, h.Delay(epoch), tt.want, "delay")
			got, want := h.Ready(epoch), at(s).Add(tt.want)
			assert.True(t, !got.Before(want), "ready at %v, want %v", got, want)
			assert.Equal(t, h.Reason(epoch), tt.reason, "because of")
		})
	}
}

func TestCrawlDelayChangesWhileWaiting(t *testing.T) {
	const s = time.Second
	h := newHost(nil)
	h.Ended(at(10*s), ok(s))
	for _, tt := range []struct {
		set, want time.Duration
		reason    Reason
	}{
		{0, 11 * s, ReasonDelay},
		{30 * s, 40 * s, ReasonCrawlDelay},
		{5 * s, 15 * s, ReasonCrawlDelay},
		{time.Hour, time.Hour + 10*s, ReasonCrawlDelay},
		{time.Hour, time.Hour + 10*s, ReasonCrawlDelay},
		{s / 2, 11 * s, ReasonDelay},
		{s / 8 * 19, 10*s + s/8*19, ReasonCrawlDelay},
	} {
		h.SetDemands(Demands{Delay: tt.set})
		wantReady(t, h, tt.want, tt.reason)
	}
	// Raised while a request is in flight, it counts from that request's end.
	h.SetDemands(Demands{Delay: 20 * s})
	h.Ended(at(50*s), ok(s))
	wantReady(t, h, 70*s, ReasonCrawlDelay)
	h.SetDemands(Demands{Delay: 0})
	h.Ended(at(71*s), ok(s))
	wantReady(t, h, 72*s, ReasonDelay)
}

func TestCrawlDelayArrivesOnAHostWithoutDelay(t *testing.T) {
	h := newHost(func(o *Options) { o.Delay = 0; o.PerHost = 8 })
	for i := range time.Duration(8) {
		h.Ended(at(time.Second+i), ok(0))
		wantReady(t, h, time.Second+i, ReasonNone)
	}
	h.SetDemands(Demands{Delay: 10 * time.Second})
	wantReady(t, h, 11*time.Second+7, ReasonCrawlDelay)
}

func TestInFlightLimit(t *testing.T) {
	const s = time.Second
	h := newHost(func(o *Options) { o.Delay = 0; o.PerHost = 8 })
	want := func(n int, when string) {
		t.Helper()
		assert.Equal(t, h.InFlightLimit(), n, when, "in flight")
	}
	want(8, "at first")
	h.SetDemands(Demands{Delay: 1})
	want(1, "with a Crawl-delay")
	h.SetDemands(Demands{Delay: 0})
	want(8, "without it again")
	h.Ended(at(s), Result{Signal: SignalServerError})
	want(1, "after an error")
	h.Ended(at(3*s), ok(0))
	want(8, "after a success")
	h.Ended(at(4*s), Result{Signal: SignalThrottled})
	want(1, "in a backoff")
	for i := range time.Duration(successesToRecover) {
		want(1, "while it recovers")
		h.Ended(at(500*s+i*s), ok(0))
	}
	want(8, "when it has recovered")
}

func TestHoldFor(t *testing.T) {
	const s = time.Second
	h := newHost(nil)
	h.HoldFor(at(0), 10*s, ReasonRestart)
	wantReady(t, h, 10*s, ReasonRestart)
	h.HoldFor(at(0), 5*s, ReasonRestart)
	wantReady(t, h, 10*s, ReasonRestart)
	h.HoldFor(at(0), -5*s, ReasonRestart)
	wantReady(t, h, 10*s, ReasonRestart)
	h.Ended(at(12*s), ok(s))
	wantReady(t, h, 13*s, ReasonDelay)
	// A response that arrives before the restart hold belongs to no incident: it counts.
	h.HoldFor(at(13*s), 100*s, ReasonRestart)
	h.Ended(at(14*s), Result{Signal: SignalThrottled})
	assert.Equal(t, h.Explain(epoch).Backoff, 1, "a restart hold hid a 429")
}

func TestExplain(t *testing.T) {
	const s = time.Second
	day := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	tests := []struct {
		name string
		do   func(*Host)
		want string
	}{
		{"no request", func(*Host) {}, "may be fetched from at any time; 1s between requests (the configured delay)"},
		{"delay", func(h *Host) { h.Ended(day, ok(s)) },
			"not before 2026-11-20 13:00:01.000 UTC, since 2026-11-20 13:00:00.000 UTC: the configured delay; 1s " +
				"between requests"},
		{"crawl-delay", func(h *Host) { h.SetDemands(Demands{Delay: 90 * s}); h.Ended(day, ok(s)) },
			"not before 2026-11-20 13:01:30.000 UTC, since 2026-11-20 13:00:00.000 UTC: the Crawl-delay of its " +
				"robots.txt; 1m30s between requests"},
		{"retry-after", func(h *Host) { h.Ended(day, Result{RetryAfter: time.Hour}) },
			"not before 2026-11-20 14:00:00.000 UTC, since 2026-11-20 13:00:00.000 UTC: its Retry-After header; 1s " +
				"between requests (the configured delay)"},
		{"parked", func(h *Host) { h.Ended(day, Result{RetryAfter: 7*24*time.Hour + 1}) },
			"not before 2026-11-27 13:00:00.000 UTC, since 2026-11-20 13:00:00.000 UTC: its Retry-After header; 1s " +
				"between requests (the configured delay); parked"},
		{"error", func(h *Host) { h.Ended(day, Result{Signal: SignalUnreachable}) },
			"not before 2026-11-20 13:00:02.000 UTC, since 2026-11-20 13:00:00.000 UTC: a longer delay after errors; " +
				"2s between requests; failing since 2026-11-20 13:00:00.000 UTC"},
		{"back-off", func(h *Host) { h.Ended(day, Result{Signal: SignalThrottled}) },
			"not before 2026-11-20 13:01:00.000 UTC, since 2026-11-20 13:00:00.000 UTC: a backoff after errors; 16s " +
				"between requests (a longer delay after errors); backoff level 1 of 12; failing since 2026-11-20 " +
				"13:00:00.000 UTC"},
		{"restart", func(h *Host) { h.HoldFor(day, 10*s, ReasonRestart) },
			"not before 2026-11-20 13:00:10.000 UTC, since 2026-11-20 13:00:00.000 UTC: requests that may have " +
				"reached it before the crawler restarted; 1s between requests (the configured delay)"},
	}
	for _, tt := range tests {
		h := newHost(nil)
		tt.do(h)
		e := h.Explain(epoch)
		assert.Equal(t, e.String(), tt.want, tt.name)
		assert.True(t, e.Until == h.Ready(epoch) && e.Delay == h.Delay(epoch) && e.Reason == h.Reason(epoch),
			"%s: %+v differs from the methods of the host", tt.name, e)
	}
}

func TestNamesOfReasonsAndSignals(t *testing.T) {
	for r := ReasonNone; int(r) < len(reasonNames); r++ {
		assert.True(t, r.String() != "" && r.text() != "" && !strings.ContainsRune(r.String(), ' '),
			"reason %d is called %q, %q", r, r, r.text())
	}
	assert.Equal(t, len(reasonTexts), len(reasonNames), "there are names without texts")
	for s := SignalOK; int(s) < len(signalNames); s++ {
		assert.Not(t, s.String(), "", "signal", s, "has no name")
	}
	got := Reason(200).String() + Reason(200).text() + Signal(200).String()
	assert.Equal(t, got, "reason(200)reason(200)signal(200)")
}
