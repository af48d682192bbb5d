package frontier

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// flaky answers a part of the requests for pages with failures of all kinds.
func flaky(share int) func(Lease) answer {
	random := rand.New(rand.NewPCG(1, 2))
	return func(l Lease) answer {
		a := answer{took: time.Duration(1+random.IntN(900)) * time.Millisecond}
		if l.Kind != Page || random.IntN(100) >= share {
			return a
		}
		switch random.IntN(4) {
		case 0:
			a.state, a.reason = storage.Failed, storage.ReasonStatus
		case 1:
			a.state, a.signal = storage.Retrying, politeness.SignalServerError
		case 2:
			a.notSent = true
		case 3:
			a.broken, a.signal = true, politeness.SignalAborted
		}
		return a
	}
}

// fetched counts the fetched pages on disk by host.
func (m *memory) fetched() map[string]int {
	n := map[string]int{}
	for _, h := range m.hosts[1:] {
		for _, s := range h.states {
			if s == storage.Fetched {
				n[h.Name]++
			}
		}
	}
	return n
}

// budgeted returns the hosts that are over budget and how many of their URLs are left.
func (w *world) budgeted() map[storage.HostID]int {
	left := map[storage.HostID]int{}
	w.f.Waiting(w.now, func(h View) {
		if h.Budget {
			left[h.Host] = h.Left
		}
	})
	return left
}

func TestHostBudget(t *testing.T) {
	for _, share := range []int{0, 40} {
		m := newMemory()
		o := testOptions()
		o.HostBudget = 5
		w := newWorld(t, o, m)
		w.answer = flaky(share)
		for i := range 3 {
			w.add(numbered(fmt.Sprintf("http://h%d.test/", i), 60)...)
		}
		w.addWith(3, numbered("http://h2.test/high", 20)...)
		w.add("http://small.test/")
		w.open()
		w.finish(time.Hour, time.Hour)
		n := m.fetched()
		assert.True(t, n["h0.test"] == 5 && n["h1.test"] == 5 && n["h2.test"] == 5, "%d %% failing: fetched %v", share,
			n)
		left := w.budgeted()
		assert.True(t, len(left) == 3 && (share != 0 || left[1] == 55) && (share != 0 || left[3] == 75),
			"%d %% failing: postponed for the budget: %v", share, left)
		requests := len(w.log)
		w.open() // a restart finds it as it was
		w.finish(time.Hour, time.Hour)
		assert.Equal(t, len(w.log)-requests, 0, "requests after a restart with a budget that is spent")
		w.add(numbered("http://h1.test/new", 10)...) // so does a discovery
		w.run(time.Minute)
		if len(w.log) != requests {
			t.Errorf("requests after a discovery with a budget that is spent: %v", w.log[requests:])
		}
		w.o.HostBudget = 9
		w.open()
		w.finish(time.Hour, time.Hour)
		if n := m.fetched(); n["h0.test"] != 9 || n["h1.test"] != 9 || n["h2.test"] != 9 {
			t.Errorf("%d %% failing: fetched %v with a larger budget", share, n)
		}
		w.checkManners()
	}
}

// TestHostBudgetWhileReading: pages that are still read count.
func TestHostBudgetWhileReading(t *testing.T) {
	o := testOptions()
	o.Politeness.Delay, o.HostBudget = 0, 3
	w := newWorld(t, o, newMemory())
	w.add(urls("http://a.test/", 20)...)
	w.answer = func(Lease) answer { return answer{took: 100 * time.Millisecond, reading: time.Second} }
	w.open()
	w.run(time.Hour)
	assert.Equal(t, len(w.pages()), 3, "pages are fetched, the budget is 3")
}

// A budget is kept with crashes at any moment: what is fetched and not committed does not count,
// and what is committed does.
func TestBudgetAcrossCrashes(t *testing.T) {
	m := newMemory()
	o := testOptions()
	o.HostBudget, o.DomainBudget = 12, 30
	w := newWorld(t, o, m)
	w.answer, w.commitTime = flaky(30), 700*time.Millisecond
	for i := range 4 {
		w.add(numbered(fmt.Sprintf("http://h%d.example.com/", i), 80)...)
	}
	w.open()
	for range 6 {
		w.run(9500 * time.Millisecond)
		w.crash()
		w.open()
	}
	w.finish(time.Hour, time.Hour)
	sum := 0
	for host, n := range m.fetched() {
		if sum += n; n > 12 {
			t.Errorf("%s: %d pages fetched", host, n)
		}
	}
	if sum != 30 {
		t.Errorf("fetched %d of the domain: %v", sum, m.fetched())
	}
	w.checkManners()
}

func TestDomainBudget(t *testing.T) {
	for _, c := range []struct {
		hosts, share, active int
	}{{3, 0, 100}, {3, 50, 100}, {40, 50, 100}, {40, 50, 2}, {1, 30, 1}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			m := newMemory()
			o := testOptions()
			o.DomainBudget, o.ActiveHosts = 25, c.active
			w := newWorld(t, o, m)
			w.answer = flaky(c.share)
			for i := range c.hosts {
				w.add(numbered(fmt.Sprintf("http://h%d.example.com/", i), 90)...)
			}
			w.add(numbered("http://www.example.org/", 10)...)
			w.open()
			w.finish(2*time.Hour, time.Hour)
			sum, other := 0, 0
			for host, n := range m.fetched() {
				if strings.HasSuffix(host, ".example.com") {
					sum += n
				} else {
					other += n
				}
			}
			assert.True(t, sum == 25 && other != 0 && (c.share != 0 || other == 10),
				"fetched %d of the domain with a budget of 25, %d of the other", sum, other)
			assert.Equal(t, len(w.budgeted()), c.hosts, "hosts of are postponed for the budget")
			w.checkManners()
		})
	}
}

// A page that fails gives its room in the domain's budget to a host that waits for it.
func TestDomainBudgetIsRestored(t *testing.T) {
	m := newMemory()
	o := testOptions()
	o.DomainBudget = 1
	w := newWorld(t, o, m)
	for i := range 9 {
		w.add(fmt.Sprintf("http://h%d.example.com/", i))
	}
	w.answer = func(l Lease) answer {
		a := answer{took: 10 * time.Second, state: storage.Failed, reason: storage.ReasonStatus}
		if l.HostName == "h8.example.com" {
			a.state = storage.Fetched
		}
		return a
	}
	w.open()
	w.finish(time.Hour, time.Hour)
	if n := m.fetched(); len(n) != 1 || n["h8.example.com"] != 1 || len(w.pages()) != 9 {
		t.Errorf("fetched %v, pages %v", n, w.pages())
	}
}
