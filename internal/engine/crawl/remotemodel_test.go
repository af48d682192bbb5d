package crawl

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// leaseModel is what remote leases should do, as a plain map: who has which URL, until when. It
// drives a crawl and compares.
type leaseModel struct {
	t     *testing.T
	rt    *rapid.T
	web   *testweb.Web
	o     Options
	run   *remoteRun
	urls  map[string]*modelURL
	ended []modelLease // they were reported, given back or ran out
}

// modelURL is what the model knows of a URL.
type modelURL struct {
	host  string
	done  bool
	lease *modelLease // nil: nobody has it
}

// modelLease is a lease of the model.
type modelLease struct {
	remote.Lease
	fetcher string
}

// modelDelay is the delay of all hosts of the model.
const modelDelay = 3 * time.Second

// expire ends the leases whose deadline has passed.
func (m *leaseModel) expire() {
	for _, u := range m.urls {
		if u.lease != nil && !time.Now().Before(u.lease.Deadline) {
			m.ended = append(m.ended, *u.lease)
			u.lease = nil
		}
	}
}

// Take takes leases: of URLs that nobody has, one of a host at a time.
func (m *leaseModel) Take(rt *rapid.T) {
	request := remote.Request{
		Fetcher: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "fetcher"), N: rapid.IntRange(1, 5).Draw(rt, "n"),
		PerHost: rapid.IntRange(1, 3).Draw(rt, "per host"), Wait: seconds(rapid.IntRange(1, 10).Draw(rt, "wait")),
		Visibility: seconds(rapid.IntRange(1, 60).Draw(rt, "visibility")),
	}
	leases := m.run.lease(request)
	m.expire()
	must.True(rt, len(leases) <= request.N, "%d leases, want %d at most", len(leases), request.N)
	for i := range leases {
		l := &leases[i]
		u := m.urls[l.URL.String()]
		switch {
		case u == nil || u.done:
			rt.Fatalf("%s was leased, which is done or not known", l.URL)
		case u.lease != nil:
			rt.Fatalf("%s was leased to %s, and %s has it until %v", l.URL, request.Fetcher, u.lease.fetcher,
				u.lease.Deadline)
		}
		for text, other := range m.urls {
			if other.host == u.host && other.lease != nil {
				rt.Fatalf("%s was leased while %s is in flight to the same host", l.URL, text)
			}
		}
		u.lease = &modelLease{*l, request.Fetcher}
	}
}

// Report reports a lease that is out, as its fetcher or as another one, done or not.
func (m *leaseModel) Report(rt *rapid.T) {
	m.expire()
	u, l := m.pick(rt)
	if l == nil {
		rt.Skip("nothing is out")
	}
	r := remote.Report{
		Fetcher: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "fetcher"), ID: l.ID, Status: 200, HasBody: true,
		NotDone: rapid.Bool().Draw(rt, "not done"), Took: seconds(rapid.IntRange(-1, 90).Draw(rt, "took")),
	}
	if rapid.Bool().Draw(rt, "by url") {
		r.ID, r.URL = "", l.URL
	}
	want := remote.Accepted
	if r.Fetcher != l.fetcher {
		want = remote.Foreign
	}
	m.run.report(r, want)
	if want != remote.Accepted {
		return
	}
	u.done, u.lease = !r.NotDone, nil
	m.ended = append(m.ended, *l)
}

// ReportAgain reports a lease that is out no more.
func (m *leaseModel) ReportAgain(rt *rapid.T) {
	m.expire()
	if len(m.ended) == 0 {
		rt.Skip("no lease has ended")
	}
	l := rapid.SampledFrom(m.ended).Draw(rt, "lease")
	results, err := m.run.Report(m.t.Context(), []remote.Report{{Fetcher: l.fetcher, ID: l.ID, Status: 404}})
	must.True(rt, err == nil && (results[0] == remote.Late || results[0] == remote.Unknown),
		"%s was reported again: %v, %v", l.URL, results, err)
}

// Extend extends a lease that is out.
func (m *leaseModel) Extend(rt *rapid.T) {
	m.expire()
	_, l := m.pick(rt)
	if l == nil {
		rt.Skip("nothing is out")
	}
	by := seconds(rapid.IntRange(1, 60).Draw(rt, "by"))
	at, err := m.run.Extend(m.t.Context(), l.fetcher, []remote.ID{l.ID}, by)
	must.True(rt, err == nil && time.Until(at[0]).Round(time.Millisecond) == by, "extended by %v: %v, %v", by, at, err)
	l.Deadline = at[0]
}

// Sleep lets time pass.
func (m *leaseModel) Sleep(rt *rapid.T) {
	time.Sleep(seconds(rapid.IntRange(1, 40).Draw(rt, "seconds")))
}

// Restart ends the process and starts another one.
func (m *leaseModel) Restart(*rapid.T) {
	m.run.end()
	m.run = startRemote(m.t, m.o)
}

// Kill goes on with what the disk has at this moment, as after kill -9.
func (m *leaseModel) Kill(*rapid.T) {
	m.o.DataDir = copyOfDisk(m.t, m.o.DataDir, m.run.end)
	m.run = startRemote(m.t, m.o)
}

// copyOfDisk copies what the disk has of a crawl at this moment, ends the crawl, and removes its files: a
// model may kill thousands.
func copyOfDisk(t testing.TB, dir string, end func()) (copied string) {
	t.Helper()
	synctest.Wait()
	copied = t.TempDir()
	must.Do(t, os.CopyFS(copied, os.DirFS(dir)))
	end()
	must.Do(t, os.RemoveAll(dir))
	return copied
}

// pick picks a URL with a lease that does not run out at this moment.
func (m *leaseModel) pick(rt *rapid.T) (*modelURL, *modelLease) {
	var out []string
	for text, u := range m.urls {
		if u.lease != nil {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	slices.Sort(out)
	u := m.urls[rapid.SampledFrom(out).Draw(rt, "url")]
	return u, u.lease
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// finish reports all that is left, and checks that the crawl has all of it.
func (m *leaseModel) finish() {
	for range 500 {
		m.expire()
		left := false
		for _, u := range m.urls {
			if u.lease != nil {
				m.run.report(remote.Report{Fetcher: u.lease.fetcher, ID: u.lease.ID, Status: 200, HasBody: true},
					remote.Accepted)
				u.lease, u.done = nil, true
			}
			left = left || !u.done
		}
		if !left {
			break
		}
		for _, l := range m.run.lease(remote.Request{Fetcher: "a", N: 10, Wait: 2 * time.Minute}) {
			if u := m.urls[l.URL.String()]; u.lease == nil {
				u.lease = &modelLease{l, "a"}
			} else {
				m.rt.Fatalf("%s was leased twice", l.URL)
			}
		}
	}
	m.run.end()
	for text, outcome := range stored(m.t, m.o.DataDir) {
		assert.Equal(m.rt, outcome.State, storage.Fetched, text, outcome)
	}
}

// TestHeavyLeaseModel takes, extends, reports and loses leases at random, with restarts and kills between,
// and compares all of it with a plain map. TestSoakLeaseModel does the same for longer.
func TestHeavyLeaseModel(t *testing.T) {
	t.Parallel()
	checkLeaseModel(t, 12)
}

// checkTimes tries n cases, unless the flag of rapid says how many.
func checkTimes(t *testing.T, n int, check func(*rapid.T)) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == "100" {
		must.Do(t, flag.Set(f.Name, strconv.Itoa(n)))
		defer func() {
			assert.NoError(t, flag.Set(f.Name, "100"))
		}()
	}
	rapid.Check(struct{ rapid.TB }{t}, check)
}

func checkLeaseModel(t *testing.T, n int) {
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		var sites []testweb.Site
		for _, host := range []string{"a.test", "b.test", "c.test"} {
			sites = append(sites, site(host, "", nil, nil))
		}
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
		checkTimes(t, n, func(rt *rapid.T) {
			m := &leaseModel{t: t, rt: rt, web: web, o: testOptions(t, web), urls: make(map[string]*modelURL)}
			m.o.Workers, m.o.ExitWhenDone, m.o.Frontier.MaxAttempts = 0, false, 255
			m.o.Frontier.Politeness.Delay, m.o.Frontier.Politeness.PerHost = modelDelay, 2
			var seeds []string
			for _, host := range []string{"a.test", "b.test", "c.test"} {
				for i := range 6 {
					u := web.URL(host, fmt.Sprintf("/%d", i))
					seeds = append(seeds, u)
					m.urls[u] = &modelURL{host: host}
				}
			}
			m.run = startRemote(t, m.o, seeds...)
			rt.Repeat(map[string]func(*rapid.T){
				"take": m.Take, "take more": m.Take, "report": m.Report, "report again": m.ReportAgain,
				"extend": m.Extend,
				"sleep":  m.Sleep, "restart": m.Restart, "kill": m.Kill,
			})
			m.finish()
		})
	})
}

// behavior is how a fetcher of a chaos test treats a lease.
type behavior int

const (
	honest    behavior = iota
	dies               // before its request, and is never heard of again
	diesAfter          // after its request
	hangs              // until the lease has run out, and reports then
	lies               // about what it got, and when
	twice              // reports twice
	givesBack
	behaviors
)

// TestFetcherChaos: with fetchers that die, hang, lie and report twice, the servers see no gap under
// the delay and nothing that is denied, and each page is fetched at least once.
func TestFetcherChaos(t *testing.T) {
	t.Parallel()
	checkFetcherChaos(t, 2, 10)
}

func checkFetcherChaos(t *testing.T, hosts, pages int) {
	virtually(t, memnet.Options{Latency: 30 * time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		var sites []testweb.Site
		for i := range hosts {
			sites = append(sites, site(fmt.Sprintf("h%d.test", i), "User-agent: *\nCrawl-delay: 2\nDisallow: /secret\n",
				append(paths("/", pages), "/secret/a", "/secret/b"), nil))
		}
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
		o := testOptions(t, web)
		o.GiveUpAfter, o.Frontier.MaxAttempts, o.Frontier.Walls = 1000*time.Hour, 255, false
		o.Workers, o.Frontier.RetryDelay = 2, time.Second
		o.Frontier.Politeness.Delay = time.Second
		r := startRemote(t, o, seedsOf(web, web.Sites())...)
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				chaoticFetcher(r, newTestFetcher(fmt.Sprint("f", i), web), rand.New(rand.NewPCG(1, uint64(i))))
			})
		}
		r.wait()
		wg.Wait()
		log := web.Requests()
		checkPolite(t, log, 2*time.Second)
		checkAudit(t, o)
		seen := make(map[string]bool)
		for _, q := range log.Pages() {
			seen[q.Host+q.Path] = true
			assert.True(t, !strings.HasPrefix(q.Path, "/secret"), "%s%s was requested", q.Host, q.Path)
		}
		for i := range hosts {
			for _, path := range paths("/", pages) {
				assert.True(t, seen[fmt.Sprintf("h%d.test%s", i, path)], "h%d.test%s was never requested", i, path)
			}
		}
	})
}

// chaoticFetcher takes leases and does with them as it likes.
func chaoticFetcher(r *remoteRun, f *testFetcher, random *rand.Rand) {
	for {
		leases, err := r.Lease(r.t.Context(), remote.Request{
			Fetcher: f.name, N: 1 + random.IntN(4), Wait: time.Minute, Visibility: seconds(1 + random.IntN(20)),
		})
		if errors.Is(err, ErrNotRunning) {
			select {
			case <-r.ended:
				return
			case <-time.After(time.Millisecond):
				continue
			}
		}
		if err != nil {
			r.t.Error(err)
			return
		}
		for i := range leases {
			behave(r, f, &leases[i], random)
		}
	}
}

// behave treats one lease in a random way.
func behave(r *remoteRun, f *testFetcher, l *remote.Lease, random *rand.Rand) {
	report := remote.Report{Fetcher: f.name, ID: l.ID, NotDone: true}
	how := behavior(random.IntN(int(behaviors)))
	if time.Until(l.Deadline) < time.Second/2 {
		return // it would not end in time
	}
	if how != dies && how != givesBack {
		report = f.fetch(r.t.Context(), l)
	}
	times := 1
	switch how {
	case dies, diesAfter:
		return
	case hangs:
		time.Sleep(time.Until(l.Deadline) + time.Second)
	case lies:
		report.Links = append(report.Links, "/secret/a", "http://elsewhere.test/", "::", strings.Repeat("x", 10_000))
		report.Took = time.Duration(random.IntN(2)*2-1) * time.Hour
		report.Header.Set("Retry-After", "-7")
		if random.IntN(20) == 0 {
			report.Status, report.HasBody = 503, random.IntN(2) == 0
		}
	case twice:
		times = 2
	}
	for range times {
		if _, err := r.Report(r.t.Context(), []remote.Report{report}); err != nil && !errors.Is(err, ErrNotRunning) {
			r.t.Error(err)
		}
		report.ID += remote.ID(strings.Repeat("x", random.IntN(2)))
	}
}
