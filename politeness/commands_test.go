package politeness

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestPauseAndResume(t *testing.T) {
	const s = time.Second
	h := newHost(nil)
	h.Ended(at(0), Result{Signal: SignalThrottled, RetryAfter: 10 * s, Header: "10"})
	h.Pause(at(s), time.Time{})
	e := h.Explain(at(s))
	must.True(t, e.Reason == ReasonPause && e.Forever && !e.Parked && e.Since.Equal(at(s)) &&
		!h.Ready(at(s)).Before(at(100*365*day)), "paused: %v", e)
	h.Pause(at(2*s), at(5*s))
	wantReady(t, h, 10*s, ReasonRetryAfter) // the last pause counts, and ends before the Retry-After
	h.Pause(at(2*s), at(100*s))
	wantReady(t, h, 100*s, ReasonPause)
	h.Resume()
	wantReady(t, h, 10*s, ReasonRetryAfter)
	assert.Equal(t, h.Explain(at(s)).Source.Header, "10", "the header")
	h.Pause(at(200*s), at(150*s)) // over already
	wantReady(t, h, 10*s, ReasonRetryAfter)
}

// TestUnpaused: an explanation has when the host would be ready without the pause, also where the pause ends within
// hours that are not allowed.
func TestUnpaused(t *testing.T) {
	opens := at(5 * time.Hour).UTC().Format("15:04")
	for name, amend := range map[string]func(*Options){
		"usual": func(*Options) {}, "all paused": func(o *Options) { o.Paused = true },
		"hours": func(o *Options) { o.Hours = newHours(t, "", at(0).UTC().Format("15:04")+"-"+opens) },
	} {
		h := newHost(amend)
		h.Ended(at(0), Result{Signal: SignalThrottled, RetryAfter: time.Minute})
		for _, until := range []time.Duration{0, time.Second, time.Hour, 6 * time.Hour} {
			if until > 0 {
				h.Pause(at(0), at(until))
			}
			assert.Equal(t, h.Explain(at(1)).Unpaused, h.ReadyUnpaused(at(1)), name, "paused for", until)
		}
	}
}

func TestSetDelay(t *testing.T) {
	const s = time.Second
	h := newHost(func(o *Options) { o.Delay = 10 * s })
	h.Ended(at(0), ok(0))
	h.SetDelay(2 * s)
	wantReady(t, h, 2*s, ReasonSetDelay)
	h.SetDelay(30 * s)
	wantReady(t, h, 30*s, ReasonSetDelay)
	h.SetDemands(Demands{Delay: 60 * s})
	h.SetDelay(s)
	wantReady(t, h, 60*s, ReasonCrawlDelay) // the demands of the site always count
	h.SetDemands(Demands{})
	h.SetDelay(0)
	wantReady(t, h, 10*s, ReasonDelay)
}

// Forget drops what responses have taught, and keeps all holds that the host demands.
func TestForget(t *testing.T) {
	const s = time.Second
	h := newHost(func(o *Options) { o.AdaptiveFactor = 10 })
	h.SetDemands(Demands{Delay: 2 * s})
	h.Ended(at(0), Result{Signal: SignalThrottled, Duration: 4 * s, RetryAfter: 5 * s})
	h.Ended(at(6*s), Result{Signal: SignalThrottled, Duration: 4 * s, Jitter: 1}) // backs off
	wantReady(t, h, 81*s, ReasonBackoff)
	h.Forget()
	wantReady(t, h, 8*s, ReasonCrawlDelay)
	e := h.Explain(at(6 * s))
	assert.True(t, e.Backoff == 0 && e.FailingSince.IsZero() && e.Delay == 2*s, "left: %v", e)
	h.Ended(at(10*s), Result{Signal: SignalThrottled, RetryAfter: time.Hour})
	h.Pause(at(10*s), at(30*time.Minute))
	h.HoldFor(at(10*s), 20*s, ReasonRestart)
	h.Forget()
	wantReady(t, h, 10*s+time.Hour, ReasonRetryAfter)
}

// A pause in the settings holds while the setting is there, and is not stored in the state.
func TestPausedBySetting(t *testing.T) {
	o := DefaultOptions()
	o.Paused, o.Setting = true, "politeness.overrides, item 2"
	h := NewHost(&o, State{}, at(0))
	e := h.Explain(at(0))
	assert.True(t, e.Reason == ReasonPause && e.Forever && e.Source.Name == o.Setting && e.Since.IsZero(), "%+v", e)
	want := "not until it is resumed: paused by the operator (politeness.overrides, item 2); " +
		"1s between requests (the configured delay (politeness.overrides, item 2))"
	assert.Equal(t, e.String(), want)
	assert.AtMost(t, len(h.State(at(0)).Holds), 0, "it is in the state")
}

// Pauses and delays survive a restart, and a clock that was set back makes none of them longer.
func TestCommandsSurviveARestart(t *testing.T) {
	h := newHost(nil)
	h.SetDelay(7 * time.Second)
	h.Pause(at(0), at(time.Hour))
	restart := func(after time.Duration) *Host {
		b := must.Get(h.State(at(time.Minute)).AppendBinary(nil))(t)
		s := must.Get(DecodeState(b))(t)
		o := DefaultOptions()
		return NewHost(&o, s, at(after).Round(0))
	}
	assert.Equal(t, restart(2*time.Minute).Ready(at(0)).Sub(at(2*time.Minute).Round(0)), 58*time.Minute, "left")
	assert.Equal(t, restart(-1000*time.Hour).Ready(at(0)).Sub(at(-1000*time.Hour).Round(0)), time.Hour,
		"left of a pause of an hour after the clock was set back")
	assert.Equal(t, restart(0).Delay(at(0)), 7*time.Second, "delay set to 7s")
	h.Pause(at(0), time.Time{})
	e := restart(1000 * time.Hour).Explain(at(1000 * time.Hour))
	assert.True(t, e.Forever, "a pause until further notice became %v", e)
}

func TestTrim(t *testing.T) {
	h := newHost(nil)
	h.Ended(at(0), Result{Signal: SignalThrottled, RetryAfter: time.Hour})
	h.Pause(at(0), at(2*time.Hour))
	h.Trim(at(30 * time.Minute))
	wantReady(t, h, 2*time.Hour, ReasonPause)
	h.Resume()
	wantReady(t, h, 30*time.Minute, ReasonRetryAfter)
	h.Trim(at(40 * time.Minute))
	wantReady(t, h, 30*time.Minute, ReasonRetryAfter)
}
