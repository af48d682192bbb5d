package frontier

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// TestSimulation crawls 1,500 hosts in virtual time. The servers hold the crawler to what they were
// promised; TestSoakSimulation does the same with 10,000 hosts, for longer.
func TestSimulation(t *testing.T) {
	for _, c := range simulations {
		c.hosts = 1500
		t.Run(c.name, func(t *testing.T) { simulate(t, c, 10*c.hosts) })
	}
}

// simulation is a web of 10,000 hosts.
type simulation struct {
	name     string
	hosts    int
	perIP    int
	ipDelay  time.Duration
	delays   []time.Duration // Crawl-delays, taken in turn; 0: none
	groups   []int           // hosts on one address, taken in turn
	failures int             // in a thousand answers

	mixed bool // also ranges of addresses, limits of domains, overrides and hours
}

var simulations = []simulation{
	{"hosts bind", 10_000, 4, 0, seconds(0, 5, 10, 20, 40, 60), []int{1, 1, 2, 5, 10}, 2, false},
	{"addresses bind", 10_000, 2, 0, seconds(0, 2, 5, 10), []int{500, 100, 200, 400}, 2, false},
	{"address delays bind", 10_000, 4, time.Second, seconds(0, 2, 5, 10), []int{500, 50, 100, 1}, 2, false},
	{"all there is", 10_000, 4, 0, seconds(0, 5, 10, 20), []int{1, 4, 20, 100}, 2, true},
}

// What a mixed simulation adds.
var (
	mixedDomain = politeness.LimitOptions{InFlight: 2, Delay: 300 * time.Millisecond} // of 25 hosts
	mixedRange  = politeness.LimitOptions{InFlight: 3}                                // of four addresses in sixteen

	mixedOverride = 3 * time.Second // the delay of every seventh host
)

const (
	mixedDomainHosts = 25
	mixedOverridden  = 7
	mixedHours       = 10 // every tenth host has hours
)

func seconds(n ...int) (d []time.Duration) {
	for _, s := range n {
		d = append(d, time.Duration(s)*time.Second)
	}
	return d
}

// simulated is what the servers of a simulation know.
type simulated struct {
	simulation
	*world
	random *rand.Rand
	pages  int             // of each host
	hosts  []simulatedHost // by storage.HostID, from 1
	peers  []simulatedPeer // addresses

	requests, robots, throttled int
	early                       []string
}

// simulatedHost is a host as its server sees it.
type simulatedHost struct {
	peer         int   // its address
	peers        []int // all limits that it counts against: peer, its range instead, its domain
	delay        time.Duration
	hours        politeness.Window // of its Visit-time; zero: it has none
	crawlDelay   time.Duration
	learned      bool // the crawler has read robots.txt
	busy         bool
	end          time.Time // of the last request
	ready        time.Time // when the crawler may come again, by what it was told
	oracle       *politeness.Host
	late, waited time.Duration // lost by the crawler, and waited as it should
	longest      time.Duration // that it was late
	served       int
	throttled    bool // it answered 429 at least once
}

// simulatedPeer is an address, a range or a domain as its servers see it.
type simulatedPeer struct {
	limit               politeness.LimitOptions
	hosts, busy, served int
	ends                time.Time
	idle                time.Time     // since when it would take a request
	late                time.Duration // how long it would have taken requests and none came
}

func simulate(t *testing.T, c simulation, requests int) {
	o := testOptions()
	o.Politeness.PerIP, o.Politeness.IPDelay = c.perIP, c.ipDelay
	s := &simulated{simulation: c, pages: requests / c.hosts * 20, random: rand.New(rand.NewPCG(1, 2))}
	o.Jitter = s.random.Float64
	m := newMemory()
	s.hosts = make([]simulatedHost, 1, c.hosts+1)
	if c.mixed {
		s.mix(&o)
	}
	for i := range c.hosts {
		m.makeUp(weburl.Origin{Scheme: "http", Host: s.name(i), Port: 80}, s.pages)
		s.addHost(c.delays[i%len(c.delays)], &o)
	}
	if c.mixed {
		s.share(&o)
	}
	s.world = newWorld(t, o, m)
	s.quick, s.workers = true, c.hosts
	s.answer, s.started, s.completed = s.serve, s.begins, s.ends
	s.resolve = func(l Lease) ResolveReport {
		return ResolveReport{Addresses: []netip.Addr{s.address(s.hosts[l.Host].peer)}, TTL: 5 * time.Minute}
	}
	s.open()
	began := time.Now()
	for s.requests < requests && s.step(s.now.Add(24*time.Hour)) {
		s.log = s.log[:0]
	}
	s.report(t, time.Since(began))
	checkInvariants(t, s.f)
}

// addHost adds a host to the address that is not full yet.
func (s *simulated) addHost(crawlDelay time.Duration, o *Options) {
	if n := len(s.peers); n == 0 || s.peers[n-1].hosts == s.groups[(n-1)%len(s.groups)] {
		s.peers = append(s.peers, simulatedPeer{limit: o.Politeness.Address()})
	}
	peer := len(s.peers) - 1
	s.peers[peer].hosts++
	s.hosts = append(s.hosts, simulatedHost{
		peer: peer, peers: []int{peer}, delay: o.Politeness.Delay, crawlDelay: crawlDelay,
		oracle: politeness.NewHost(&o.Politeness, politeness.State{}, epoch),
	})
}

// name is the name of a host, counted from 0.
func (s *simulated) name(i int) string {
	if s.mixed {
		return fmt.Sprintf("h%d.d%d.example", i, i/mixedDomainHosts)
	}
	return fmt.Sprintf("h%d.test", i)
}

// address is that of a peer. Four in sixteen lie in a range.
func (s *simulated) address(peer int) netip.Addr {
	if s.mixed && peer%16 < 4 {
		return netip.AddrFrom4([4]byte{10, byte(peer >> 12), byte(peer >> 4), byte(peer % 4)})
	}
	return addressAt(peer)
}

// mix sets what the crawler is told beyond the numbers of the simulation.
func (s *simulated) mix(o *Options) {
	o.Domain = mixedDomain
	slow := o.Politeness
	slow.Delay = mixedOverride
	override := Override{Politeness: slow}
	for i := 0; i < s.simulation.hosts; i += mixedOverridden {
		override.Hosts = append(override.Hosts, s.name(i))
	}
	o.Overrides = []Override{override}
	for i := range 4096 {
		network := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
		o.Ranges = append(o.Ranges, Range{Network: network, Limit: mixedRange, Shared: true})
	}
}

// share adds what the servers of a mixed simulation know: who counts against which limit, who has
// which delay and hours.
func (s *simulated) share(o *Options) {
	ranges, domains := map[int]int{}, map[int]int{}
	limitOf := func(list map[int]int, key int, limit politeness.LimitOptions) int {
		n, known := list[key]
		if !known {
			n = len(s.peers)
			list[key] = n
			s.peers = append(s.peers, simulatedPeer{limit: limit})
		}
		s.peers[n].hosts++
		return n
	}
	for i := range s.simulation.hosts {
		h := &s.hosts[i+1]
		if h.peer%16 < 4 {
			h.peers[0] = limitOf(ranges, h.peer/16, mixedRange)
		}
		h.peers = append(h.peers, limitOf(domains, i/mixedDomainHosts, mixedDomain))
		if i%mixedOverridden == 0 {
			h.delay = mixedOverride
			h.oracle = politeness.NewHost(&o.Overrides[0].Politeness, politeness.State{}, epoch)
		}
		if i%mixedHours == 0 {
			from := uint16(i / mixedHours % 20)
			h.hours = politeness.Window{From: from, To: from + 10}
		}
	}
}

func (s *simulated) serve(l Lease) answer {
	a := answer{took: time.Duration(20+s.random.IntN(180)) * time.Millisecond}
	if l.Kind == Robots {
		a.maxAge = 24 * time.Hour
		a.body = "User-agent: *\nDisallow: /private\n"
		if d := s.hosts[l.Host].crawlDelay; d > 0 {
			a.body += fmt.Sprintf("Crawl-delay: %d\n", int(d.Seconds()))
		}
		if w := s.hosts[l.Host].hours; w.To > 0 {
			a.body += fmt.Sprintf("Visit-time: 00%02d-00%02d\n", w.From, w.To)
		}
		return a
	}
	switch n := s.random.IntN(1000); {
	case n < s.failures/2:
		a.signal, a.state = politeness.SignalThrottled, storage.Retrying
		a.retryAfter = time.Duration(1+s.random.IntN(300)) * time.Second
	case n < s.failures:
		a.signal, a.state = politeness.SignalThrottled, storage.Retrying
	}
	return a
}

// begins is a request that arrives.
func (s *simulated) begins(l Lease) {
	s.requests++
	h := &s.hosts[l.Host]
	if h.busy || s.now.Before(h.ready) {
		s.early = append(s.early, fmt.Sprintf("host %d at %v: busy %v, was to wait until %v", l.Host, s.now.Sub(epoch),
			h.busy, h.ready.Sub(epoch)))
	}
	if minute := uint16(s.now.Hour()*60 + s.now.Minute()); h.learned && h.hours.To > 0 &&
		(minute < h.hours.From || minute >= h.hours.To) {
		s.early = append(s.early, fmt.Sprintf("host %d at %v: its hours are %v", l.Host, s.now.Sub(epoch), h.hours))
	}
	if !h.end.IsZero() {
		late := s.now.Sub(h.oracle.Ready(s.now))
		h.late, h.longest = h.late+late, max(h.longest, late)
		h.waited += s.now.Sub(h.end) - late
	}
	h.busy = true
	h.served++
	for _, n := range h.peers {
		s.arrives(n)
	}
}

// arrives is a request that counts against a limit.
func (s *simulated) arrives(n int) {
	p := &s.peers[n]
	most, delay := p.limit.InFlight, p.limit.Delay
	if p.busy >= most || delay > 0 && (p.busy > 0 || !p.ends.IsZero() && s.now.Before(p.ends.Add(delay))) {
		s.early = append(s.early, fmt.Sprintf("limit %d at %v: %d under way, the last ended at %v", n,
			s.now.Sub(epoch), p.busy, p.ends.Sub(epoch)))
	}
	if !p.idle.IsZero() && s.now.After(p.idle) {
		p.late += s.now.Sub(p.idle)
	}
	p.busy, p.idle = p.busy+1, time.Time{}
	if delay == 0 && p.busy < most {
		p.idle = s.now
	}
	p.served++
}

// ends completes a request. The host's wait is what its responses and its robots.txt demand,
// counted without the crawler's code; that code only measures how late the crawler is.
func (s *simulated) ends(l Lease, a answer) {
	h := &s.hosts[l.Host]
	if l.Kind == Robots {
		s.robots++
		h.learned = true
		requested := politeness.Demands{Delay: h.crawlDelay}
		if h.hours.To > 0 {
			requested.Visits = []politeness.Visit{{Window: h.hours}}
		}
		h.oracle.SetDemands(requested)
	}
	h.oracle.Ended(s.now, politeness.Result{Signal: a.signal, Duration: a.took, RetryAfter: a.retryAfter})
	wait := h.delay
	if h.learned {
		wait = max(wait, h.crawlDelay)
	}
	if a.signal == politeness.SignalThrottled {
		s.throttled++
		h.throttled = true
		wait = max(wait, a.retryAfter)
		if a.retryAfter == 0 {
			wait = max(wait, time.Minute)
		}
	}
	h.busy, h.end, h.ready = false, s.now, s.now.Add(wait)
	for _, n := range h.peers {
		p := &s.peers[n]
		p.busy, p.ends = p.busy-1, s.now
		p.idle = s.now.Add(p.limit.Delay)
	}
}

// report logs figures and checks the promises. An address that its hosts could keep busy all the
// time must be; a host whose address is idle most of the time must be fetched from as soon as it
// may be.
func (s *simulated) report(t *testing.T, took time.Duration) {
	t.Helper()
	for _, e := range s.early[:min(len(s.early), 10)] {
		t.Error("too early: ", e)
	}
	elapsed := s.now.Sub(epoch)
	var hostLate, hostWaited, addressLate, addressTime time.Duration
	var longest time.Duration
	starved, bound, free := 0, 0, 0
	loads := s.loads()
	for i := range s.hosts[1:] {
		h := &s.hosts[i+1]
		if s.load(loads, h) < 0.5 && h.hours.To == 0 {
			free++
			hostLate, hostWaited, longest = hostLate+h.late, hostWaited+h.waited, max(longest, h.longest)
		}
		if longest := s.longestWait(h); h.hours.To == 0 && h.longest > longest || h.hours.To == 0 &&
			h.served < s.pages && !h.busy && s.now.Sub(h.oracle.Ready(s.now)) > longest {
			starved++
		}
	}
	for i := range s.peers {
		// Where hosts count against several limits, one of them may keep them from using up the
		// others.
		if p := &s.peers[i]; loads[i] > 2 && !s.mixed {
			bound++
			addressLate += p.late
			addressTime += elapsed
		}
	}
	t.Logf("%d requests (%d robots.txt, %d times 429) of %d hosts at %d addresses in %v; %.1f us each with the store",
		s.requests, s.robots, s.throttled, len(s.hosts)-1, len(s.peers), elapsed.Round(time.Second),
		float64(took.Microseconds())/float64(s.requests))
	if free > 0 {
		use := 1 - float64(hostLate)/float64(hostLate+hostWaited)
		t.Logf("%d hosts whose own delay binds: %.2f %% of what it allows, at most %v late", free, 100*use, longest)
		assert.AtLeast(t, use, 0.95, "hosts are fetched from too rarely")
	}
	if bound > 0 {
		use := 1 - float64(addressLate)/float64(addressTime)
		t.Logf("%d addresses whose own limit binds: %.2f %% of what it allows", bound, 100*use)
		assert.AtLeast(t, use, 0.95, "addresses are fetched from too rarely")
	}
	assert.AtMost(t, starved, 0, "hosts waited far longer than their turn takes")
	s.fair(t)
}

// longestWait is how long a host may wait beyond its own delay: three rounds of all that share its
// address, and what random backoff adds.
func (s *simulated) longestWait(h *simulatedHost) time.Duration {
	rounds := time.Minute
	for _, n := range h.peers {
		rounds += 3 * time.Duration(s.peers[n].hosts) * s.peers[n].slot() * time.Duration(len(h.peers))
	}
	return rounds
}

// slot is how much of a limit one request takes.
func (p *simulatedPeer) slot() time.Duration {
	const request = 110 * time.Millisecond
	if p.limit.Delay > 0 {
		return p.limit.Delay + request
	}
	return request / time.Duration(p.limit.InFlight)
}

// load is that of the limit of a host that is used most.
func (s *simulated) load(loads []float64, h *simulatedHost) (most float64) {
	for _, n := range h.peers {
		most = max(most, loads[n])
	}
	return most
}

// loads is how much the hosts of each address would use of it if it had no limit: 1 is all that it
// allows.
func (s *simulated) loads() []float64 {
	loads := make([]float64, len(s.peers))
	for i := range s.hosts[1:] {
		h := &s.hosts[i+1]
		for _, n := range h.peers {
			loads[n] += s.peers[n].slot().Seconds() / (max(h.crawlDelay, h.delay).Seconds() + 0.11)
		}
	}
	return loads
}

// fair compares hosts with the same delay at the same address. Those that answered 429 have longer
// waits of their own.
func (s *simulated) fair(t *testing.T) {
	t.Helper()
	type class struct {
		peers string
		delay time.Duration
	}
	served := map[class][]int{}
	for i := range s.hosts[1:] {
		h := &s.hosts[i+1]
		if h.throttled || h.hours.To > 0 {
			continue
		}
		alike := class{fmt.Sprint(h.peers), max(h.delay, h.crawlDelay)}
		served[alike] = append(served[alike], h.served)
	}
	worst := 1.0
	for _, n := range served {
		slices.Sort(n)
		if middle := n[len(n)/2]; middle >= 10 {
			worst = min(worst, float64(n[len(n)/20])/float64(middle))
		}
	}
	t.Logf("the least served twentieth of hosts alike had %.0f %% of what the middle one had", 100*worst)
	assert.AtLeast(t, worst, 0.3, "hosts alike are not treated alike")
}
