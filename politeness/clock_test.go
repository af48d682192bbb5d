package politeness

import (
	"math"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// clock models the clocks of a machine: the wall clock can be set; the monotonic clock cannot, and
// stands still while the machine is suspended.
type clock struct {
	monotonic time.Duration // since epoch
	wall      time.Duration // how far the wall clock is ahead of monotonic
}

// now returns the instant that both clocks show, as time.Now would.
func (c *clock) now() time.Time { return stepWall(at(c.monotonic), c.wall) }

// stepWall moves the wall reading of an instant by whole seconds and keeps its monotonic reading.
// The time package has no function for that, so stepWall relies on its layout, which TestStepWall
// checks.
func stepWall(t time.Time, by time.Duration) time.Time {
	reading := (*struct {
		wall uint64 // a flag, 33 bits of seconds, 30 bits of nanoseconds
		ext  int64  // monotonic reading
		loc  *time.Location
	})(unsafe.Pointer(&t))
	reading.wall += uint64(int64(by/time.Second)) << 30
	return t
}

func TestStepWall(t *testing.T) {
	for _, by := range []time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour} {
		stepped := stepWall(at(time.Minute), by)
		assert.Equal(t, stepped.Sub(epoch), time.Minute, "a step of", by, "moved the monotonic clock")
		assert.Equal(t, stepped.Round(0).Sub(epoch.Round(0)), time.Minute+by, "after a step of", by,
			"the wall clock moved by")
	}
}

func TestClockSetWhileRunning(t *testing.T) {
	const s = time.Second
	for _, step := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour} {
		var c clock
		h := newHost(nil)
		h.SetDemands(Demands{Delay: 60 * s})
		h.Ended(c.now(), ok(s))
		c.monotonic += 10 * s
		c.wall += step
		assert.Equal(t, h.Ready(epoch).Sub(c.now()), 50*s, "clock set by", step, "left")
		// Stored now and read by the next process, whose clock is right: nothing is lost or added.
		o := DefaultOptions()
		next := NewHost(&o, h.State(c.now()), c.now().Round(0))
		assert.Equal(t, next.Ready(epoch).Sub(c.now().Round(0)), 50*s, "clock set by", step, "restarted left")
		// The same for a hold, stored after the clock was set.
		h.Ended(c.now(), Result{Signal: SignalThrottled, RetryAfter: 2 * time.Hour})
		c.monotonic += time.Hour
		c.wall -= step
		next = NewHost(&o, h.State(c.now()), c.now().Round(0))
		assert.Equal(t, next.Ready(epoch).Sub(c.now().Round(0)), time.Hour, "clock set by", step, "hold left")
	}
}

func TestMachineSuspended(t *testing.T) {
	var c clock
	h := newHost(nil)
	h.SetDemands(Demands{Delay: time.Minute})
	h.Ended(c.now(), ok(0))
	c.monotonic += 10 * time.Second
	c.wall += time.Hour // an hour passed without the monotonic clock
	assert.Equal(t, h.Ready(epoch).Sub(c.now()), 50*time.Second, "left")
}

func TestClockSetBetweenRuns(t *testing.T) {
	const s = time.Second
	wall := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	o := DefaultOptions()
	o.Delay = 10 * s
	tests := []struct {
		name  string
		state State
		now   time.Duration // after the last end, by the clock as it is then
		want  time.Duration // the rest of the wait
	}{
		{"in time", State{LastEnd: wall}, 4 * s, 6 * s},
		{"long after", State{LastEnd: wall}, 100 * time.Hour, 0},
		{"set back an hour", State{LastEnd: wall}, -time.Hour, 10 * s},
		{"set back a century", State{LastEnd: wall}, -100 * 365 * 24 * time.Hour, 10 * s},
		{"hold", State{Holds: []Hold{{Until: wall.Add(time.Hour), Length: time.Hour}}}, 20 * time.Minute,
			40 * time.Minute},
		{"hold over", State{Holds: []Hold{{Until: wall.Add(time.Hour), Length: time.Hour}}}, 2 * time.Hour, 0},
		{"hold, set back an hour", State{Holds: []Hold{{Until: wall.Add(time.Hour), Length: time.Hour}}}, -time.Hour,
			time.Hour},
		{"hold, set back to 1970", State{Holds: []Hold{{Until: wall.Add(time.Hour), Length: time.Hour}}},
			-56 * 365 * 24 * time.Hour, time.Hour},
		{"hold without length", State{Holds: []Hold{{Until: wall.Add(time.Hour)}}}, 0, 0},
		{"both", State{LastEnd: wall, Holds: []Hold{{Until: wall.Add(7 * s), Length: 7 * s}}}, s, 9 * s},
		{"negative numbers", State{LastEnd: wall, Demands: Demands{Delay: -s}, LastResponse: -s,
			Holds: []Hold{{Until: wall, Length: -s}}}, s, 9 * s},
		{"numbers too large", State{LastEnd: wall, Holds: []Hold{{Until: wall.Add(math.MaxInt64), Length: 5 * s}},
			Backoff: 255, Failures: 255, Calm: 255}, s, 59 * s},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := wall.Add(tt.now)
			h := NewHost(&o, tt.state, now)
			assert.Equal(t, max(h.Ready(epoch).Sub(now), 0), tt.want, "left")
			again := NewHost(&o, h.State(now), now)
			if !again.Ready(epoch).Equal(h.Ready(epoch)) && h.Ready(epoch).After(now) {
				t.Errorf("a second restart made %v of %v", again.Ready(epoch), h.Ready(epoch))
			}
		})
	}
}

func TestStateKeepsEverything(t *testing.T) {
	const s = time.Second
	o := Options{Delay: s, AdaptiveFactor: 3, AdaptiveMax: time.Minute, PerHost: 1}
	h := NewHost(&o, State{}, at(0))
	h.SetDemands(Demands{Delay: 2 * s})
	h.Ended(at(5*s), Result{Signal: SignalThrottled, Duration: 4 * s})
	h.Ended(h.Ready(epoch), ok(4*s))
	h.Ended(h.Ready(epoch), Result{Signal: SignalServerError, Duration: 4 * s, RetryAfter: time.Hour})

	now := at(10 * time.Minute)
	stored := h.State(now)
	again := NewHost(&o, stored, now)
	got := again.State(now)
	must.True(t, reflect.DeepEqual(got, stored), "%+v\nbecame %+v", stored, got)
	a, b := h.Explain(epoch), again.Explain(epoch)
	must.True(t, a.String() == b.String() && a.Backoff == 1 && a.Reason == ReasonRetryAfter, "%v\nbecame %v", a, b)
	if got := h.State(at(100 * time.Hour)); len(got.Holds) > 0 {
		t.Fatalf("a hold that is over is stored: %+v", got)
	}
	if got := newHost(nil).State(now); !reflect.DeepEqual(got, State{}) {
		t.Fatalf("the state of a host without a request is %+v", got)
	}
}

// TestStateOfAMomentLater: a clock that was read shortly before another process took the last response shortens neither
// its Retry-After nor the delay after it.
func TestStateOfAMomentLater(t *testing.T) {
	end := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	const wait = 8 * time.Second
	o := DefaultOptions()
	o.Delay = 2 * time.Second
	for _, late := range []time.Duration{time.Nanosecond, 30 * time.Millisecond, maxLate} {
		now := end.Add(-late)
		h := NewHost(&o, State{LastEnd: end}, now)
		if ready := h.Ready(now); !ready.Equal(end.Add(o.Delay)) {
			t.Errorf("%v earlier: ready at %v, want %v after the end", late, ready.Sub(end), o.Delay)
		}
		hold := Hold{Until: end.Add(wait), Length: wait, Reason: ReasonRetryAfter}
		h = NewHost(&o, State{LastEnd: end, Holds: []Hold{hold}}, now)
		if ready := h.Ready(now); !ready.Equal(end.Add(wait)) {
			t.Errorf("%v earlier: ready at %v, want %v after the end", late, ready.Sub(end), wait)
		}
	}
}

// TestHoldWithinAnother: a hold that begins while one of its kind ends later, by such a state, keeps its length when
// the clock is set back after that.
func TestHoldWithinAnother(t *testing.T) {
	end := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	now := end.Add(-maxLate)
	o := Options{PerHost: 1}
	h := NewHost(&o, State{LastEnd: end, Holds: []Hold{{Until: end, Length: 1, Reason: ReasonRestart}}}, now)
	h.HoldFor(now, maxLate/2, ReasonRestart)
	s, now := h.State(now), now.Add(-time.Hour)
	assert.Equal(t, NewHost(&o, s, now).Ready(now).Sub(now), maxLate/2, "held after the clock was set back by an hour")
}
