package node

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// sites are hosts: one demands a crawl delay, two have an address in common, and one is quick.
func sites() []testweb.Site {
	robots := map[string]string{"a.test": "User-agent: *\nCrawl-delay: 3\n"}
	groups := map[string]string{"c.test": "shared", "d.test": "shared"}
	var list []testweb.Site
	for _, host := range []string{"a.test", "b.test", "c.test", "d.test"} {
		routes := testweb.Routes{"/robots.txt": testweb.Robots(robots[host])}
		var links []string
		for i := range 12 {
			path := fmt.Sprintf("/%d", i)
			routes[path] = testweb.Slow(time.Duration(i*37)*time.Millisecond, testweb.Page(path))
			links = append(links, path)
		}
		routes["/"] = testweb.Page(host, links...)
		list = append(list, testweb.Site{Host: host, Group: groups[host], Handler: routes})
	}
	return list
}

// delays are the least times between two requests to a host, and pages how many each has.
func delays() map[string]time.Duration {
	return map[string]time.Duration{
		"a.test": 3 * time.Second, "b.test": time.Second, "c.test": time.Second, "d.test": time.Second,
	}
}

const pages = 13

// fetching are the options of a node whose crawls fetch from a web in virtual time.
func fetching(t *testing.T, web *testweb.Web) Options {
	o := testOptions(t)
	useWeb(&o, web)
	o.Idle = 30 * time.Second
	o.Crawl.Workers, o.Crawl.ShutdownGrace = 3, 0
	o.Crawl.Frontier.Politeness.Delay, o.Crawl.Frontier.Politeness.AdaptiveFactor = time.Second, 0
	o.Crawl.Frontier.Politeness.PerIP, o.Crawl.Frontier.Politeness.IPDelay = 1, 400*time.Millisecond
	return o
}

// checkAtServer holds what the servers saw against the delays, the shared address and the workers.
func checkAtServer(t *testing.T, log testweb.Log, workers int) {
	t.Helper()
	for host, delay := range delays() {
		for _, g := range log.Host(host).ShortGaps(delay) {
			t.Errorf("%s: %v between %s and %s, want %v", host, g.Length, g.Before.Path, g.After.Path, delay)
		}
	}
	shared := log.Filter(func(q testweb.Request) bool { return q.Host == "c.test" || q.Host == "d.test" })
	for _, g := range shared.ShortGaps(400 * time.Millisecond) {
		t.Errorf("the shared address: %v between %s%s and %s%s",
			g.Length, g.Before.Host, g.Before.Path, g.After.Host, g.After.Path)
	}
	assert.AtMost(t, log.MaxInFlight(), workers, "requests at a time, with workers")
}

// inVirtualTime runs a test in virtual time with a web.
func inVirtualTime(t *testing.T, test func(t *testing.T, web *testweb.Web)) {
	t.Helper()
	offline(t)
	synctest.Test(t, func(t *testing.T) {
		web := testweb.Serve(t, testweb.Config{
			Network: memnet.New(memnet.Options{Latency: time.Millisecond}), Sites: sites(),
		})
		test(t, web)
	})
}

// TestOnePoliteness: several crawls of the same hosts are as polite together as one, within the same
// number of requests in flight, and each of them fetches all pages. Those that are done are closed.
func TestOnePoliteness(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, web *testweb.Web) {
		o := fetching(t, web)
		n := start(t, o)
		defer n.stop()
		ids := []string{Default, "x", "y", "z"}
		for i, id := range ids {
			for host := range maps.Keys(delays()) {
				n.add(t, id, web.URL(host, "/"))
			}
			time.Sleep(time.Duration(i) * 7 * time.Second)
		}
		time.Sleep(time.Hour)
		for _, id := range ids[1:] {
			assert.True(t, !n.isOpen(id), "%s is done and open", id)
		}
		log := web.Requests()
		checkAtServer(t, log, o.Crawl.Workers)
		for _, host := range web.Sites() {
			assert.Equal(t, len(log.Host(host).Pages()), pages*len(ids), host, "pages")
		}
		assert.AtMost(t, len(log.BeforeRobots()), 0, "before robots.txt", log.BeforeRobots())
	})
}

// TestMaxRateOfAll: the requests a second are those of all crawls together.
func TestMaxRateOfAll(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, web *testweb.Web) {
		o := fetching(t, web)
		o.Crawl.MaxRate = 0.5
		n := start(t, o)
		defer n.stop()
		for _, id := range []string{Default, "x", "y"} {
			for host := range maps.Keys(delays()) {
				n.add(t, id, web.URL(host, "/"))
			}
		}
		time.Sleep(time.Hour)
		log := web.Requests()
		checkAtServer(t, log, o.Crawl.Workers)
		for i := range log[1:] {
			assert.AtLeast(t, log[i+1].Start.Sub(log[i].Start), 2*time.Second-2*time.Millisecond,
				"between two requests")
		}
		assert.Equal(t, len(log.Pages()), 3*4*pages, "pages")
	})
}

// TestHeavyKilledTogether: a process with several crawls that dies at any moment, and another one that goes
// on, make no request too early either. The death is one of kill -9: the files are as they are at a
// moment, and what is in flight reaches the servers.
func TestHeavyKilledTogether(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		inVirtualTime(t, func(t *testing.T, web *testweb.Web) {
			r := rand.New(rand.NewPCG(seed, 2))
			o := fetching(t, web)
			ids := []string{Default, "x", "y"}
			n := start(t, o)
			for _, id := range ids {
				for host := range maps.Keys(delays()) {
					n.add(t, id, web.URL(host, "/"))
				}
			}
			for range 4 {
				time.Sleep(time.Duration(r.IntN(20_000)) * time.Millisecond)
				synctest.Wait()
				next := o
				next.Crawl.DataDir = copyOf(t, o.Crawl.DataDir)
				next.Crawl.Archive.Dir = filepath.Join(next.Crawl.DataDir, "output")
				n.stop()
				o = next
				n = start(t, o)
			}
			time.Sleep(2 * time.Hour)
			log := web.Requests()
			checkAtServer(t, log, o.Crawl.Workers)
			for _, id := range ids {
				e, release := n.use(t, id, false)
				if c := e.Counters(); c.URLs != 4*pages || e.Status().URLs["fetched"] != 4*pages {
					t.Errorf("%s: %d URLs, %v", id, c.URLs, e.Status().URLs)
				}
				release()
			}
			n.stop()
		})
	}
}

// copyOf copies a data directory.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err != nil || d.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o750)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), b, 0o640)
	}))
	return to
}

// TestSlotsAreShared: with fewer workers than crawls that have something to fetch, each of them
// gets its part.
func TestSlotsAreShared(t *testing.T) {
	t.Parallel()
	offline(t)
	synctest.Test(t, func(t *testing.T) {
		const crawls, each = 5, 40
		var all []testweb.Site
		for i := range crawls {
			routes := testweb.Routes{}
			var links []string
			for j := range each {
				path := fmt.Sprintf("/%d", j)
				routes[path] = testweb.Slow(time.Second, testweb.Page(path))
				links = append(links, path)
			}
			routes["/"] = testweb.Page("/", links...)
			all = append(all, testweb.Site{Host: fmt.Sprintf("h%d.test", i), Handler: routes})
		}
		web := testweb.Serve(t,
			testweb.Config{Network: memnet.New(memnet.Options{Latency: time.Millisecond}), Sites: all})
		o := fetching(t, web)
		o.Crawl.Workers = 2
		o.Crawl.Frontier.Politeness.Delay, o.Crawl.Frontier.Politeness.IPDelay = 0, 0
		n := start(t, o)
		defer n.stop()
		for i, host := range web.Sites() {
			n.add(t, fmt.Sprintf("crawl%d", i), web.URL(host, "/"))
		}
		time.Sleep(time.Minute)
		log := web.Requests()
		for _, host := range web.Sites() {
			assert.AtLeast(t, len(log.Host(host).Pages()), 60*2/crawls*8/10, host, "pages in a minute, its part is",
				60*2/crawls)
		}
		time.Sleep(10 * time.Minute)
		log = web.Requests()
		assert.Equal(t, len(log.Pages()), crawls*(each+1), "pages")
		assert.Equal(t, log.MaxInFlight(), 2, "requests at a time")
	})
}

// TestOptOutOfAll: an opt-out that a command records for the DEFAULT crawl holds for all crawls, those
// that are opened later and after a restart too, until it is removed.
func TestOptOutOfAll(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, web *testweb.Web) {
		o := fetching(t, web)
		n := start(t, o)
		defer func() { n.stop() }()
		add := func(id string) { n.add(t, id, web.URL("a.test", "/"), web.URL("b.test", "/")) }
		add("x")
		time.Sleep(5 * time.Second)
		before := len(web.Requests().Host("b.test"))
		entry := optout.Entry{Scope: optout.ScopeHost, Value: "b.test"}
		must.Do(t, n.Default().AddOptOut(t.Context(), entry))
		quiet := func(when string) {
			t.Helper()
			time.Sleep(time.Minute)
			if got := len(web.Requests().Host("b.test")); before == 0 || got > before+1 { // one was in flight
				t.Errorf("%s: %d requests, %d before", when, got, before)
			}
		}
		quiet("a crawl that is open")
		add("y")
		quiet("a crawl that is opened later")
		n.stop()
		n = start(t, o)
		add("z")
		quiet("after a restart")
		must.Do(t, n.Default().RemoveOptOut(t.Context(), entry.Scope, entry.Value))
		_, release := n.use(t, "x", false) // it had nothing to do, and is closed
		defer release()
		time.Sleep(10 * time.Minute)
		assert.Equal(t, len(web.Requests().Host("b.test").Pages()), pages, "pages when it is removed")
	})
}

// TestOptOutOfWorkers: an opt-out that is recorded for the DEFAULT crawl is in force for the workers of
// another one when that is said, and not some time later.
func TestOptOutOfWorkers(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, web *testweb.Web) {
		o := fetching(t, web)
		o.Crawl.Frontier.Politeness.Delay, o.Crawl.Frontier.Politeness.IPDelay = 20*time.Millisecond, 0
		n := start(t, o)
		defer n.stop()
		n.add(t, "x", web.URL("b.test", "/"))
		for len(web.Requests().Host("b.test").Pages()) < 2 {
			time.Sleep(time.Millisecond)
		}
		must.Do(t, n.Default().AddOptOut(t.Context(),
			optout.Entry{Scope: optout.ScopeHost, Value: "b.test"}))
		recorded := time.Now()
		time.Sleep(time.Minute)
		for _, q := range web.Requests().Host("b.test") {
			if q.Start.After(recorded.Add(time.Millisecond)) { // the latency: it was under way
				t.Errorf("%s is requested %v after it", q.Path, q.Start.Sub(recorded))
			}
		}
	})
}
