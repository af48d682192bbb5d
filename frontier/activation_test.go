package frontier

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// dormantBytes is what each of n dormant hosts takes in memory.
func dormantBytes(t testing.TB, o Options, n int, name func(int) string) float64 {
	f := must.Get(New(o, NewScope(ModeAny, nil, nil), epoch))(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		h := storage.Host{ID: storage.HostID(i + 1), Name: name(i), Queues: queueOf(10)}
		must.Do(t, f.Restore(&h, epoch.Add(time.Second)))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	got := f.hostStates()[dormant]
	must.True(t, got == n, "%d hosts are dormant", got)
	return float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
}

func oneName(int) string { return "h.example.com" }

func TestDormantHostsAreSmall(t *testing.T) {
	assert.AtMost(t, dormantBytes(t, testOptions(), 200_000, oneName), 160, "a dormant host takes bytes")
}

// BenchmarkDormantHosts is the memory of a million dormant hosts, without budgets and with that of
// one domain.
func BenchmarkDormantHosts(b *testing.B) {
	budget := testOptions()
	budget.HostBudget, budget.DomainBudget = 1000, 5000
	for name, o := range map[string]Options{"plain": testOptions(), "budgets": budget} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				b.ReportMetric(dormantBytes(b, o, 1_000_000, oneName), "B/host")
			}
		})
	}
}

// Where there is room for two hosts out of eight, each gets its turn after a session of the others;
// without sessions the first ones are walked to their end.
func TestRotation(t *testing.T) {
	for _, c := range []struct {
		session, served int // hosts that were served in the time
	}{{10, 8}, {0, 2}, {100_000, 2}} {
		m := newMemory()
		for i := range 8 {
			m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}, 5000)
		}
		o := testOptions()
		o.ActiveHosts, o.Session = 2, c.session
		w := newWorld(t, o, m)
		w.open()
		w.run(20 * time.Minute)
		if n := len(w.served()); n != c.served {
			t.Errorf("session %d: %d hosts were fetched from, want %d: %v", c.session, n, c.served, w.served())
		}
		if c.served == 8 {
			w.evenly(8, 1.3)
			row, longest := 0, 0
			for i, r := range w.log {
				if row++; i > 1 && r.host != w.log[i-1].host && r.host != w.log[i-2].host {
					row = 0
				}
				longest = max(longest, row)
			}
			assert.AtMost(t, longest, 3*c.session, "two hosts were fetched from times in a row")
		}
		assert.AtLeast(t, len(w.log), 20*60*2*6/10, "session", c.session, "requests, there could be more than")
		w.checkManners()
	}
}

// A host that nobody waits for goes on after its session.
func TestRotationWithRoom(t *testing.T) {
	m := newMemory()
	m.makeUp(weburl.Origin{Scheme: "http", Host: "giant.test", Port: 80}, 500)
	o := testOptions()
	o.ActiveHosts, o.Session, o.Heads = 1, 3, 64
	w := newWorld(t, o, m)
	w.open()
	w.finish(time.Hour, time.Hour)
	assert.True(t, w.loads <= 40 && w.resolved <= 5, "%d loads and %d resolutions for 500 URLs of one host", w.loads,
		w.resolved)
}

// TestFewActiveHosts crawls many more hosts than may be active: each has its turn, and those that
// are active make some use of it.
func TestFewActiveHosts(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second, 10 * time.Second} {
		o := testOptions()
		o.ActiveHosts, o.Session, o.Politeness.Delay = 10, 8, delay
		m := newMemory()
		for i := range 200 {
			m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}, 10_000)
		}
		w := newWorld(t, o, m)
		w.workers, w.quick = 20, true
		w.open()
		w.run(4 * time.Minute)
		w.checkManners()
		w.evenly(200, 2.5)
		assert.AtMost(t, w.f.memory.activeHosts, 10, "hosts are active")
		checkInvariants(t, w.f)
		if delay < time.Duration(lead) && w.loads*3 > len(w.log) {
			t.Errorf("delay %v: %d loads for %d requests", delay, w.loads, len(w.log))
		}
	}
}

// TestActiveBytes keeps hosts with heavy robots.txt files from being active together. There are
// more of them than may be opened at a time, since what a host takes is known when it is open.
func TestActiveBytes(t *testing.T) {
	const hosts = maxActivating + 144
	o := testOptions()
	o.ActiveBytes = 400 << 10
	m := newMemory()
	for i := range hosts {
		m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}, 10)
	}
	w := newWorld(t, o, m)
	w.quick = true
	heavy := "User-agent: *\n"
	for i := range 100 {
		heavy += fmt.Sprintf("Disallow: /folder/number/%d\n", i)
	}
	w.answer = func(l Lease) answer { return answer{took: 100 * time.Millisecond, body: heavy, maxAge: time.Hour} }
	w.open()
	w.run(5 * time.Second)
	most := 0
	for range 35 {
		w.run(time.Second)
		most = max(most, w.f.memory.activeBytes)
	}
	w.evenly(hosts, 1)
	assert.AtMost(t, most, 5<<19, "bytes are active")
}

// TestOpening loads few hosts at a time, however many are due.
func TestActivating(t *testing.T) {
	m := newMemory()
	for i := range 2000 {
		m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}, 1)
	}
	w := newWorld(t, testOptions(), m)
	w.quick = true
	w.open()
	if _, ok := w.f.Next(w.now); ok || w.f.memory.activating != maxActivating {
		t.Errorf("%d hosts are being loaded", w.f.memory.activating)
	}
	w.run(time.Minute)
	assert.Equal(t, len(w.pages()), 2000, "pages")
}
