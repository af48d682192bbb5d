package frontier

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// TestSimulation crawls 10,000 hosts in virtual time. The servers hold the
// crawler to what they were promised; TestSoakSimulation does the same for longer.
func TestSimulation(t *testing.T) {
	requests := 100_000 // of each simulation
	if raceDetector {
		requests = 30_000
	}
	for _, c := range simulations {
		t.Run(c.name, func(t *testing.T) { simulate(t, c, requests) })
	}
}

// simulation is a web of 10,000 hosts.
type simulation struct {
	name    string
	hosts   int
	perIP   int
	ipDelay time.Duration
	delays  []time.Duration // Crawl-delays, taken in turn; 0: none
	groups  []int           // hosts on one address, taken in turn
	trouble int             // in a thousand answers
}

var simulations = []simulation{
	{"hosts bind", 10_000, 4, 0, seconds(0, 5, 10, 20, 40, 60), []int{1, 1, 2, 5, 10}, 2},
	{"addresses bind", 10_000, 2, 0, seconds(0, 2, 5, 10), []int{500, 100, 200, 400}, 2},
	{"address delays bind", 10_000, 4, time.Second, seconds(0, 2, 5, 10), []int{500, 50, 100, 1}, 2},
}

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

	requests, robots, troubles int
	early                      []string
}

// simulatedHost is a host as its server sees it.
type simulatedHost struct {
	peer       int
	crawlDelay time.Duration
	learned    bool // the crawler has read robots.txt
	busy       bool
	end        time.Time // of the last request
	ready      time.Time // when the crawler may come again, by what it was told
	oracle     *politeness.Host
	late, owed time.Duration // lost by the crawler, and waited as it should
	longest    time.Duration // that it was late
	served     int
	troubled   bool // it said 429 at least once
}

// simulatedPeer is an address as its server sees it.
type simulatedPeer struct {
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
	for i := range c.hosts {
		m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}, s.pages)
		s.addHost(c.delays[i%len(c.delays)], &o)
	}
	s.world = newWorld(t, o, m)
	s.quick, s.workers = true, c.hosts
	s.answer, s.started, s.completed = s.serve, s.begins, s.ends
	s.resolve = func(l Lease) ResolveReport {
		return ResolveReport{Addresses: []netip.Addr{addressAt(s.hosts[l.Host].peer)}, TTL: 5 * time.Minute}
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
		s.peers = append(s.peers, simulatedPeer{})
	}
	peer := len(s.peers) - 1
	s.peers[peer].hosts++
	s.hosts = append(s.hosts, simulatedHost{
		peer: peer, crawlDelay: crawlDelay, oracle: politeness.NewHost(&o.Politeness, politeness.State{}, epoch),
	})
}

func (s *simulated) serve(l Lease) answer {
	a := answer{took: time.Duration(20+s.random.IntN(180)) * time.Millisecond}
	if l.Kind == Robots {
		a.maxAge = 24 * time.Hour
		a.body = "User-agent: *\nDisallow: /private\n"
		if d := s.hosts[l.Host].crawlDelay; d > 0 {
			a.body += fmt.Sprintf("Crawl-delay: %d\n", int(d.Seconds()))
		}
		return a
	}
	switch n := s.random.IntN(1000); {
	case n < s.trouble/2:
		a.signal, a.state, a.retryAfter = politeness.SignalThrottled, storage.Retrying, time.Duration(1+s.random.IntN(300))*time.Second
	case n < s.trouble:
		a.signal, a.state = politeness.SignalThrottled, storage.Retrying
	}
	return a
}

// begins is a request that arrives.
func (s *simulated) begins(l Lease) {
	s.requests++
	h := &s.hosts[l.Host]
	p := &s.peers[h.peer]
	if h.busy || s.now.Before(h.ready) {
		s.early = append(s.early, fmt.Sprintf("host %d at %v: busy %v, was to wait until %v", l.Host, s.now.Sub(epoch), h.busy, h.ready.Sub(epoch)))
	}
	if p.busy >= s.perIP || s.ipDelay > 0 && (p.busy > 0 || !p.ends.IsZero() && s.now.Before(p.ends.Add(s.ipDelay))) {
		s.early = append(s.early, fmt.Sprintf("address %d at %v: %d under way, the last ended at %v", h.peer, s.now.Sub(epoch), p.busy, p.ends.Sub(epoch)))
	}
	if !h.end.IsZero() {
		late := s.now.Sub(h.oracle.Ready(s.now))
		h.late, h.longest = h.late+late, max(h.longest, late)
		h.owed += s.now.Sub(h.end) - late
	}
	if !p.idle.IsZero() && s.now.After(p.idle) {
		p.late += s.now.Sub(p.idle)
	}
	h.busy, p.busy, p.idle = true, p.busy+1, time.Time{}
	if s.ipDelay == 0 && p.busy < s.perIP {
		p.idle = s.now
	}
	h.served++
	p.served++
}

// ends is a request that is answered. The host's wait is what its answers and
// its robots.txt ask for, counted without the crawler's code; only how late the
// crawler comes is measured with it.
func (s *simulated) ends(l Lease, a answer) {
	h := &s.hosts[l.Host]
	p := &s.peers[h.peer]
	if l.Kind == Robots {
		s.robots++
		h.learned = true
		h.oracle.SetAsked(politeness.Asked{Delay: h.crawlDelay})
	}
	h.oracle.Ended(s.now, politeness.Result{Signal: a.signal, Duration: a.took, RetryAfter: a.retryAfter})
	wait := s.o.Politeness.Delay
	if h.learned {
		wait = max(wait, h.crawlDelay)
	}
	if a.signal == politeness.SignalThrottled {
		s.troubles++
		h.troubled = true
		wait = max(wait, a.retryAfter)
		if a.retryAfter == 0 {
			wait = max(wait, time.Minute)
		}
	}
	h.busy, h.end, h.ready = false, s.now, s.now.Add(wait)
	p.busy, p.ends = p.busy-1, s.now
	p.idle = s.now.Add(s.ipDelay)
}

// report prints figures and holds them to what is promised. An address that
// could be kept busy all the time by its hosts has to be; a host whose address
// is idle most of the time has to be asked as soon as it may be.
func (s *simulated) report(t *testing.T, took time.Duration) {
	t.Helper()
	for _, e := range s.early[:min(len(s.early), 10)] {
		t.Error("too early: ", e)
	}
	elapsed := s.now.Sub(epoch)
	var hostLate, hostOwed, addressLate, addressTime time.Duration
	var longest time.Duration
	starved, bound, free := 0, 0, 0
	loads := s.loads()
	for i := range s.hosts[1:] {
		h := &s.hosts[i+1]
		if loads[h.peer] < 0.5 {
			free++
			hostLate, hostOwed, longest = hostLate+h.late, hostOwed+h.owed, max(longest, h.longest)
		}
		if patience := s.patience(h); h.longest > patience || h.served < s.pages && !h.busy && s.now.Sub(h.oracle.Ready(s.now)) > patience {
			starved++
		}
	}
	for i := range s.peers {
		if p := &s.peers[i]; loads[i] > 2 {
			bound++
			addressLate += p.late
			addressTime += elapsed
		}
	}
	t.Logf("%d requests (%d robots.txt, %d times 429) of %d hosts at %d addresses in %v; %.1f us each, the web and the store included",
		s.requests, s.robots, s.troubles, len(s.hosts)-1, len(s.peers), elapsed.Round(time.Second), float64(took.Microseconds())/float64(s.requests))
	if free > 0 {
		use := 1 - float64(hostLate)/float64(hostLate+hostOwed)
		t.Logf("%d hosts whose own delay binds: %.2f %% of what it allows, at most %v late", free, 100*use, longest)
		if use < 0.95 {
			t.Error("hosts are asked too rarely")
		}
	}
	if bound > 0 {
		use := 1 - float64(addressLate)/float64(addressTime)
		t.Logf("%d addresses whose own limit binds: %.2f %% of what it allows", bound, 100*use)
		if use < 0.95 {
			t.Error("addresses are asked too rarely")
		}
	}
	if starved > 0 {
		t.Errorf("%d hosts waited far longer than their turn takes", starved)
	}
	s.fair(t)
}

// patience is how long a host may have to wait beyond its own delay: three
// rounds of all that share its address, and what random back-off adds.
func (s *simulated) patience(h *simulatedHost) time.Duration {
	return 3*time.Duration(s.peers[h.peer].hosts)*s.slot() + time.Minute
}

// slot is how much of an address one request takes.
func (s *simulated) slot() time.Duration {
	const request = 110 * time.Millisecond
	if s.ipDelay > 0 {
		return s.ipDelay + request
	}
	return request / time.Duration(s.perIP)
}

// loads is how much the hosts of each address would use of it if it had no
// limit: 1 is all that it allows.
func (s *simulated) loads() []float64 {
	loads := make([]float64, len(s.peers))
	for i := range s.hosts[1:] {
		h := &s.hosts[i+1]
		loads[h.peer] += s.slot().Seconds() / (max(h.crawlDelay, s.o.Politeness.Delay).Seconds() + 0.11)
	}
	return loads
}

// fair compares hosts with the same delay at the same address. Those that said
// 429 have longer waits of their own.
func (s *simulated) fair(t *testing.T) {
	t.Helper()
	type class struct {
		peer  int
		delay time.Duration
	}
	served := map[class][]int{}
	for i := range s.hosts[1:] {
		h := &s.hosts[i+1]
		if h.troubled {
			continue
		}
		served[class{h.peer, h.crawlDelay}] = append(served[class{h.peer, h.crawlDelay}], h.served)
	}
	worst := 1.0
	for _, n := range served {
		slices.Sort(n)
		if middle := n[len(n)/2]; middle >= 10 {
			worst = min(worst, float64(n[len(n)/20])/float64(middle))
		}
	}
	t.Logf("the least served twentieth of hosts alike had %.0f %% of what the middle one had", 100*worst)
	if worst < 0.3 {
		t.Error("hosts alike are not treated alike")
	}
}
