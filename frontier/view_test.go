package frontier

import (
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// TestDecimal: a delay that is kept in few bits is told as what it stands for.
func TestDecimal(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 200 * time.Millisecond, 1100 * time.Millisecond,
		2500 * time.Millisecond, 10 * time.Second, 3600 * time.Second, 86400500 * time.Millisecond} {
		assert.Equal(t, decimal(float32(d.Seconds())), d, "is told as")
	}
}

// TestFinishOfLongDelays: a million URLs at a delay of a day take longer than a time.Duration
// holds, and such a host still is the slowest.
func TestFinishOfLongDelays(t *testing.T) {
	o := testOptions()
	o.Politeness.Delay = 24 * time.Hour
	f := must.Get(New(o, NewScope(ModeAny, nil, nil), epoch))(t)
	for id, urls := range map[int]int{1: 1000, 2: 1_000_000} {
		h := plain(id, urls)
		must.Do(t, f.Restore(&h, epoch))
	}
	finish := make(map[int]time.Duration)
	f.Waiting(epoch, func(w View) { finish[w.Left] = w.Finish })
	assert.True(t, finish[1000] >= 998*24*time.Hour && finish[1_000_000] > finish[1000],
		"1,000 URLs: %v, 1,000,000: %v", finish[1000], finish[1_000_000])
}

// TestDelayOfNewHosts: a host from which nothing was fetched yet has the configured delay.
func TestDelayOfNewHosts(t *testing.T) {
	o := testOptions()
	o.Politeness.Delay = 7 * time.Second
	f := must.Get(New(o, NewScope(ModeAny, nil, nil), epoch))(t)
	f.Committed(&storage.Batch{}, storage.Result{Hosts: []storage.HostChange{
		{Host: 1, Tail: 11, URLs: 11, Backlog: storage.Backlog{Queued: 11}},
	}}, epoch)
	v, known := f.View(1)
	assert.True(t, known && v.Delay == 7*time.Second && v.Finish >= 70*time.Second && v.Finish < 80*time.Second,
		"%+v", v)
}

// BenchmarkWalk walks over a million hosts as the engine does, and reports how long the longest
// step held up the dispatcher.
func BenchmarkWalk(b *testing.B) {
	const n, step = 1_000_000, 200
	f := must.Get(New(testOptions(), NewScope(ModeAny, nil, nil), epoch))(b)
	now := epoch.Add(time.Second)
	for i := range n {
		h := storage.Host{ID: storage.HostID(i + 1), Name: "h.example.com", Queues: queueOf(10)}
		must.Do(b, f.Restore(&h, now))
	}
	var longest time.Duration
	for b.Loop() {
		for from, more := storage.HostID(0), true; more; more = from != 0 {
			begun := time.Now()
			from = f.Walk(from, step, now, func(*View) {})
			longest = max(longest, time.Since(begun))
		}
	}
	b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/walk")
}

// TestWaitOfDormantHost keeps a wait though the disk says that it is over, as it does when the wall
// clock was set forward.
func TestWaitOfDormantHost(t *testing.T) {
	m := newMemory()
	w := newWorld(t, testOptions(), m)
	w.add(urls("http://a.test/", 3)...)
	w.answer = func(l Lease) answer {
		a := answer{took: 10 * time.Millisecond}
		if l.Kind == Robots {
			a.retryAfter = time.Hour
		}
		return a
	}
	w.open()
	w.run(10 * time.Minute)
	if n := w.f.hostStates()[dormant]; n != 1 {
		t.Fatalf("the host should be dormant: %v", w.f.hostStates())
	}
	m.hosts[1].Politeness = nil
	w.finish(2*time.Hour, 3*time.Hour)
	assert.AtLeast(t, w.log[1].start.Sub(w.log[0].end), time.Hour, "fetched again after")
}

// TestViewOfRecrawls: of a host that has only pages to recrawl a view says when the next one is
// due, whether the host is active or dormant.
func TestViewOfRecrawls(t *testing.T) {
	for after, want := range map[time.Duration]state{10 * time.Second: waitingToRecrawl, time.Hour: recrawlOnly} {
		interval := 30 * time.Second
		if want == recrawlOnly {
			interval = 6 * time.Hour
		}
		w := recrawlWorld(t, every(interval), 0.5)
		w.add("http://a.test/1")
		w.open()
		w.run(after)
		due := w.log[len(w.log)-1].end.Add(interval)
		v, ok := w.f.View(1)
		assert.True(t, ok && v.State == want.String() && v.Until.IsZero() && v.Next.Sub(due).Abs() <= time.Second,
			"%+v, %t; want %s, next at about %v", v, ok, want, due)
		walked := 0
		w.f.Walk(0, 1<<10, w.now, func(walk *View) {
			if walked++; *walk != v {
				t.Errorf("a walk sees %+v, a look %+v", walk, v)
			}
		})
		assert.Equal(t, walked, 1, "a walk sees hosts")
		w.f.Waiting(w.now, func(v View) { t.Errorf("%+v is waiting", v) })
	}
}

// TestFinishLeavesOutRecrawls: when the last URL of a host is fetched does not depend on when its
// pages are recrawled, whatever happens to the host meanwhile.
func TestFinishLeavesOutRecrawls(t *testing.T) {
	for _, interval := range []time.Duration{20 * time.Second, 16 * time.Hour} {
		w := recrawlWorld(t, every(interval), 0.5)
		w.commitTime = 200 * time.Millisecond
		w.add(urls("http://a.test/", 20)...)
		w.add("http://b.test/1", "https://b.test/2", "http://c.test/1")
		w.open()
		seen, limit := 0, w.now.Add(time.Minute)
		for w.step(limit) {
			w.f.Waiting(w.now, func(v View) {
				if v.Finish > 0 {
					seen++
				}
				if most := time.Duration(v.Left+3) * 2 * time.Second; v.Finish > most || v.Until.Sub(w.now) > most {
					t.Fatalf("recrawls every %v: %v after the start %+v", interval, w.now.Sub(epoch), v)
				}
			})
		}
		assert.AtLeast(t, seen, 20, "recrawls every", interval, "only views say when")
	}
}

// TestViewOfLimit: if a shared limit holds a host for longer than its own delay does, a view names
// the limit.
func TestViewOfLimit(t *testing.T) {
	o := testOptions()
	o.Politeness.PerIP, o.Politeness.IPDelay = 1, time.Minute
	w, _ := sharedAddress(t, o, 2, 10)
	w.open()
	w.run(10 * time.Minute)
	limits := 0
	for id := range storage.HostID(2) {
		v, ok := w.f.View(id + 1)
		must.True(t, ok && v.Active && v.Left != 0, "%+v, %t", v, ok)
		if v.Polite.Reason == politeness.ReasonLimit && strings.HasPrefix(v.Polite.Source.Name, "address ") {
			limits++
		}
		assert.Not(t, v.Reason, politeness.ReasonLimit, "the reason of the host itself is that of its limit", v)
	}
	assert.Not(t, limits, 0, "neither host waits for its address")
}
