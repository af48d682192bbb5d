package politeness

import (
	"math"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestHealthTable checks the tables of docs/POLITENESS.md: when and why the host is ready after
// each result.
func TestHealthTable(t *testing.T) {
	const s = time.Second
	type step struct {
		wait   time.Duration // from the last ready to the end
		result Result
		want   time.Duration // from the end to ready
		reason Reason
	}
	good := ok(0)
	failed := Result{Signal: SignalUnreachable}
	broken := Result{Signal: SignalServerError}
	throttled := Result{Signal: SignalThrottled}
	walled, parked := Result{Signal: SignalWalled, Wall: "refusal"}, Result{Signal: SignalWalled, Parked: true}
	tests := []struct {
		name    string
		options Options
		steps   []step
	}{
		{"slows before it stops", Options{Delay: 3 * s, PerHost: 1}, []step{
			{0, good, 3 * s, ReasonDelay},
			{0, failed, 6 * s, ReasonErrors},
			{0, broken, 12 * s, ReasonErrors},
			{0, failed, 60 * s, ReasonBackoff},
			{0, failed, 120 * s, ReasonBackoff},
			{0, broken, 240 * s, ReasonBackoff},
			{0, good, 6 * s, ReasonErrors},
			{0, failed, 12 * s, ReasonErrors},
		}},
		{"a delay of zero has a floor", Options{PerHost: 1}, []step{
			{0, good, 0, ReasonNone},
			{0, failed, s, ReasonErrors},
			{0, failed, 2 * s, ReasonErrors},
			{0, failed, 60 * s, ReasonBackoff},
		}},
		{"a success ends the failures", Options{Delay: s, PerHost: 1}, []step{
			{0, failed, 2 * s, ReasonErrors},
			{0, failed, 4 * s, ReasonErrors},
			{0, good, s, ReasonDelay},
			{0, failed, 2 * s, ReasonErrors},
		}},
		{"aborted requests do not count", Options{Delay: s, PerHost: 1}, []step{
			{0, failed, 2 * s, ReasonErrors},
			{0, Result{Signal: SignalAborted}, 2 * s, ReasonErrors},
			{0, failed, 4 * s, ReasonErrors},
		}},
		{"a long delay is not doubled", Options{Delay: time.Hour, PerHost: 1}, []step{
			{0, failed, time.Hour, ReasonDelay},
			{0, failed, time.Hour, ReasonDelay},
			{0, failed, time.Hour, ReasonDelay},
		}},
		{"doubling ends at a minute", Options{Delay: 40 * s, PerHost: 1}, []step{
			{0, failed, 60 * s, ReasonErrors},
			{0, failed, 60 * s, ReasonErrors},
		}},
		{"throttled without a time", Options{Delay: s, PerHost: 1}, []step{
			{0, throttled, 60 * s, ReasonBackoff},
			{0, throttled, 120 * s, ReasonBackoff},
			{0, good, 2 * s, ReasonErrors},
			{0, throttled, 240 * s, ReasonBackoff},
		}},
		{"a wall", Options{Delay: s, PerHost: 1}, []step{
			{0, walled, 60 * s, ReasonWall},
			{-30 * s, walled, 30 * s, ReasonWall}, // it was in flight
			{0, Result{Signal: SignalRefused}, 16 * s, ReasonErrors},
			{0, walled, 120 * s, ReasonWall},
			{0, parked, 24 * time.Hour, ReasonWall},
			{0, walled, 480 * s, ReasonWall},
			{0, good, 2 * s, ReasonErrors},
			{0, failed, 4 * s, ReasonErrors},
		}},
		{"jitter", Options{Delay: s, PerHost: 1}, []step{
			{0, Result{Signal: SignalThrottled, Jitter: 1}, 75 * s, ReasonBackoff},
			{0, Result{Signal: SignalThrottled, Jitter: 0.5}, 135 * s, ReasonBackoff},
			{0, Result{Signal: SignalThrottled, Jitter: 5}, 300 * s, ReasonBackoff},
			{0, Result{Signal: SignalThrottled, Jitter: -5}, 480 * s, ReasonBackoff},
			{0, Result{Signal: SignalThrottled, Jitter: math.NaN()}, 960 * s, ReasonBackoff},
		}},
		{"retry-after", Options{Delay: s, PerHost: 1}, []step{
			{0, Result{Signal: SignalThrottled, RetryAfter: 17 * s}, 17 * s, ReasonRetryAfter},
			{0, Result{Signal: SignalThrottled, RetryAfter: 3 * s}, 4 * s, ReasonErrors},         // doubled delay
			{0, Result{Signal: SignalThrottled, RetryAfter: 3 * s}, 60 * s, ReasonBackoff},       // did not help
			{0, Result{Signal: SignalThrottled, RetryAfter: 500 * s}, 500 * s, ReasonRetryAfter}, // > backoff
		}},
		{"retry-after of years", Options{Delay: s, PerHost: 1}, []step{
			{0, Result{Signal: SignalThrottled, RetryAfter: 100 * 365 * 24 * time.Hour}, 100 * 365 * 24 * time.Hour,
				ReasonRetryAfter},
		}},
		{"retry-after with any answer", Options{Delay: s, PerHost: 1}, []step{
			{0, Result{Signal: SignalOK, RetryAfter: time.Minute}, time.Minute, ReasonRetryAfter},
			{0, Result{Signal: SignalServerError, RetryAfter: time.Hour}, time.Hour, ReasonRetryAfter},
		}},
		{"retry-after below the delay", Options{Delay: 10 * s, PerHost: 1}, []step{
			{0, Result{Signal: SignalOK, RetryAfter: s}, 10 * s, ReasonDelay},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := NewHost(&tt.options, State{}, at(0))
			now := at(s)
			for i, step := range tt.steps {
				end := now.Add(step.wait)
				h.Ended(end, step.result)
				now = h.Ready(epoch)
				if got := now.Sub(end); got != step.want || h.Reason(epoch) != step.reason {
					t.Errorf("step %d: %v because of %v, want %v because of %v", i, got, h.Reason(epoch), step.want,
						step.reason)
				}
			}
		})
	}
}

func TestBackoffReachesADay(t *testing.T) {
	h := newHost(nil)
	want := time.Minute
	for i := range 20 {
		end := h.Ready(epoch).Add(time.Second)
		h.Ended(end, Result{Signal: SignalUnreachable})
		if i < 2 {
			continue // slows down first
		}
		assert.Equal(t, h.Ready(epoch).Sub(end), want, "failure", i)
		want = min(2*want, 24*time.Hour)
	}
	e := h.Explain(epoch)
	assert.True(t, !e.Parked && e.Backoff == 12 && !e.FailingSince.IsZero(), "%+v", e)
}

// TestOneEscalationPerIncident: requests that were in flight together fail together, as one
// incident.
func TestOneEscalationPerIncident(t *testing.T) {
	const s = time.Second
	for _, r := range []Result{
		{Signal: SignalThrottled, Duration: 5 * s},
		{Signal: SignalThrottled, Duration: 5 * s, RetryAfter: 30 * s},
		{Signal: SignalUnreachable, Duration: 5 * s},
		{Signal: SignalServerError, Duration: 5 * s},
	} {
		h := newHost(func(o *Options) { o.Delay = 0; o.PerHost = 8 })
		h.Ended(at(10*s), r)
		first := h.Explain(epoch)
		for i := range time.Duration(7) {
			h.Ended(at(10*s+i*s/10), r)
		}
		h.Ended(at(11*s), ok(5*s)) // a success of a request from before does not count
		assert.Equal(t, h.Explain(epoch).Backoff, first.Backoff, r, "level became")
		assert.True(t, r.Signal != SignalThrottled || h.InFlightLimit() == 1,
			"%v: a response to an earlier request ended the incident", r)
		if want := at(11 * s).Add(r.RetryAfter - s/2); r.RetryAfter > 0 && h.Ready(epoch).Before(want) {
			t.Errorf("%v: a later Retry-After was not obeyed: ready %v too early", r, want.Sub(h.Ready(epoch)))
		}
	}
}

func TestBackoffFallsStepByStep(t *testing.T) {
	const s = time.Second
	h := newHost(nil)
	succeed := func(n int) {
		for range n {
			h.Ended(h.Ready(epoch).Add(s), ok(s))
		}
	}
	for range 3 {
		h.Ended(h.Ready(epoch).Add(s), Result{Signal: SignalThrottled})
	}
	since := h.Explain(epoch).FailingSince
	for level := 3; level > 0; level-- {
		if got := h.Explain(epoch); got.Backoff != level || got.FailingSince != since {
			t.Fatalf("level %d since %v, want %d since %v", got.Backoff, got.FailingSince, level, since)
		}
		succeed(successesToRecover - 1)
		got := h.Explain(epoch).Backoff
		must.True(t, got == level, "level %d fell to %d too soon", level, got)
		must.True(t, h.Delay(epoch) == 2*s, "delay %v while it recovers", h.Delay(epoch))
		succeed(1)
	}
	got := h.Explain(epoch)
	must.True(t, got.Backoff == 0 && got.FailingSince.IsZero() && h.Delay(epoch) == s, "did not recover: %v", got)
	// A failure among the successes restarts the count.
	h.Ended(h.Ready(epoch).Add(s), Result{Signal: SignalThrottled})
	succeed(successesToRecover - 1)
	h.Ended(h.Ready(epoch).Add(s), Result{Signal: SignalServerError})
	succeed(successesToRecover - 1)
	if got := h.Explain(epoch).Backoff; got != 1 {
		t.Fatalf("level %d", got)
	}
}

func TestOverflowSaturates(t *testing.T) {
	h := newHost(nil)
	h.SetDemands(Demands{Delay: math.MaxInt64})
	h.Ended(at(0), Result{Signal: SignalThrottled, RetryAfter: math.MaxInt64, Duration: math.MaxInt64,
		Jitter: math.Inf(1)})
	must.True(t, !h.Ready(epoch).Before(at(0).AddDate(200, 0, 0)), "ready at %v", h.Ready(epoch))
	h.HoldFor(at(0), math.MaxInt64, ReasonRestart)
	s := h.State(at(1))
	o := DefaultOptions()
	if again := NewHost(&o, s, at(2)); again.Ready(epoch).Before(at(0).AddDate(200, 0, 0)) {
		t.Fatalf("after a restart ready at %v", again.Ready(epoch))
	}
	h.Explain(epoch)
}

// TestCause: the cause of the last failure is known while a host is failing, also after a restart,
// and dropped when the host has recovered.
func TestCause(t *testing.T) {
	o := DefaultOptions()
	h := NewHost(&o, State{}, at(0))
	for i, cause := range []uint16{503, 1066} {
		h.Ended(at(time.Duration(i)*time.Hour), Result{Signal: SignalUnreachable, Cause: cause})
	}
	assert.Equal(t, h.Explain(at(time.Hour)).Cause, 1066, "the cause")
	b, _ := h.State(at(time.Hour)).AppendBinary(nil)
	s := must.Get(DecodeState(b))(t)
	h = NewHost(&o, s, at(2*time.Hour))
	assert.Equal(t, h.Explain(at(2*time.Hour)).Cause, 1066, "after a restart the cause")
	h.Ended(at(3*time.Hour), Result{Signal: SignalOK})
	assert.Equal(t, h.Explain(at(3*time.Hour)).Cause, 0, "after a success the cause")
}
