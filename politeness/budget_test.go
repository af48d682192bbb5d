package politeness

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// budgetServer serves requests with some workers. Each of them needs some time for a page. With too many
// requests in its backlog it refuses more.
type budgetServer struct {
	workers int
	service time.Duration
	latency time.Duration
	backlog int // 0: it never refuses
	busy    ends
}

// ends are the instants at which requests end, the first one first.
type ends []time.Duration

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i] < e[j] }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(time.Duration)) }
func (e *ends) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

// serve returns when a request that arrives at an instant ends, and whether it is refused.
func (s *budgetServer) serve(now time.Duration) (end time.Duration, refused bool) {
	for len(s.busy) > 0 && s.busy[0] <= now {
		heap.Pop(&s.busy)
	}
	if s.backlog > 0 && len(s.busy) >= s.workers+s.backlog {
		return now + s.latency, true
	}
	free := now
	if n := len(s.busy) - s.workers; n >= 0 {
		sorted := append(ends{}, s.busy...)
		for range n + 1 {
			free = heap.Pop(&sorted).(time.Duration)
		}
	}
	end = free + s.service
	heap.Push(&s.busy, end)
	return end + s.latency, false
}

// load is what a server had in an hour of requests that were made whenever its limit allowed.
type load struct {
	first10s, requests, refused int
	lastMinute                  int
	used                        float64 // of the time of its workers
	most                        int     // requests at a time in the last minute
}

// serve makes requests for a time.
func (l *Limit) crawl(s *budgetServer, length time.Duration) (r load) {
	type flight struct {
		end, took time.Duration
		refused   bool
	}
	var flights []flight
	const step = time.Millisecond
	for now := time.Duration(0); now < length; now += step {
		for i := 0; i < len(flights); i++ {
			if f := flights[i]; f.end <= now {
				signal := SignalOK
				if f.refused {
					signal = SignalThrottled
				}
				l.Ended(at(f.end), signal, f.took)
				flights = append(flights[:i], flights[i+1:]...)
				i--
			}
		}
		for l.Free() && !at(now).Before(l.Ready()) {
			l.Begin()
			end, refused := s.serve(now)
			flights = append(flights, flight{end: end, took: end - now, refused: refused})
			r.requests++
			if now < 10*time.Second {
				r.first10s++
			}
			if now >= length-time.Minute {
				r.lastMinute++
				r.most = max(r.most, len(flights))
			}
			if refused {
				r.refused++
			}
		}
	}
	r.used = float64(r.requests-r.refused) * s.service.Seconds() / length.Seconds() / float64(s.workers)
	return r
}

func TestBudgetGrowsToWhatAServerServes(t *testing.T) {
	const ms = time.Millisecond
	whole := LimitOptions{InFlight: 4, Rate: 5}
	near := budgetServer{workers: 64, service: 20 * ms}
	refusing := budgetServer{workers: 1, service: 40 * ms, backlog: 1}
	far := budgetServer{workers: 64, service: 20 * ms, latency: 100 * ms}
	for name, c := range map[string]struct {
		server         budgetServer
		options        LimitOptions
		least, most    int     // requests in the last of ten minutes
		used           float64 // at most
		refused        int     // at most
		first10s, flow int     // at most, and in flight at the end
	}{
		"many workers, near":   {near, whole, 11000, 12001, 1, 0, 1400, 4},
		"many workers, far":    {far, whole, 1900, 2001, 1, 0, 90, 4},
		"one worker":           {budgetServer{workers: 1, service: 20 * ms}, whole, 1000, 1500, 0.55, 0, 200, 2},
		"one slow worker":      {budgetServer{workers: 1, service: time.Second}, whole, 28, 36, 0.6, 0, 10, 2},
		"two workers":          {budgetServer{workers: 2, service: 50 * ms}, whole, 600, 2000, 0.75, 0, 130, 4},
		"refuses beyond a few": {refusing, whole, 500, 900, 0.6, 120, 200, 4},
		"with a delay":         {near, LimitOptions{InFlight: 4, Delay: time.Second, Rate: 5}, 57, 60, 1, 0, 10, 1},
		"no budget":            {near, LimitOptions{InFlight: 4}, 11000, 12001, 1, 0, 2001, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := NewLimit(c.options)
			r := l.crawl(&c.server, 10*time.Minute)
			t.Logf("%+v, step %d", r, l.budget.step)
			assert.True(t, r.lastMinute >= c.least && r.lastMinute <= c.most,
				"%d requests in the last minute, want %d to %d", r.lastMinute, c.least, c.most)
			assert.True(t, !(r.used > c.used) && r.refused <= c.refused && r.first10s <= c.first10s && r.most <= c.flow,
				"%+v, want at most %v of its time, %d refusals, %d requests at first, %d at a time", r, c.used,
				c.refused, c.first10s, c.flow)
		})
	}
}

// TestBudgetAfterErrors: errors make a budget smaller than it was at first, and it grows again after them.
func TestBudgetAfterErrors(t *testing.T) {
	o := LimitOptions{InFlight: 4, Rate: 5}
	l := NewLimit(o)
	now := time.Duration(0)
	request := func(s Signal) {
		l.Begin()
		now = max(now, l.Ready().Sub(epoch)) + 30*time.Millisecond
		l.Ended(at(now), s, 30*time.Millisecond)
	}
	for range 100 {
		request(SignalOK)
	}
	must.True(t, l.InForce() == o, "after 100 responses %+v, want the whole limit", l.InForce())
	for _, s := range []Signal{SignalServerError, SignalThrottled, SignalUnreachable} {
		before := l.InForce()
		for range budgetFailures {
			request(s)
		}
		if got := l.InForce(); got.InFlight >= before.InFlight && got.Delay <= before.Delay {
			t.Errorf("after %d times %v %+v, was %+v", budgetFailures, s, got, before)
		}
	}
	for range 100 {
		request(SignalServerError)
	}
	got := l.InForce()
	assert.True(t, got.Delay == longestPause && got.InFlight == 1, "after 100 errors %+v", got)
	assert.True(t, !l.Unused(l.Ready()) && l.Unused(l.Ready().Add(errorsKept)),
		"it forgets the errors at once, or never")
	for range 10_000 {
		request(SignalOK)
	}
	assert.Equal(t, l.InForce(), o, "after 10,000 responses")
	for range 1000 { // what the crawler itself breaks off says nothing
		request(SignalAborted)
	}
	assert.Equal(t, l.InForce(), o, "after requests that were broken off")
}

// TestBudgetShortensNoWait: an instant before which no request was to start does not become earlier when the budget
// grows with what was in flight.
func TestBudgetShortensNoWait(t *testing.T) {
	l := NewLimit(LimitOptions{Rate: 5})
	now := time.Duration(0)
	round := func(most int, signal func(i int) Signal) {
		flights := 0
		for l.Free() && flights < most {
			l.Begin()
			flights++
		}
		now = max(now, l.Ready().Sub(epoch)) + time.Second/10
		for i := range flights {
			before := l.Ready()
			l.Ended(at(now), signal(i), time.Second/10)
			must.True(t, !l.Ready().Before(before), "ready at %v, before that at %v", l.Ready(), before)
		}
	}
	for l.InForce().InFlight < 64 {
		round(64, func(int) Signal { return SignalOK })
	}
	round(64, func(i int) Signal {
		if i < 48 {
			return SignalServerError
		}
		return SignalOK
	})
	assert.AtLeast(t, l.Ready().Sub(at(now)), 20*time.Second, "a wait of after 48 errors at a time")
}

// TestBudgetBounds: whatever responses come, the limit in force is within the whole one, and one request
// is always possible within a minute.
func TestBudgetBounds(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		o := LimitOptions{InFlight: r.IntN(9), Delay: time.Duration(r.IntN(3)) * time.Second}
		o.Rate = []float64{0.01, 1, 5, MaxRate}[r.IntN(4)]
		var b Budget
		for range 2000 {
			b.Ended(o, Signal(r.IntN(int(SignalRefused)+1)), time.Duration(r.Int64N(int64(1)<<r.IntN(50))))
			got := b.InForce(o)
			first := time.Duration(float64(time.Second) / o.Rate)
			must.True(t, got.Delay >= o.Delay && got.Delay <= max(o.Delay, longestPause, first), "%+v: a delay of %v",
				o, got.Delay)
			must.True(t, got.InFlight >= 1 && (o.InFlight <= 0 || got.InFlight <= o.InFlight), "%+v: %d in flight", o,
				got.InFlight)
		}
	}
}
