package frontier

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// sharedAddress is a world of hosts that share one address.
func sharedAddress(t *testing.T, o Options, hosts, pages int) (*world, *memory) {
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
		resolves int // the most for each request
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
			w, _ := sharedAddress(t, o, c.hosts, 10_000)
			w.quick = c.hosts > 40
			w.open()
			w.run(c.time)
			w.checkManners()
			w.evenly(c.hosts, 1.3)
			assert.AtLeast(t, len(w.log), c.least, "requests, the address allows")
			assert.AtMost(t, w.resolved, c.resolves*len(w.log)+c.hosts, len(w.log), "requests took resolutions")
			checkInvariants(t, w.f)
		})
	}
}

// TestAddressTurnKept commits something of one host again and again: it must not lose its turn by
// that.
func TestAddressTurnKept(t *testing.T) {
	o := testOptions()
	o.Politeness.IPDelay = time.Second
	w, m := sharedAddress(t, o, 5, 10_000)
	w.open()
	var touch func()
	touch = func() {
		h := m.hosts[1]
		h.Tail, h.states = h.Tail+1, append(h.states, storage.Queued)
		h.Queues[0].Queued++
		w.f.applyHostChange(&storage.HostChange{Host: 1, Tail: h.Tail, Backlog: h.Backlog()}, w.f.instant(w.now))
		w.after(50*time.Millisecond, touch)
	}
	w.after(time.Second, touch)
	w.run(10 * time.Minute)
	w.checkManners()
	w.evenly(5, 1.1)
}

// TestAddressMoves moves hosts to another address while they wait for the old one.
func TestAddressMoves(t *testing.T) {
	o := testOptions()
	o.Politeness.IPDelay = 20 * time.Second
	w, _ := sharedAddress(t, o, 10, 1000)
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
	assert.True(t, at[addressAt(2)] >= 400 && at[addressAt(1)] >= 430, "requests by address: %v", at)
	w.run(0)
	assert.Equal(t, len(w.f.limits.all), 2, "addresses are kept")
}

// TestSweep forgets addresses that nobody uses and that hold nothing.
func TestSweep(t *testing.T) {
	o := testOptions()
	o.Politeness.IPDelay = time.Minute
	w, _ := sharedAddress(t, o, 3, 2)
	w.open()
	w.f.Sweep(w.now)
	w.run(30 * time.Second)
	w.f.Sweep(w.now)
	must.True(t, len(w.f.limits.all) == 1, "%d addresses while hosts use one", len(w.f.limits.all))
	w.finish(time.Hour, time.Hour)
	w.f.Sweep(w.now)
	assert.Equal(t, len(w.f.limits.all), 1, "an address is forgotten before its delay has passed")
	w.run(2 * time.Minute)
	w.f.Sweep(w.now)
	assert.Equal(t, len(w.f.limits.all), 0, "an address is kept for nobody")
}

// TestAddressAfterRestart fetches nothing from an address before its delay has passed since the
// process began, because an earlier process may have used it just then.
func TestAddressAfterRestart(t *testing.T) {
	o := testOptions()
	o.Politeness.IPDelay = time.Minute
	w, _ := sharedAddress(t, o, 2, 3)
	w.open()
	w.run(10 * time.Minute)
	assert.AtLeast(t, w.log[0].start.Sub(epoch), time.Minute, "the first request to the address after the start")
}

// TestHostSideBySide fetches from hosts without delay side by side, until one fails: then there is
// a delay, and one request at a time, even if the host waited for its address at that moment.
func TestHostSideBySide(t *testing.T) {
	o := testOptions()
	o.Politeness = politeness.Options{PerHost: 3, PerIP: 4, AdaptiveMax: time.Minute}
	w, _ := sharedAddress(t, o, 6, 400)
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
	assert.Equal(t, side, 3, "at most requests to a host were under way together")
	assert.AtLeast(t, len(w.pages()), 2400, "pages")
}

// checkShared holds the log to a limit of all requests with the same key.
func (w *world) checkShared(o politeness.LimitOptions, key func(request) string) (busiest int) {
	w.t.Helper()
	slices.SortStableFunc(w.log, func(a, b request) int { return a.start.Compare(b.start) })
	before := map[string][]request{}
	for _, r := range w.log {
		k := key(r)
		if k == "" {
			continue
		}
		others := 0
		for _, p := range before[k] {
			if p.end.After(r.start) {
				others++
			} else if gap := r.start.Sub(p.end); gap < o.Delay {
				w.t.Fatalf("%v: a request of %s ended %v before, the limit is %v", r, k, gap, o.Delay)
			}
		}
		busiest = max(busiest, others+1)
		if most := o.InFlight; most > 0 && others >= most || o.Delay > 0 && others > 0 {
			w.t.Fatalf("%v: %d others of %s are under way", r, others, k)
		}
		recent := append(before[k], r)
		before[k] = recent[max(0, len(recent)-100):]
	}
	return busiest
}

func domainOf(r request) string { return weburl.RegistrableDomain(r.host) }

// estate is a world of domains with some hosts each, which live on a few addresses without regard
// to their domains.
func estate(t *testing.T, o Options, domains, hosts, addresses, pages int) *world {
	m := newMemory()
	for d := range domains {
		for h := range hosts {
			m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.d%d.example", h, d), Port: 80}, pages)
		}
	}
	w := newWorld(t, o, m)
	w.resolve = func(l Lease) ResolveReport {
		return ResolveReport{Addresses: []netip.Addr{addressAt(int(l.Host) % addresses)}, TTL: time.Minute}
	}
	return w
}

// TestLimitsTogether lets domains and addresses bind at the same time, in any proportion: all
// limits hold, and all hosts finish, so there is no cyclic wait.
func TestLimitsTogether(t *testing.T) {
	for _, c := range []struct {
		name      string
		domain    politeness.LimitOptions
		perIP     int
		ipDelay   time.Duration
		addresses int
	}{
		{"both delays", politeness.LimitOptions{Delay: 700 * time.Millisecond}, 4, 500 * time.Millisecond, 7},
		{"domains one at a time", politeness.LimitOptions{InFlight: 1}, 1, 0, 5},
		{"domains bind", politeness.LimitOptions{InFlight: 2, Delay: 3 * time.Second}, 4, 0, 40},
		{"addresses bind", politeness.LimitOptions{InFlight: 3}, 4, 2 * time.Second, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions()
			o.Domain, o.Politeness.PerIP, o.Politeness.IPDelay = c.domain, c.perIP, c.ipDelay
			w := estate(t, o, 6, 7, c.addresses, 12)
			w.open()
			w.finish(4*time.Hour, time.Hour)
			w.checkManners()
			w.checkShared(c.domain, domainOf)
			assert.Equal(t, len(w.pages()), 6*7*12, "pages")
			w.f.Sweep(w.now.Add(24 * time.Hour))
		})
	}
}

// TestDomainLimitIsUsed: a domain that could be kept busy all the time is.
func TestDomainLimitIsUsed(t *testing.T) {
	o := testOptions()
	o.Domain = politeness.LimitOptions{Delay: time.Second}
	w := estate(t, o, 3, 20, 60, 1000)
	w.quick = true
	w.open()
	w.run(10 * time.Minute)
	w.checkShared(o.Domain, domainOf)
	assert.AtLeast(t, len(w.log), 3*545*95/100, "requests, the domains allow")
	checkInvariants(t, w.f)
}

// TestRanges gives some addresses limits of their own, shared or each for itself.
func TestRanges(t *testing.T) {
	o := testOptions()
	o.Politeness.PerIP = 1
	shared, single := politeness.LimitOptions{InFlight: 3}, politeness.LimitOptions{InFlight: 2, Delay: 2 * time.Second}
	o.Ranges = []Range{
		{Network: netip.MustParsePrefix("203.0.0.0/16"), Limit: politeness.LimitOptions{InFlight: 1}},
		{Network: netip.MustParsePrefix("203.0.1.0/24"), Limit: shared, Shared: true},
		{Network: netip.MustParsePrefix("203.0.2.0/24"), Limit: single},
	}
	w := estate(t, o, 4, 12, 1, 40)
	address := func(l Lease) netip.Addr {
		switch n := byte(l.Host); n % 3 {
		case 0:
			return netip.AddrFrom4([4]byte{203, 0, 1, n})
		case 1:
			return netip.AddrFrom4([4]byte{203, 0, 2, n % 6})
		default:
			return netip.AddrFrom4([4]byte{198, 51, 100, n % 4})
		}
	}
	w.resolve = func(l Lease) ResolveReport {
		return ResolveReport{Addresses: []netip.Addr{address(l)}, TTL: time.Minute}
	}
	w.answer = func(Lease) answer { return answer{took: time.Second} }
	w.open()
	w.run(3 * time.Minute)
	in := func(prefix string, each bool) func(request) string {
		network := netip.MustParsePrefix(prefix)
		return func(r request) string {
			switch {
			case !network.Contains(r.address):
				return ""
			case each:
				return r.address.String()
			}
			return prefix
		}
	}
	assert.Equal(t, w.checkShared(shared, in("203.0.1.0/24", false)), 3,
		"requests at a time in the shared range, it allows 3")
	w.checkShared(single, in("203.0.2.0/24", true))
	w.checkShared(politeness.LimitOptions{InFlight: 1}, in("198.51.100.0/24", true))
}

// controlled is a world of one host whose state on disk is what Control is told.
func controlled(w *world, m *memory, o Command) {
	w.t.Helper()
	stored := *m.hosts[1]
	records := make([]robots.Record, len(stored.Queues))
	for i := range stored.Queues {
		if encoded, err := m.Policy(stored.Queues[i].Origin); err == nil && len(encoded) > 0 {
			record, err := robots.DecodeRecord(encoded)
			w.must(err)
			records[i] = record
		}
	}
	w.must(w.f.Control(&stored.Host, records, o, w.now))
	w.collect()
}
