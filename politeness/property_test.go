package politeness

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// world drives a host through everything that can happen to it, and computes the required waits
// independently. All its instants are true time, whatever the wall clock says.
type world struct {
	o       Options
	h       *Host
	now     time.Duration // true time since epoch
	wall    time.Duration // error of the wall clock
	fetched bool
	end     time.Duration // of the last request
	held    time.Duration // the latest end of Retry-After, backoff and restart hold
	crawl   time.Duration
}

func (w *world) clock() time.Time { return at(w.now).Round(0).Add(w.wall) }

// ready returns the host's Ready in true time.
func (w *world) ready() time.Duration {
	if w.h.Ready(epoch).IsZero() {
		return w.now
	}
	return w.now + w.h.Ready(epoch).Sub(w.clock())
}

// check compares the host with the promise of the package.
func (w *world) check(rt *rapid.T) {
	delay := w.h.Delay(epoch)
	must.True(rt, delay >= max(w.o.Delay, w.crawl), "delay in force %v, configured %v, Crawl-delay %v", delay,
		w.o.Delay, w.crawl)
	required := w.held
	if w.fetched {
		required = max(required, w.end+delay)
	}
	if got := w.ready(); got < required && required > w.now {
		rt.Fatalf("ready at %v, required is %v (last end %v, delay %v)", got, required, w.end, delay)
	}
	if delay > 0 && w.h.InFlightLimit() != 1 {
		rt.Fatalf("%d in flight with a delay of %v", w.h.InFlightLimit(), delay)
	}
}

// request starts no earlier than the host allows.
func (w *world) request(r Result, late time.Duration) {
	w.now = max(w.now, w.ready()) + late + r.Duration
	w.h.Ended(w.clock(), r)
	w.end, w.fetched = w.now, true
	w.held = max(w.held, w.now+r.RetryAfter)
	if r.Signal == SignalThrottled && r.RetryAfter == 0 {
		w.held = max(w.held, w.now+backoffFirst)
	}
}

// TestNoRequestIsEarly: for any sequence of results, Crawl-delays, restarts and steps of the clock,
// no request is allowed before the delay in force since the end of the last one.
func TestNoRequestIsEarly(t *testing.T) {
	durations := rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, time.Second / 3, time.Second, 10 * time.Second,
			time.Minute, 7 * time.Hour, 24 * time.Hour}),
		rapid.Map(rapid.Int64Range(0, int64(100*time.Hour)), func(n int64) time.Duration { return time.Duration(n) }),
	)
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{o: Options{
			Delay:          durations.Draw(rt, "delay"),
			AdaptiveFactor: rapid.Float64Range(0, 10).Draw(rt, "factor"),
			AdaptiveMax:    time.Minute,
			PerHost:        rapid.IntRange(1, 4).Draw(rt, "per host"),
		}}
		w.h = NewHost(&w.o, State{}, w.clock())
		rt.Repeat(map[string]func(*rapid.T){
			"request": func(rt *rapid.T) {
				r := Result{
					Signal: Signal(rapid.IntRange(0, int(SignalAborted)).Draw(rt, "signal")),
					Duration: rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, time.Second,
						30 * time.Second}).Draw(rt, "duration"),
					Jitter: rapid.Float64Range(0, 1).Draw(rt, "jitter"),
				}
				if rapid.Bool().Draw(rt, "has retry-after") {
					r.RetryAfter = durations.Draw(rt, "retry-after")
				}
				late := time.Duration(0)
				if rapid.Bool().Draw(rt, "late") {
					late = durations.Draw(rt, "by")
				}
				w.request(r, late)
			},
			"crawl-delay": func(rt *rapid.T) {
				w.crawl = durations.Draw(rt, "crawl-delay")
				w.h.SetDemands(Demands{Delay: w.crawl})
			},
			"time passes": func(rt *rapid.T) { w.now += durations.Draw(rt, "for") },
			"crash": func(rt *rapid.T) {
				d := durations.Draw(rt, "restart hold")
				w.h.HoldFor(w.clock(), d, ReasonRestart)
				w.held = max(w.held, w.now+d)
			},
			"restart": func(rt *rapid.T) {
				stored := must.Get(w.h.State(w.clock()).AppendBinary(nil))(rt)
				w.now += durations.Draw(rt, "off for")
				// Only a clock set back is safe: one set forward between two runs cannot be told
				// from time that passed.
				w.wall -= rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Hour,
					1000 * 24 * time.Hour}).Draw(rt, "clock set back by")
				state := must.Get(DecodeState(stored))(rt)
				end := w.clock().Add(-durations.Draw(rt, "end of another host"))
				w.h = NewHost(&w.o, State{LastEnd: end}, w.clock())
				w.h.Restore(&w.o, state, w.clock()) // in the memory of that one
				if got, want := w.h.Ready(epoch), NewHost(&w.o, state, w.clock()).Ready(epoch); !got.Equal(want) {
					rt.Fatalf("ready at %v, in memory of its own at %v", got, want)
				}
				longest := w.h.Delay(w.clock())
				for _, x := range state.Holds {
					longest = max(longest, x.Length)
				}
				if left := w.ready() - w.now; left > longest+maxLate+time.Microsecond {
					rt.Fatalf("%v left of a hold or a delay of %v", left, longest)
				}
			},
			"": w.check,
		})
	})
}

// TestSteadyHostIsNotKeptWaiting: without failures the only wait is the delay in force, rounded up
// to the microsecond.
func TestSteadyHostIsNotKeptWaiting(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		delay := time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(rt, "delay"))
		o := Options{Delay: delay, PerHost: 1}
		h := NewHost(&o, State{}, at(0))
		now := at(0)
		for _, d := range rapid.SliceOfN(rapid.Int64Range(0, int64(time.Minute)), 1, 50).Draw(rt, "durations") {
			now = now.Add(time.Duration(d))
			h.Ended(now, ok(time.Duration(d)))
			if got := h.Ready(epoch).Sub(now); got < delay || got >= delay+time.Microsecond {
				rt.Fatalf("waits %v of a delay of %v", got, delay)
			}
			now = h.Ready(epoch)
		}
	})
}

// TestSequenceOfEndsDoesNotMatter: requests in flight together may be reported in any sequence.
func TestSequenceOfEndsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ends := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Minute)), 1, 8).Draw(rt, "ends")
		h := newHost(func(o *Options) { o.Delay, o.PerHost = 0, 8 })
		for _, end := range ends {
			h.Ended(at(time.Duration(end)), ok(0))
		}
		h.SetDemands(Demands{Delay: 5 * time.Second})
		if got, want := h.Ready(epoch).Sub(epoch), time.Duration(slices.Max(ends))+5*time.Second; got != want {
			rt.Fatalf("ready at %v, want %v", got, want)
		}
	})
}

// Any state fits into MaxStateBytes and can be read again.
func TestAnyState(t *testing.T) {
	durations := rapid.Map(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, math.MaxInt64, math.MinInt64})),
		func(n int64) time.Duration { return time.Duration(n) })
	times := rapid.Map(rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 1<<33)),
		func(n int64) time.Time { return time.Unix(n, 999_999_999) })
	lines := rapid.Custom(func(rt *rapid.T) Line {
		return Line{rapid.Byte().Draw(rt, "origin"),
			rapid.Uint32().Draw(rt, "line")}
	})
	windows := rapid.Custom(func(rt *rapid.T) Window {
		return Window{rapid.Uint16().Draw(rt, "from"), rapid.Uint16().Draw(rt, "to")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		s := State{
			LastEnd: times.Draw(rt, "last end"), FailingSince: times.Draw(rt, "since"),
			LastResponse: durations.Draw(rt, "response"),
			SetDelay:     durations.Draw(rt, "set"), Backoff: rapid.Byte().Draw(rt, "backoff"),
			Failures: rapid.Byte().Draw(rt, "failures"),
			Calm:     rapid.Byte().Draw(rt, "calm"), Demands: Demands{Delay: durations.Draw(rt, "delay"),
				Rate: rapid.Bool().Draw(rt, "rate"), Line: lines.Draw(rt, "line")},
		}
		for _, r := range []Reason{ReasonRetryAfter, ReasonBackoff, ReasonPause} {
			if rapid.Bool().Draw(rt, "hold") {
				s.Holds = append(s.Holds, Hold{times.Draw(rt, "until"), durations.Draw(rt, "length"), r,
					rapid.StringN(0, 80, 200).Draw(rt, "header")})
			}
		}
		for range rapid.IntRange(0, 9).Draw(rt, "rates") {
			s.Demands.Rates = append(s.Demands.Rates,
				Rate{windows.Draw(rt, "window"), durations.Draw(rt, "delay"), lines.Draw(rt, "line")})
		}
		for range rapid.IntRange(0, 9).Draw(rt, "visits") {
			s.Demands.Visits = append(s.Demands.Visits, Visit{windows.Draw(rt, "window"), lines.Draw(rt, "line")})
		}
		b, err := s.AppendBinary(nil)
		must.True(rt, err == nil && len(b) <= MaxStateBytes, "%d bytes of %+v (%v)", len(b), s, err)
		back, err := DecodeState(b)
		must.True(rt, err == nil && len(back.Holds) == len(s.Holds) && back.Backoff == s.Backoff &&
			(back.Demands.Delay == max(s.Demands.Delay, 0) || len(s.Demands.Rates) != 0), "%+v came back as %+v (%v)",
			s, back, err)
	})
}
