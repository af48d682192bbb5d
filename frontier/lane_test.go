package frontier

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// TestLane: which lane a host is in after what came of its requests.
func TestLane(t *testing.T) {
	const ms = time.Millisecond
	ok := func(n int, took time.Duration) (all []Report) {
		return slices.Repeat([]Report{{Duration: took}}, n)
	}
	failed := func(took time.Duration) []Report {
		return []Report{{Duration: took, Signal: politeness.SignalUnreachable}}
	}
	serverError := []Report{{Duration: 50 * ms, Signal: politeness.SignalServerError}}
	brokenOff := []Report{{Duration: time.Minute, Signal: politeness.SignalAborted}}
	long := failed(3 * time.Second)
	alternating := slices.Repeat(append(long, ok(1, 100*ms)...), 20)
	for _, c := range []struct {
		name    string
		usual   time.Duration // that a request of the crawl takes; 0: 0.2 s
		reports [][]Report
		want    lane
	}{
		{"never fetched from", 0, nil, untried},
		{"a few answers", 0, [][]Report{ok(enoughAnswers-1, 100*ms)}, untried},
		{"quick answers", 0, [][]Report{ok(enoughAnswers, 100*ms)}, quick},
		{"errors of the server", 0, [][]Report{slices.Repeat(serverError, 10)}, quick},
		{"slow answers", 0, [][]Report{ok(20, 3*time.Second)}, slow},
		{"slow answers in a slow crawl", 2 * time.Second, [][]Report{ok(20, 3*time.Second)}, quick},
		{"very slow answers in a slow crawl", 20 * time.Second, [][]Report{ok(20, 6*time.Second)}, slow},
		{"one slow answer", 0, [][]Report{ok(10, 100*ms), ok(1, 2*time.Second)}, quick},
		{"no answer for long", 0, [][]Report{ok(50, 100*ms), long}, slow},
		{"no answer for long, a while ago", 0, [][]Report{ok(50, 100*ms), long, ok(quickToRecover, 100*ms)}, quick},
		{"refused at once", 0, [][]Report{ok(50, 100*ms), failed(ms)}, quick},
		{"broken off by the crawler", 0, [][]Report{ok(50, 100*ms), brokenOff}, quick},
		{"every second answer", 0, [][]Report{alternating}, slow},
		{"never an answer", 0, [][]Report{long}, slow},
	} {
		o := testOptions()
		o.Workers = 8
		f := must.Get(New(o, NewScope(ModeAny, nil, nil), epoch))(t)
		h := f.hosts.ensure(1)
		for _, r := range slices.Concat(c.reports...) {
			f.lanes.recordLatency(h, &r)
			f.lanes.traffic.meanLatency = max(float64(c.usual/ms), 200)
		}
		assert.Equal(t, f.lanes.of(h), c.want, c.name, "lane", h)
	}
}

// TestLaneAfterRestart: what the store knows of a host counts for its lane.
func TestLaneAfterRestart(t *testing.T) {
	for _, c := range []struct {
		name    string
		state   politeness.State
		fetched uint32
		want    lane
	}{
		{"never fetched from", politeness.State{}, 0, untried},
		{"requested, nothing fetched", politeness.State{LastEnd: epoch, LastResponse: time.Second / 10}, 0, untried},
		{"quick", politeness.State{LastEnd: epoch, LastResponse: time.Second / 10}, 100, quick},
		{"slow", politeness.State{LastEnd: epoch, LastResponse: 4 * time.Second}, 100, slow},
		{"failing", politeness.State{LastEnd: epoch, LastResponse: time.Second / 10, Failures: 1}, 100, slow},
	} {
		o := testOptions()
		o.Workers = 8
		f := must.Get(New(o, NewScope(ModeAny, nil, nil), epoch))(t)
		s := plain(1, 200)
		s.Counts[storage.Fetched] = c.fetched
		s.Politeness, _ = c.state.AppendBinary(nil)
		must.Do(t, f.Restore(&s, epoch))
		assert.Equal(t, f.hosts.get(1).lane, c.want, c.name, "lane")
	}
}

// tarpits is a world with good hosts that take a tenth of a second, which were known before, and as
// many hosts as wanted that keep each request for half a minute and do not answer. It notes the
// most requests that were under way to these at a time.
type tarpits struct {
	*world
	most, bad int
}

func newTarpits(t *testing.T, workers, good, n int, change func(*Options)) *tarpits {
	o := testOptions()
	o.Workers = workers
	if change != nil {
		change(&o)
	}
	w := &tarpits{world: newWorld(t, o, newMemory())}
	w.workers, w.quick, w.stalls = workers, true, true
	for i := range good {
		w.add(urls(fmt.Sprintf("http://good%d.test/", i), 1000)...)
	}
	bad := func(l Lease) bool { return strings.HasPrefix(l.HostName, "bad") }
	w.answer = func(l Lease) answer {
		if bad(l) {
			a := answer{took: 30 * time.Second, signal: politeness.SignalUnreachable}
			a.state, a.failure = storage.Retrying, robots.FailureTimeout
			return a
		}
		return answer{took: 100 * time.Millisecond}
	}
	w.started = func(l Lease) {
		if bad(l) {
			w.bad++
			w.most = max(w.most, w.bad)
		}
	}
	w.completed = func(l Lease, _ answer) {
		if bad(l) {
			w.bad--
		}
	}
	w.open()
	w.run(20 * time.Second)
	w.log = nil
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("http://bad%d.test/", i))
	}
	w.add(all...)
	return w
}

// TestTarpitsKeepNoGoodHostWaiting: good hosts are fetched from at their pace, however many others
// keep workers for as long as they can; those have a part of the workers and no more.
func TestTarpitsKeepNoGoodHostWaiting(t *testing.T) {
	const workers, good, lasts = 16, 6, 5 * time.Minute
	w := newTarpits(t, workers, good, 500, nil)
	began := w.now
	w.run(lasts)
	w.checkManners()
	for host, n := range w.served() {
		if least := int(lasts/(1100*time.Millisecond)) * 98 / 100; strings.HasPrefix(host, "good") && n < least {
			t.Errorf("%s: %d pages, want %d at least", host, n, least)
		}
	}
	assert.Equal(t, w.most, workers-good, "up requests to tarpits were under way")
	tried, last, again, againThen := map[string]int{}, began, 0, 0
	for _, r := range w.log {
		switch {
		case !strings.HasPrefix(r.host, "bad"):
		case tried[r.host] == 0:
			tried[r.host], last, againThen = 1, r.start, again
		default:
			tried[r.host]++
			again++
		}
	}
	// Ten at a time, two seconds and a quarter each. One request in eight goes to a host that was
	// fetched from before.
	if took := last.Sub(began); took > 150*time.Second || againThen == 0 || againThen > 500/7 {
		t.Errorf("it took %v to fetch from every host once, and %d a second time meanwhile", took, againThen)
	}
	assert.Equal(t, len(tried), 500, "tarpits were fetched from")
	for host, n := range tried {
		if n > 4 { // robots.txt at once and after 1, 2, and 4 minutes
			t.Errorf("%s was fetched from %d times", host, n)
		}
	}
}

// TestSaturated: where the good hosts alone have use for all workers, the others get an eighth of
// the time, whatever the number of workers, and half of that while they do not answer.
func TestSaturated(t *testing.T) {
	for _, c := range []struct {
		answer      bool
		workers     []int
		good, other float64 // the least parts of what good hosts have alone, and of the time
	}{{false, []int{1, 2, 8, 16}, 0.92, 0.025}, {true, []int{1, 2}, 0.8, 0.1}} {
		for _, workers := range c.workers {
			w := newTarpits(t, workers, workers+4, 200, func(o *Options) { o.Politeness.Delay = 0 })
			w.stalls = false
			if silent := w.answer; c.answer {
				w.answer = func(l Lease) answer {
					a := silent(l)
					return answer{took: a.took}
				}
				w.f.lanes.traffic.lost = lostTime{all: 1000} // it is known that they answer
			}
			const lasts = time.Minute
			w.run(lasts)
			pages, others := 0, time.Duration(0)
			for _, r := range w.log {
				if strings.HasPrefix(r.host, "good") {
					pages++
				} else {
					others += r.end.Sub(r.start)
				}
			}
			all := workers * int(lasts/(100*time.Millisecond))
			assert.AtLeast(t, float64(pages)/float64(all), c.good, workers, "workers, answers", c.answer,
				"good hosts of the pages that they would have alone")
			assert.AtLeast(t, float64(others)/float64(lasts)/float64(workers), c.other, workers, "workers, answers",
				c.answer, "the others of the time")
		}
	}
}

// TestNoReservationInAClosedLane: hosts that have to wait for their lane do not keep an address
// that they share with others.
func TestNoReservationInAClosedLane(t *testing.T) {
	const lasts = 3 * time.Minute
	w := newTarpits(t, 4, 1, 300, func(o *Options) { o.Politeness.PerIP = 1 })
	w.resolve = func(l Lease) ResolveReport {
		to := int(l.Host) // one in two shares the address of the good host
		if l.Host%2 == 0 {
			to = 1
		}
		return ResolveReport{Addresses: []netip.Addr{addressAt(to)}, TTL: time.Hour}
	}
	w.run(lasts)
	w.checkManners()
	// In turn with the others at its address. Each takes two seconds and a bit.
	assert.AtLeast(t, w.served()["good0.test"], int(lasts/(3500*time.Millisecond)), "pages at least")
}

// TestStalledAtAnAddress: hosts that keep an address which they share make way for the others
// there, though there are workers enough.
func TestStalledAtAnAddress(t *testing.T) {
	const lasts = 3 * time.Minute
	w := newTarpits(t, 64, 1, 5, func(o *Options) { o.Politeness.PerIP = 1 })
	w.resolve = func(Lease) ResolveReport {
		return ResolveReport{Addresses: []netip.Addr{addressAt(1)}, TTL: time.Hour}
	}
	w.run(lasts)
	w.checkManners()
	assert.AtLeast(t, w.served()["good0.test"], int(lasts/(3500*time.Millisecond)), "pages at least")
}

// TestStalled: requests are ended where others wait, as many as wait, the oldest first, and none
// before the stall time of its host.
func TestStalled(t *testing.T) {
	w := newTarpits(t, 8, 0, 8, nil)
	w.run(time.Minute)
	assert.AtMost(t, len(w.broken), 0, "requests were broken off where nobody waited")
	w = newTarpits(t, 8, 0, 20, nil)
	w.run(29 * time.Second)
	assert.Equal(t, len(w.broken), 12, "requests were broken off for 12 hosts that waited")
	assert.True(t, slices.IsSortedFunc(w.broken, func(a, b Lease) int { return a.At.Compare(b.At) }),
		"not the oldest first")
	for _, r := range w.log {
		lasted := r.end.Sub(r.start)
		assert.True(t, lasted > minStall && lasted <= minStall+2*time.Second, "%v lasted %v", r, lasted)
	}
	none := w.f.Stalled(w.now, func(uint64, time.Duration, time.Duration) bool { return false })
	assert.AtMost(t, len(none), 0, "requests that bring something are stalled")

	// The more often a host brought nothing, the longer it is waited for; and a host that always
	// takes long, as long as it takes.
	for lost, want := range map[float64]string{
		900: "[2s 4s 8s 16s 32s] 32s", 100: "[5s 5s 8s 16s 32s] 32s",
	} {
		w.f.lanes.traffic.lost.unanswered, w.f.lanes.traffic.lost.all = lost, 1000
		h := host{latency: 100}
		var waits []time.Duration
		for h.unanswered = range maxUnanswered + 1 {
			waits = append(waits, time.Duration(w.f.lanes.stallTime(&h)))
		}
		got := fmt.Sprint(waits, time.Duration(w.f.lanes.stallTime(&host{latency: 8000})))
		assert.Equal(t, got, want, "lost time", lost, "patience")
	}
}

// TestSlowHostsAmongMany: healthy hosts that take three seconds for a page, and answer robots.txt at
// once, are not broken off, however many other hosts that answer wait for a worker. In a crawl full
// of tarpits one may be, once.
func TestSlowHostsAmongMany(t *testing.T) {
	for _, tarpits := range []bool{false, true} {
		o := testOptions()
		o.Workers = 16
		w := newWorld(t, o, newMemory())
		w.workers, w.quick, w.stalls = o.Workers, true, true
		for i := range 3000 {
			w.add(urls(fmt.Sprintf("http://h%d.test/", i), 2)...)
			if i == 1000 {
				for slow := range 9 {
					w.add(urls(fmt.Sprintf("http://slow%d.test/", slow), 3)...)
				}
			}
		}
		w.answer = func(l Lease) answer {
			switch {
			case tarpits && l.Host%2 == 1 && !strings.HasPrefix(l.HostName, "slow"):
				return answer{took: 30 * time.Second, signal: politeness.SignalUnreachable, state: storage.Retrying}
			case l.Kind == Page && strings.HasPrefix(l.HostName, "slow"):
				return answer{took: 3 * time.Second}
			}
			return answer{took: 100 * time.Millisecond}
		}
		w.open()
		w.run(20 * time.Minute)
		w.checkManners()
		broken := make(map[string]int)
		for _, l := range w.broken {
			if strings.HasPrefix(l.HostName, "slow") {
				broken[l.HostName]++
			}
		}
		for host, n := range broken {
			assert.True(t, tarpits && n <= 1, "tarpits %t: %d requests to %s are broken off", tarpits, n, host)
		}
		for i := range 9 {
			n := w.served()[fmt.Sprintf("slow%d.test", i)]
			assert.True(t, tarpits || n >= 3, "slow%d.test: %d pages of 3", i, n)
		}
	}
}

// TestReadingIsNotStalled: a response that is still read is not broken off, though others wait for the
// worker.
func TestReadingIsNotStalled(t *testing.T) {
	o := testOptions()
	o.Workers = 1
	w := newWorld(t, o, newMemory())
	w.workers, w.stalls = 1, true
	w.add("http://a.test/", "http://b.test/")
	w.answer = func(Lease) answer { return answer{took: 100 * time.Millisecond, reading: time.Minute} }
	w.open()
	w.run(time.Hour)
	assert.True(t, len(w.broken) == 0 && len(w.pages()) == 2, "%v are broken off, %q fetched", w.broken, w.pages())
}

// TestGoodHostsThatTurn: hosts that have answered well for a while and then keep all requests make
// way for each other and for those that still answer, and are found out.
func TestGoodHostsThatTurn(t *testing.T) {
	const workers, good, turned = 16, 4, 200
	o := testOptions()
	o.Workers = workers
	w := newWorld(t, o, newMemory())
	w.workers, w.quick, w.stalls = workers, true, true
	for i := range good {
		w.add(urls(fmt.Sprintf("http://good%d.test/", i), 1000)...)
	}
	for i := range turned {
		w.add(urls(fmt.Sprintf("http://turned%d.test/", i), 50)...)
	}
	from := epoch.Add(20 * time.Second)
	w.answer = func(l Lease) answer {
		if strings.HasPrefix(l.HostName, "turned") && w.now.After(from) {
			return answer{took: 30 * time.Second, signal: politeness.SignalUnreachable, state: storage.Retrying}
		}
		return answer{took: 10 * time.Millisecond}
	}
	w.open()
	w.run(20 * time.Second)
	before := w.served()["good0.test"]
	w.run(80 * time.Second) // in which all are found out: half of the workers wait for 30 s, the others 2 s each
	w.log = nil
	w.run(2 * time.Minute)
	for host, n := range w.served() {
		assert.True(t, !strings.HasPrefix(host, "good") || n >= 2*60*95/100,
			"%s: %d pages in two minutes, %d before the others turned", host, n, before)
	}
	assert.Equal(t, w.f.lanes.traffic.hosts[quick], good, "hosts are quick")
}

// TestDormantHostsComeBack: names without an address do not keep a host that was resolved before
// from becoming active, however many they are.
func TestDormantHostsComeBack(t *testing.T) {
	o := testOptions()
	o.Workers, o.ActiveHosts = 8, 10
	o.Politeness.Delay = 10 * time.Second
	m := newMemory()
	w := newWorld(t, o, m)
	w.workers, w.quick = 8, true
	w.add(urls("http://live.test/", 200)...)
	w.resolve = func(l Lease) ResolveReport {
		if l.HostName == "live.test" {
			return ResolveReport{Addresses: []netip.Addr{addressAt(1)}, TTL: time.Hour}
		}
		return ResolveReport{Reason: 70}
	}
	w.nameTakes = func(l Lease) time.Duration {
		if l.HostName == "live.test" {
			return 10 * time.Millisecond
		}
		return 10 * time.Second
	}
	w.open()
	w.run(time.Minute)
	for i := range 2000 {
		m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("dead%d.test", i), Port: 80}, 1)
	}
	for i := range 2000 {
		h := must.Get(m.HostByID(storage.HostID(2 + i)))(t)
		must.Do(t, w.f.Restore(&h, w.now))
	}
	w.log = nil
	w.run(10 * time.Minute)
	assert.AtLeast(t, len(w.pages()), 55, "pages in ten minutes")
}

// TestLateFoundHosts: hosts that are found when others keep all workers busy are not kept from
// their turn by what was spent on tarpits while nobody else had use for the workers.
func TestLateFoundHosts(t *testing.T) {
	const good = 25
	w := newTarpits(t, 16, 0, 300, func(o *Options) { o.Politeness.Delay = 0 })
	for i := range good {
		w.add(urls(fmt.Sprintf("http://good%d.test/", i), 1200)...)
	}
	w.run(2 * time.Minute)
	served := w.served()
	for i := range good {
		assert.AtLeast(t, served[fmt.Sprintf("good%d.test", i)], 100, "pages")
	}
}
