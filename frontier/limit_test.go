package frontier

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// crowd is a world of hosts that share one address.
func crowd(t *testing.T, o Options, hosts, pages int) (*world, *memory) {
	m := newMemory()
	for i := range hosts {
		m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}, pages)
	}
	w := newWorld(t, o, m)
	w.resolve = func(Lease) ResolveReport {
		return ResolveReport{Addresses: []netip.Addr{addressAt(1)}, TTL: time.Second}
	}
	return w, m
}

// evenly fails unless each host was served about as often as the others.
func (w *world) evenly(hosts int, slack float64) {
	w.t.Helper()
	served := w.served()
	total := 0
	for _, n := range served {
		total += n
	}
	mean := float64(total) / float64(hosts)
	for i := range hosts {
		name := fmt.Sprintf("h%d.test", i)
		if n := float64(served[name]); n < mean/slack || n > mean*slack {
			w.t.Errorf("%s was served %v times, on average hosts were %.1f times", name, n, mean)
		}
	}
}

func TestAddressSharedByMany(t *testing.T) {
	for _, c := range []struct {
		name     string
		perIP    int
		ipDelay  time.Duration
		hosts    int
		time     time.Duration
		least    int // requests that the address allows in the time, less 5 %
		resolves int // at most so many for each request
	}{
		{"side by side", 4, 0, 50, 5 * time.Minute, 4 * 3000 * 95 / 100, 1},
		{"one after the other", 1, 0, 50, 5 * time.Minute, 3000 * 95 / 100, 1},
		{"with a delay", 4, time.Second, 40, 10 * time.Minute, 545 * 95 / 100, 1},
		{"with a delay longer than the address holds", 4, 2 * time.Minute, 5, 10 * time.Hour, 299 * 95 / 100, 2},
		{"so many that all have to be resolved again", 1, 10 * time.Second, 100, 10 * time.Hour, 3564 * 95 / 100, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions()
			o.Politeness.PerIP, o.Politeness.IPDelay = c.perIP, c.ipDelay
			w, _ := crowd(t, o, c.hosts, 10_000)
			w.quick = c.hosts > 40
			w.open()
			w.run(c.time)
			w.checkManners()
			w.evenly(c.hosts, 1.3)
			if len(w.log) < c.least {
				t.Errorf("%d requests, the address allows %d", len(w.log), c.least)
			}
			if w.resolved > c.resolves*len(w.log)+c.hosts {
				t.Errorf("%d requests took %d resolutions", len(w.log), w.resolved)
			}
			checkInvariants(t, w.f)
		})
	}
}

// TestAddressTurnKept commits something of one host again and again: it must
// not lose its turn by that.
func TestAddressTurnKept(t *testing.T) {
	o := testOptions()
	o.Politeness.IPDelay = time.Second
	w, m := crowd(t, o, 5, 10_000)
	w.open()
	var touch func()
	touch = func() {
		h := m.hosts[1]
		h.Tail, h.states = h.Tail+1, append(h.states, storage.Queued)
		h.Queues[0].Queued++
		w.f.applyTouched(&storage.Touched{Host: 1, Tail: h.Tail, Queued: h.Queues[0].Queued}, w.f.instant(w.now))
		w.after(50*time.Millisecond, touch)
	}
	w.after(time.Second, touch)
	w.run(10 * time.Minute)
	w.checkManners()
	w.evenly(5, 1.1)
}

// TestAddressMoves lets hosts move to another address while they wait for
// their turn at the old one.
func TestAddressMoves(t *testing.T) {
	o := testOptions()
	o.Politeness.IPDelay = 20 * time.Second
	w, _ := crowd(t, o, 10, 1000)
	moved := epoch.Add(10 * time.Minute)
	w.resolve = func(l Lease) ResolveReport {
		to := 1
		if w.now.After(moved) {
			to = 1 + int(l.Host)%2
		}
		return ResolveReport{Addresses: []netip.Addr{addressAt(to)}, TTL: time.Second}
	}
	w.open()
	w.run(3 * time.Hour)
	w.checkManners()
	w.evenly(10, 1.2)
	at := map[netip.Addr]int{}
	for _, r := range w.log {
		at[r.address]++
	}
	if at[addressAt(2)] < 400 || at[addressAt(1)] < 430 {
		t.Errorf("requests by address: %v", at)
	}
	w.run(0)
	if len(w.f.limits) != 2 {
		t.Errorf("%d addresses are kept", len(w.f.limits))
	}
}

// TestSweep forgets addresses when nobody uses them and nothing is owed.
func TestSweep(t *testing.T) {
	o := testOptions()
	o.Politeness.IPDelay = time.Minute
	w, _ := crowd(t, o, 3, 2)
	w.open()
	w.f.Sweep(w.now)
	w.run(30 * time.Second)
	w.f.Sweep(w.now)
	if len(w.f.limits) != 1 {
		t.Fatalf("%d addresses while hosts use one", len(w.f.limits))
	}
	w.finish(time.Hour, time.Hour)
	w.f.Sweep(w.now)
	if len(w.f.limits) != 1 {
		t.Error("an address is forgotten while a delay is owed")
	}
	w.run(2 * time.Minute)
	w.f.Sweep(w.now)
	if len(w.f.limits) != 0 {
		t.Error("an address is kept for nobody")
	}
}

// TestAddressAfterRestart asks nobody at an address before its delay has passed
// since the process began: the one before it may have asked just then.
func TestAddressAfterRestart(t *testing.T) {
	o := testOptions()
	o.Politeness.IPDelay = time.Minute
	w, _ := crowd(t, o, 2, 3)
	w.open()
	w.run(10 * time.Minute)
	if first := w.log[0].start.Sub(epoch); first < time.Minute {
		t.Errorf("the first request to the address is %v after the start", first)
	}
}

// TestHostSideBySide has hosts without delay asked side by side, until one
// fails: then there is a delay, and one request at a time, even if the host stood
// in line for its address at that moment.
func TestHostSideBySide(t *testing.T) {
	o := testOptions()
	o.Politeness = politeness.Options{PerHost: 3, PerIP: 4, AdaptiveMax: time.Minute}
	w, _ := crowd(t, o, 6, 400)
	n := 0
	w.answer = func(l Lease) answer {
		n++
		a := answer{took: time.Duration(50+n*37%400) * time.Millisecond}
		if n%7 == 0 {
			a.took = 6 * time.Second
		}
		if n%9 == 0 && l.Kind == Page {
			a.signal = politeness.SignalServerError
		}
		return a
	}
	w.open()
	w.run(2 * time.Hour)
	w.checkManners()
	side, under := 0, map[string]int{}
	type edge struct {
		at   time.Time
		host string
		d    int
	}
	var edges []edge
	for _, r := range w.log {
		edges = append(edges, edge{r.start, r.host, 1}, edge{r.end, r.host, -1})
	}
	sortEdges := func(a, b edge) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.d - b.d
	}
	slices.SortFunc(edges, sortEdges)
	for _, e := range edges {
		under[e.host] += e.d
		side = max(side, under[e.host])
	}
	if side != 3 {
		t.Errorf("at most %d requests to a host were under way together, want 3", side)
	}
	if len(w.pages()) < 2400 {
		t.Errorf("%d pages, want 2400", len(w.pages()))
	}
}
