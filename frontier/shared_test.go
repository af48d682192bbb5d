package frontier

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

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
		beside := 0
		for _, p := range before[k] {
			if p.end.After(r.start) {
				beside++
			} else if gap := r.start.Sub(p.end); gap < o.Delay {
				w.t.Fatalf("%v: a request of %s ended %v before, the limit is %v", r, k, gap, o.Delay)
			}
		}
		busiest = max(busiest, beside+1)
		if most := o.InFlight; most > 0 && beside >= most || o.Delay > 0 && beside > 0 {
			w.t.Fatalf("%v: %d others of %s are under way", r, beside, k)
		}
		recent := append(before[k], r)
		before[k] = recent[max(0, len(recent)-100):]
	}
	return busiest
}

func domainOf(r request) string { return weburl.RegistrableDomain(r.host) }

// estate is a world of domains with some hosts each, which live on a few addresses without regard to their domains.
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

// TestLimitsTogether lets domains and addresses bind at the same time, in any proportion: all limits hold, and all hosts
// come to an end, so none waits for another that waits for it.
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
			if pages := len(w.pages()); pages != 6*7*12 {
				t.Errorf("%d pages, want %d", pages, 6*7*12)
			}
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
	if n, least := len(w.log), 3*545*95/100; n < least {
		t.Errorf("%d requests, the domains allow %d", n, least)
	}
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
	if n := w.checkShared(shared, in("203.0.1.0/24", false)); n != 3 {
		t.Errorf("%d requests at a time in the shared range, it allows 3", n)
	}
	w.checkShared(single, in("203.0.2.0/24", true))
	w.checkShared(politeness.LimitOptions{InFlight: 1}, in("198.51.100.0/24", true))
}

// TestOverridesOfHosts: the closest name counts, and what robots.txt asks for is never undercut.
func TestOverridesOfHosts(t *testing.T) {
	o := testOptions()
	with := func(change func(*politeness.Options)) politeness.Options {
		p := o.Politeness
		change(&p)
		return p
	}
	o.Overrides = []Override{
		{Hosts: []string{"*.example.com"}, Politeness: with(func(p *politeness.Options) { p.Delay = 10 * time.Second })},
		{Hosts: []string{"*.b.example.com", "fast.example"}, Politeness: with(func(p *politeness.Options) { p.Delay = 100 * time.Millisecond })},
		{Hosts: []string{"www.example.com"}, Politeness: with(func(p *politeness.Options) { p.Paused = true })},
		{Hosts: []string{"small.example"}, Politeness: o.Politeness, HostBudget: 3},
		{Hosts: []string{"asks.example"}, Politeness: with(func(p *politeness.Options) { p.Delay = 0 })},
	}
	m := newMemory()
	names := []string{"example.com", "a.example.com", "x.b.example.com", "b.example.com", "fast.example", "www.example.com", "small.example", "asks.example"}
	for _, name := range names {
		m.makeUp(weburl.Origin{Scheme: "http", Host: name, Port: 80}, 1000)
	}
	w := newWorld(t, o, m)
	w.answer = func(l Lease) answer {
		a := answer{took: 50 * time.Millisecond}
		if l.HostName == "asks.example" && l.Kind == Robots {
			a.body = "User-agent: *\nCrawl-delay: 7\n"
		}
		return a
	}
	w.open()
	w.run(10 * time.Minute)
	w.checkManners()
	gaps := map[string]time.Duration{}
	last := map[string]request{}
	for _, r := range w.log {
		if before, ok := last[r.host]; ok {
			if gap := r.start.Sub(before.end); gaps[r.host] == 0 || gap < gaps[r.host] {
				gaps[r.host] = gap
			}
		}
		last[r.host] = r
	}
	for name, want := range map[string]time.Duration{
		"example.com": time.Second, "a.example.com": 10 * time.Second, "b.example.com": 10 * time.Second,
		"x.b.example.com": 100 * time.Millisecond, "fast.example": 100 * time.Millisecond, "asks.example": 7 * time.Second,
	} {
		if gaps[name] != want {
			t.Errorf("%s was asked with gaps of %v, want %v", name, gaps[name], want)
		}
	}
	served := w.served()
	if served["small.example"] != 3 || served["www.example.com"] != 0 {
		t.Errorf("a budget of 3 came to %d pages, a pause to %d", served["small.example"], served["www.example.com"])
	}
}

// TestVisitTimeAndRates: a host is asked within its hours only, and as slowly as they say, over days and restarts.
func TestVisitTimeAndRates(t *testing.T) {
	o := testOptions()
	m := newMemory()
	m.makeUp(weburl.Origin{Scheme: "http", Host: "night.test", Port: 80}, 100_000)
	w := newWorld(t, o, m)
	w.answer = func(l Lease) answer {
		return answer{took: 100 * time.Millisecond, maxAge: 24 * time.Hour,
			body: "User-agent: *\nCrawl-delay: 30\nVisit-time: 2200-0400\nRequest-rate: 1/5m 0000-0200\n"}
	}
	w.quick = true
	w.open()
	for day := range 3 {
		w.run(24 * time.Hour)
		if day == 1 {
			w.crash()
			w.open()
		}
	}
	pages := 0
	var before request
	for i, r := range w.log {
		minute := r.start.Hour()*60 + r.start.Minute()
		if r.kind == Page || i > 0 {
			if minute < 22*60 && minute >= 4*60 {
				t.Fatalf("%v is outside of the hours: %v", r, r.start)
			}
		}
		if gap := r.start.Sub(before.end); i > 1 && minute < 2*60 && gap < 5*time.Minute {
			t.Fatalf("%v comes %v after the one before", r, gap)
		}
		if r.kind == Page {
			pages++
		}
		before = r
	}
	// A night has four hours at 30 seconds and two at five minutes.
	if least, most := 3*(4*115+2*11), 3*(4*121+2*13); pages < least || pages > most {
		t.Errorf("%d pages in three nights, want %d to %d", pages, least, most)
	}
}

// controlled is a world of one host whose state on disk is what Control is told.
func controlled(w *world, m *memory, o Order) {
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

// TestControl gives orders to a host wherever it is: dormant, being loaded, waiting, with a request under way. They are on disk
// with the next commit, and no load that is older undoes them.
func TestControl(t *testing.T) {
	for at := range 60 {
		o := testOptions()
		m := newMemory()
		m.makeUp(weburl.Origin{Scheme: "http", Host: "h.test", Port: 80}, 1000)
		w := newWorld(t, o, m)
		w.loadTime, w.commitTime = 30*time.Millisecond, 40*time.Millisecond
		w.open()
		w.run(time.Duration(at) * 7 * time.Millisecond)
		controlled(w, m, Order{Kind: OrderPause})
		w.run(2 * time.Second) // what was under way ends
		paused := len(w.log)
		w.run(time.Hour)
		if len(w.log) != paused {
			t.Fatalf("paused after %dms: %d requests, then %v", 7*at, paused, w.log[paused:])
		}
		if at%2 == 0 {
			w.crash()
			w.o.OwedSince = time.Time{}
			w.open()
			w.run(time.Hour)
		}
		controlled(w, m, Order{Kind: OrderDelay, Delay: 20 * time.Second})
		w.run(time.Duration(at) * time.Millisecond)
		controlled(w, m, Order{Kind: OrderResume})
		w.run(time.Hour)
		if n := len(w.log) - paused; n < 3600/20*95/100 || n > 3600/20+2 {
			t.Fatalf("resumed after %dms with a delay of 20s: %d requests in an hour", 7*at, n)
		}
		controlled(w, m, Order{Kind: OrderDelay})
		before := len(w.log)
		w.run(time.Minute)
		if n := len(w.log) - before; n < 45 {
			t.Fatalf("back to a delay of 1s: %d requests in a minute", n)
		}
	}
}

// TestControlForget makes a host ask for its robots.txt again, and come back from a long back-off, but not from what it is owed.
func TestControlForget(t *testing.T) {
	o := testOptions()
	m := newMemory()
	m.makeUp(weburl.Origin{Scheme: "http", Host: "h.test", Port: 80}, 1000)
	w := newWorld(t, o, m)
	sick := true
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond, maxAge: 24 * time.Hour, body: "User-agent: *\nDisallow: /x\n"}
		if sick && l.Kind == Page {
			a.signal, a.state = politeness.SignalThrottled, storage.Retrying
		}
		return a
	}
	w.open()
	w.run(10 * time.Hour) // backs off further and further, and goes dormant
	sick = false
	count := func(k Kind) (n int) {
		for _, r := range w.log {
			if r.kind == k {
				n++
			}
		}
		return n
	}
	files, pages := count(Robots), count(Page)
	controlled(w, m, Order{Kind: OrderForget})
	w.run(time.Minute)
	if count(Robots) != files+1 || count(Page) < pages+20 {
		t.Errorf("after it was forgotten: %d robots.txt, %d pages; before %d and %d", count(Robots), count(Page), files, pages)
	}
	w.checkManners()
}
