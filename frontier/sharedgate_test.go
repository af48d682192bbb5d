//go:build !core

package frontier

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// worlds are crawls of one process: several frontiers with hosts in common, one shared gate, one clock. What
// they request is held against plain maps.
type worlds struct {
	t          *testing.T
	sharedGate *SharedGate
	all        []*world
	members    []*Member
	now        time.Time

	perIP   int
	ipDelay time.Duration
	hosts   map[string]*plainHost
	addrs   map[netip.Prefix]*plainHost
	begun   map[string][]int // the worlds of the requests to a host, in order
}

// plainHost is what was seen of a host, or of an address.
type plainHost struct {
	inFlight int
	lastEnd  time.Time
	hold     time.Time // that a response demanded
}

func newWorlds(t *testing.T, since time.Time) *worlds {
	before := Before{}
	if !since.IsZero() {
		before = Before{LastEnd: since, Until: since.Add(RestartDelay)}
	}
	return &worlds{
		t: t, sharedGate: NewSharedGate(time.Second, before), now: epoch, hosts: map[string]*plainHost{},
		addrs: map[netip.Prefix]*plainHost{}, begun: map[string][]int{},
	}
}

// add adds a crawl, which begins now.
func (s *worlds) add(o Options, d disk) *world {
	w, n := newWorld(s.t, o, d), len(s.all)
	member := s.sharedGate.Join(func() {})
	w.o.Gate, w.now, w.quick = member, s.now, n > 0
	w.started = func(l Lease) { s.started(n, &l) }
	w.completed = func(l Lease, a answer) { s.completed(&l, a) }
	s.all, s.members = append(s.all, w), append(s.members, member)
	s.perIP, s.ipDelay = o.Politeness.PerIP, o.Politeness.IPDelay
	return w
}

func plainOf[K comparable](m map[K]*plainHost, key K) *plainHost {
	if m[key] == nil {
		m[key] = new(plainHost)
	}
	return m[key]
}

// limits are the longest delay in force that any frontier knows of a host, and the most requests in
// flight that those allow that make some.
func (s *worlds) limits(name string) (longest time.Duration, most int) {
	most = 1 << 30
	for _, w := range s.all {
		for h := range w.f.hosts.all {
			if h.active == nil || !h.active.loaded || h.active.name != name {
				continue
			}
			k := w.f.gate.terms(h)
			if longest = max(longest, h.active.polite.Delay(s.now)); h.active.inFlight > 0 {
				most = min(most, k.InFlight)
			}
		}
	}
	return longest, most
}

// early reports a request that should not have begun.
func (s *worlds) early(n int, l *Lease, why string, values ...any) {
	s.t.Helper()
	s.t.Errorf("crawl %d requests %s at %v, and %s", n, l.URL, s.now.Sub(epoch), fmt.Sprintf(why, values...))
}

func (s *worlds) started(n int, l *Lease) {
	h, a := plainOf(s.hosts, l.HostName), plainOf(s.addrs, politeness.AddressKey(l.Address))
	delay, most := s.limits(l.HostName)
	if earliest := h.lastEnd.Add(delay); !h.lastEnd.IsZero() && s.now.Before(earliest) {
		s.early(n, l, "the delay of %v ends at %v", delay, earliest.Sub(epoch))
	}
	if s.now.Before(h.hold) {
		s.early(n, l, "its host demands to be left alone until %v", h.hold.Sub(epoch))
	}
	if h.inFlight > 0 && delay > 0 || h.inFlight >= most {
		s.early(n, l, "there are %d requests in flight", h.inFlight)
	}
	if a.inFlight >= s.perIP || s.ipDelay > 0 && a.inFlight > 0 {
		s.early(n, l, "there are %d requests to its address", a.inFlight)
	}
	if !a.lastEnd.IsZero() && s.now.Before(a.lastEnd.Add(s.ipDelay)) {
		s.early(n, l, "its address was used at %v", a.lastEnd.Sub(epoch))
	}
	h.inFlight++
	a.inFlight++
	s.begun[l.HostName] = append(s.begun[l.HostName], n)
}

func (s *worlds) completed(l *Lease, a answer) {
	for _, h := range []*plainHost{s.hosts[l.HostName], s.addrs[politeness.AddressKey(l.Address)]} {
		h.inFlight--
		if !a.notSent {
			h.lastEnd = s.now
		}
	}
	if a.retryAfter > 0 && !a.notSent {
		s.hosts[l.HostName].hold = s.now.Add(a.retryAfter)
	}
}

// run lets all crawls go on for a time, or until nothing happens any more.
func (s *worlds) run(d time.Duration) {
	limit := s.now.Add(d)
	for !s.now.After(limit) {
		for again := true; again; {
			again = false
			for i, w := range s.all {
				for _, id := range s.members[i].Woken() {
					w.f.Admissible(id, s.now)
					w.collect()
				}
				for w.step(s.now) {
					again = true
				}
				again = again || len(s.members[i].woken) > 0
			}
		}
		next := limit.Add(1)
		for _, w := range s.all {
			if at, ok := w.f.NextWake(); ok && w.busy < w.workers && at.Before(next) {
				next = at
			}
			if len(w.events) > 0 && w.events[0].at.Before(next) {
				next = w.events[0].at
			}
		}
		s.now = next
		for _, w := range s.all {
			w.now, w.still = next, 0
		}
	}
}

// left is how many URLs of all crawls wait.
func (s *worlds) left() (n int) {
	for _, w := range s.all {
		must.Do(s.t, w.disk.Hosts(func(h *storage.Host) error {
			b := h.Backlog()
			n += int(b.Queued + b.Due)
			return nil
		}))
	}
	return n
}

// TestSharedGateModel: frontiers with hosts and addresses in common, whose hosts demand this and that, make
// no request too early and none too many, and all of them get on.
func TestSharedGateModel(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newWorlds(t, time.Time{})
		hosts, addresses := 2+r.IntN(6), 1+r.IntN(4)
		o := testOptions()
		o.Politeness.Delay = time.Duration(r.IntN(3)) * time.Second
		o.Politeness.PerHost, o.Politeness.PerIP = 1+r.IntN(3), 1+r.IntN(3)
		o.Politeness.IPDelay = time.Duration(r.IntN(3)) * 300 * time.Millisecond
		s.sharedGate.usual = o.Politeness.Delay
		answerOf := func(l Lease) answer {
			a := answer{took: time.Duration(1+r.IntN(900)) * time.Millisecond}
			if l.Kind == Robots && len(l.HostName)%2 == 0 {
				a.body = fmt.Sprintf("User-agent: *\nCrawl-delay: %d\n", 1+int(l.HostName[1]-'0'))
			}
			switch x := r.IntN(40); {
			case x == 0:
				a.retryAfter, a.signal = time.Duration(1+r.IntN(20))*time.Second, politeness.SignalThrottled
			case x == 1:
				a.notSent = true
			case x == 2:
				a.broken = true
			case x == 3:
				a.signal, a.state = politeness.SignalUnreachable, storage.Retrying
			}
			return a
		}
		enter := func() *world {
			m := newMemory()
			for i := range hosts {
				if r.IntN(4) > 0 {
					name := fmt.Sprintf("h%d.test%s", i, "x"[:i%2])
					m.makeUp(weburl.Origin{Scheme: "http", Host: name, Port: 80}, 1+r.IntN(40))
				}
			}
			w := s.add(o, m)
			w.answer = answerOf
			spread := r.IntN(2) // hosts with several addresses
			w.resolve = func(l Lease) ResolveReport {
				at := int(l.HostName[1]-'0') + spread*r.IntN(2)
				return ResolveReport{Addresses: []netip.Addr{addressAt(at % addresses)}, TTL: time.Minute}
			}
			w.open()
			return w
		}
		for range 2 + r.IntN(3) {
			enter()
		}
		s.run(time.Duration(r.IntN(60)) * time.Second)
		enter() // one that is opened later
		s.run(30 * time.Second)
		gone := r.IntN(len(s.all)) // one that is closed when its requests have ended
		s.all[gone].workers = 0
		s.run(2 * time.Second)
		s.members[gone].Leave(s.now)
		s.all, s.members = append(s.all[:gone:gone], s.all[gone+1:]...),
			append(s.members[:gone:gone], s.members[gone+1:]...)
		s.run(6 * time.Hour)
		assert.AtMost(t, s.left(), 0, "seed", seed, "URLs wait after 6 hours")
		for key, e := range s.sharedGate.entries {
			assert.True(t, e.inFlight == 0 && len(e.waiters) == 0,
				"seed %d: %v: %d requests are in flight and %d wait after the end", seed, key, e.inFlight,
				len(e.waiters))
		}
		must.True(t, !t.Failed(), "seed %d", seed)
	}
}

// TestSharedGateTakesTurns: crawls that want the same host, or the same address, take turns, however many
// there are, and lose no time.
func TestSharedGateTakesTurns(t *testing.T) {
	for _, own := range []bool{false, true} {
		const crawls = 4
		s := newWorlds(t, time.Time{})
		o := testOptions()
		o.Politeness.PerIP, o.Politeness.AdaptiveFactor = 1, 0
		if own {
			o.Politeness.IPDelay = time.Second
		}
		for i := range crawls {
			m, name := newMemory(), "h.test"
			if own {
				name = fmt.Sprintf("h%d.test", i)
			}
			m.makeUp(weburl.Origin{Scheme: "http", Host: name, Port: 80}, 5000)
			w := s.add(o, m)
			w.resolve = func(Lease) ResolveReport {
				return ResolveReport{Addresses: []netip.Addr{addressAt(1)}, TTL: time.Hour}
			}
			w.open()
		}
		s.run(20 * time.Minute)
		total, served := 0, make([]int, crawls)
		for _, list := range s.begun {
			for _, n := range list {
				total++
				served[n]++
			}
		}
		if least := 20 * 60 * 10 / 11 * 95 / 100; total < least { // 100 ms for each request, and a second of delay
			t.Errorf("hosts of their own: %t: %d requests in 20 minutes, want %d", own, total, least)
		}
		for n := range crawls {
			assert.AtLeast(t, served[n], total/crawls*9/10, "hosts of their own", own, "crawl", n, "made", total,
				"requests")
		}
	}
}

// TestWaitForGateIsNoHold: a crawl that waits for the request of another one is not finished, however
// short the time is after which it gives up hosts. What the host then demands is a hold.
func TestWaitForGateIsNoHold(t *testing.T) {
	s := newWorlds(t, time.Time{})
	origin := weburl.Origin{Scheme: "http", Host: "h.test", Port: 80}
	for range 2 {
		m := newMemory()
		m.makeUp(origin, 10)
		w := s.add(testOptions(), m)
		w.answer = func(l Lease) answer {
			if l.Kind != Page {
				return answer{took: time.Millisecond}
			}
			return answer{took: 10 * time.Minute, signal: politeness.SignalThrottled, state: storage.Retrying,
				retryAfter: 2 * time.Hour}
		}
		w.open()
	}
	finished := func(want ...bool) {
		t.Helper()
		for n, w := range s.all {
			assert.Equal(t, w.f.Finished(s.now, time.Second), want[n], "at", s.now.Sub(epoch), "crawl", n,
				"is finished")
		}
	}
	s.run(5 * time.Minute)
	finished(false, false)
	s.run(15 * time.Minute)
	finished(true, true)
}

// TestSharedGateSince: after the start of a process whose predecessors had several crawls, each host has
// its delay from the start, and RestartDelay at least.
func TestSharedGateSince(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{time.Second: RestartDelay, time.Minute: time.Minute} {
		s := newWorlds(t, epoch)
		o := testOptions()
		o.Politeness.Delay = delay
		m := newMemory()
		m.makeUp(weburl.Origin{Scheme: "http", Host: "h.test", Port: 80}, 2)
		var first time.Time
		w := s.add(o, m)
		w.answer = func(Lease) answer {
			if first.IsZero() {
				first = s.now
			}
			return answer{took: time.Millisecond}
		}
		w.open()
		s.run(time.Hour)
		assert.Equal(t, first.Sub(epoch), want, "with a delay of", delay, "the first request is at")
	}
}

// TestSharedGateKnows: what a frontier has stored of a host, and what an operator says of it, counts
// for all others, also if that frontier makes no request.
func TestSharedGateKnows(t *testing.T) {
	const demanded, commanded = 20 * time.Second, 50 * time.Second
	s := newWorlds(t, time.Time{})
	o := testOptions()
	first := newMemory()
	first.makeUp(weburl.Origin{Scheme: "http", Host: "h.test", Port: 80}, 100)
	w := s.add(o, first)
	w.answer = func(l Lease) answer {
		return answer{took: time.Millisecond, body: "User-agent: *\nCrawl-delay: 20\n"}
	}
	w.open()
	s.run(time.Minute)
	s = newWorlds(t, time.Time{})
	w = s.add(o, first)
	w.workers = 0
	w.open()
	second := newMemory()
	second.makeUp(weburl.Origin{Scheme: "http", Host: "h.test", Port: 80}, 1000)
	other := s.add(o, second)
	var starts []time.Time
	other.answer = func(l Lease) answer {
		starts = append(starts, s.now)
		return answer{took: time.Millisecond}
	}
	other.open()
	check := func(least time.Duration) {
		t.Helper()
		must.True(t, len(starts) >= 5, "%d requests", len(starts))
		for i := range starts[1:] {
			gap := starts[i+1].Sub(starts[i])
			assert.True(t, gap >= least && gap <= least+5*time.Second, "%v between two requests, want %v", gap, least)
		}
	}
	s.run(5 * time.Minute)
	check(demanded)
	host, err := first.HostByID(1)
	if err == nil {
		err = w.f.Control(&host, nil, Command{Kind: CommandDelay, Delay: commanded}, s.now)
	}
	must.Do(t, err)
	w.collect()
	s.run(2 * time.Minute) // until it is loaded, and the wait under way is over
	starts = nil
	s.run(10 * time.Minute)
	check(commanded)
}

// TestTicketKeepsWhatIsFree: a request that waits for its host keeps nothing from others at its address;
// one that waits for the address only keeps the host.
func TestTicketKeepsWhatIsFree(t *testing.T) {
	sharedGate, now := NewSharedGate(0, Before{}), epoch
	a, b, c := sharedGate.Join(func() {}), sharedGate.Join(func() {}), sharedGate.Join(func() {})
	request := func(host string) *GateRequest {
		r := &GateRequest{ID: 1, Host: host, Now: now, HostTerms: HostTerms{InFlight: 1}}
		r.Limits = make([]GateLimit, limitClasses)
		r.Limits[byAddress] = GateLimit{
			Key: LimitKey{Network: politeness.AddressKey(addressAt(1))}, Options: politeness.LimitOptions{InFlight: 1},
		}
		return r
	}
	b.Tell("slow.test", HostTerms{Delay: time.Minute, Until: now.Add(time.Minute)}, now)
	if got := a.Begin(request("slow.test")); got.OK || !got.OfHost || !got.Again.Equal(now.Add(time.Minute)) {
		t.Errorf("slow.test has a hold of a minute: %+v", got)
	}
	got := c.Begin(request("fast.test"))
	assert.True(t, got.OK, "nobody uses the address of fast.test: %+v", got)
	now = now.Add(time.Minute)
	if got := a.Begin(request("slow.test")); got.OK || got.OfHost {
		t.Errorf("the address is in use: %+v", got)
	}
	elsewhere := request("slow.test")
	elsewhere.Limits[byAddress].Key.Network = politeness.AddressKey(addressAt(2))
	if got := b.Begin(elsewhere); got.OK || !got.OfHost {
		t.Errorf("an older request waits for slow.test: %+v", got)
	}
	c.End(request("fast.test"), GateEnd{At: now, Made: true})
	if got := a.Begin(request("slow.test")); !got.OK {
		t.Errorf("host and address are free: %+v", got)
	}
}

// forgetting is a Gate that notes which hosts were forgotten last, and not told of again.
type forgetting struct {
	Gate
	forgotten map[string]bool
}

func (g *forgetting) Forget(host string, now time.Time) {
	g.forgotten[host] = true
	g.Gate.Forget(host, now)
}

func (g *forgetting) Tell(host string, k HostTerms, now time.Time) {
	if !k.LastEnd.IsZero() {
		delete(g.forgotten, host)
	}
	g.Gate.Tell(host, k, now)
}

// TestGateForgetsTheDeleted: when the last URL of a host that is in memory is deleted, the gate forgets the host,
// whatever it was told meanwhile.
func TestGateForgetsTheDeleted(t *testing.T) {
	s := newWorlds(t, time.Time{})
	o := testOptions()
	o.Batches, o.NoRobots, o.NoLookups = true, true, true
	m := newMemory()
	m.makeUp(weburl.Origin{Scheme: "http", Host: "h.test", Port: 80}, 100)
	w := s.add(o, m)
	gate := &forgetting{Gate: w.o.Gate, forgotten: make(map[string]bool)}
	w.o.Gate = gate
	w.answer = func(Lease) answer { return answer{took: time.Millisecond} }
	w.open()
	s.run(5 * time.Millisecond) // the first request
	h := w.f.hosts.get(1)
	must.True(t, h.active != nil && h.active.name != "", "the host is not in memory")
	w.f.ForgetRequests(1, "h.test")
	gate.Tell("h.test", HostTerms{LastEnd: s.now}, s.now) // of a request that has just ended
	w.f.applyHostChange(&storage.HostChange{Host: 1, Tail: h.active.tail}, w.f.instant(s.now))
	assert.True(t, gate.forgotten["h.test"], "the gate knows a host without URLs")
}
