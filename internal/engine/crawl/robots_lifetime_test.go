package crawl

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// editable is a handler that a test replaces between two crawls.
type editable struct {
	mu sync.Mutex
	h  http.Handler
}

func (e *editable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	h := e.h
	e.mu.Unlock()
	h.ServeHTTP(w, r)
}

func (e *editable) set(h http.Handler) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.h = h
}

// withHeader adds a header field to an answer.
func withHeader(key, value string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(key, value)
		h.ServeHTTP(w, r)
	})
}

// validated is a robots.txt with an ETag that answers 304 to who has it.
func validated(etag, maxAge, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		w.Header().Set("Last-Modified", "Mon, 02 Mar 2026 10:00:00 GMT")
		w.Header().Set("Cache-Control", "max-age="+maxAge)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		testweb.Robots(text).ServeHTTP(w, r)
	})
}

// visits is a site that is crawled again and again, each time with a new open
// and a new private page as seeds.
type visits struct {
	t      *testing.T
	web    *testweb.Web
	o      Options
	host   string
	robots editable
	n      int
}

const maxVisits = 10

func newVisits(
	t *testing.T, serve func(...testweb.Site) *testweb.Web, host string, robots http.Handler, more ...testweb.Site,
) *visits {
	v := &visits{t: t, host: host, robots: editable{h: robots}}
	routes := testweb.Routes{"/robots.txt": &v.robots}
	for i := 1; i <= maxVisits; i++ {
		routes[fmt.Sprintf("/open/%d", i)] = testweb.Page("open")
		routes[fmt.Sprintf("/private/%d", i)] = testweb.Page("private")
	}
	v.web = serve(append(more, testweb.Site{Host: host, Handler: routes})...)
	v.o = testOptions(t, v.web)
	v.o.GiveUpAfter = 100 * time.Millisecond
	return v
}

// crawl makes one more visit and returns what the web saw of it.
func (v *visits) crawl() (testweb.Log, Summary) {
	v.t.Helper()
	v.n++
	before := len(v.web.Requests())
	sum := crawlOnce(v.t, v.o,
		seed(v.t, v.web.URL(v.host, fmt.Sprintf("/private/%d", v.n))),
		seed(v.t, v.web.URL(v.host, fmt.Sprintf("/open/%d", v.n))))
	return v.web.Requests()[before:], sum
}

// want compares a visit with what it should have requested, in order.
func (v *visits) want(what string, log testweb.Log, paths ...string) {
	v.t.Helper()
	var got []string
	for _, q := range log {
		got = append(got, q.Path)
	}
	assert.Slice(v.t, got, paths, what, "visit", v.n, "requested")
}

// TestRobotsAcrossRestarts crawls a site in process after process while its
// robots.txt comes of age, breaks, and is mended.
func TestRobotsAcrossRestarts(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		v := newVisits(t, serve, "site.test", withHeader("Cache-Control", "max-age=3600", testweb.Robots(closePrivate)))
		log, _ := v.crawl()
		v.want("at first", log, "/robots.txt", "/open/1")

		log, _ = v.crawl()
		v.want("while the file is fresh", log, "/open/2")
		denied := robotsOutcomes(t, v.o.DataDir, v.web.URL(v.host, "/private/1"), v.web.URL(v.host, "/private/2"))
		for i, d := range denied {
			assert.True(t, d.State == storage.Denied && d.Line == 2, "private page %d is %s by line %d", i+1, d.State,
				d.Line)
		}

		v.robots.set(encodedRobots("gzip", []byte("not gzip")))
		time.Sleep(2 * time.Hour)
		log, _ = v.crawl()
		v.want("unreachable, with a copy of two hours", log, "/robots.txt", "/open/3")

		time.Sleep(24 * time.Hour)
		log, sum := v.crawl()
		v.want("unreachable, with a copy of a day", log, "/robots.txt")
		checkPostponed(t, sum, v.host, "robots.txt: unreachable")

		log, sum = v.crawl()
		v.want("a moment later", log)
		checkPostponed(t, sum, v.host, "robots.txt: unreachable")

		time.Sleep(13 * time.Hour)
		log, _ = v.crawl()
		v.want("unreachable for so long that the copy counts again", log, "/robots.txt", "/open/4",
			"/open/5", "/open/6")

		v.robots.set(testweb.Robots("User-agent: *\nDisallow: /private/1\n"))
		v.o.GiveUpAfter = 5 * time.Second
		time.Sleep(2 * time.Hour)
		log, _ = v.crawl()
		if got := requestedPages(log); robotsRequests(log) != 1 ||
			!slices.Equal(got,
				[]string{"/open/7", "/private/2", "/private/3", "/private/4", "/private/5", "/private/6",
					"/private/7"}) {
			t.Errorf("mended and changed: requested %q", got)
		}
	})
}

// TestRobotsHistory: what a robots.txt was before is kept, each version once, and a failure is no
// version.
func TestRobotsHistory(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		v := newVisits(t, serve, "site.test", testweb.Robots("# one\n"))
		for _, answer := range []http.Handler{
			testweb.Robots("# one\n"), testweb.Robots("# two\n"), encodedRobots("gzip", []byte("not gzip")),
			testweb.Robots("# two\n"), http.NotFoundHandler(), testweb.Robots("# four\n"),
		} {
			v.robots.set(answer)
			log, _ := v.crawl()
			must.True(t, robotsRequests(log) == 1, "visit %d requested %d times for robots.txt", v.n,
				robotsRequests(log))
			time.Sleep(25 * time.Hour)
		}
		e := must.Get(Open(v.o, testLog(t)))(t)
		defer e.Close()
		text := must.Get(e.View().RobotsText(seed(t, v.web.URL("site.test", "/")).URL.Origin()))(t)
		var earlier []string
		for _, p := range text.Earlier {
			earlier = append(earlier, p.Class+" "+p.Text)
			assert.True(t, !p.Replaced.IsZero() && !p.Confirmed.IsZero() && p.Replaced.After(p.Confirmed) &&
				(p.Version == "") == (p.Text == ""), "%+v", p)
		}
		want := []string{"unavailable ", "found # two\n", "found # one\n"}
		assert.True(t, text.Text == "# four\n" && text.Version != "" && slices.Equal(earlier, want),
			"now %q, before %q, want %q", text.Text, earlier, want)
	})
}

// TestRobotsRevalidated fetches the robots.txt of a site with the validators of
// the copy, in a later process and behind a redirect. The copy goes on to count.
func TestRobotsRevalidated(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		rules := &editable{h: validated(`"one"`, "3600", closePrivate)}
		v := newVisits(t, serve, "site.test", testweb.Redirect(302, "//rules.test/rules.txt"),
			testweb.Site{Host: "rules.test", Handler: testweb.Routes{"/rules.txt": rules}})
		log, _ := v.crawl()
		v.want("at first", log, "/robots.txt", "/rules.txt", "/open/1")
		q := log[1]
		assert.True(t, q.IfNoneMatch == "" && q.IfModifiedSince == "", "a first request with validators: %+v", q)

		time.Sleep(2 * time.Hour)
		log, _ = v.crawl()
		v.want("stale", log, "/robots.txt", "/rules.txt", "/open/2")
		if q := log[0]; q.IfNoneMatch != "" || q.IfModifiedSince != "" {
			t.Errorf("validators of one URL were sent to another: %+v", q)
		}
		if q := log[1]; q.IfNoneMatch != `"one"` || q.IfModifiedSince != "Mon, 02 Mar 2026 10:00:00 GMT" ||
			q.Status != 304 {
			t.Errorf("requested again without the validators: %+v", q)
		}

		time.Sleep(30 * time.Minute)
		log, _ = v.crawl()
		v.want("confirmed half an hour ago", log, "/open/3")

		time.Sleep(29 * time.Minute)
		log, _ = v.crawl()
		v.want("a minute before the end of its lifetime", log, "/robots.txt", "/rules.txt", "/open/4")

		v.o.GiveUpAfter = 5 * time.Second
		rules.set(validated(`"two"`, "3600", "User-agent: *\nDisallow: /open/\n"))
		time.Sleep(time.Hour)
		log, _ = v.crawl()
		assert.Slice(t, requestedPages(log.Host(v.host)),
			[]string{"/private/1", "/private/2", "/private/3", "/private/4", "/private/5"}, "a changed file: requested")
		if q := log[1]; q.Status != 200 || q.IfNoneMatch != `"one"` {
			t.Errorf("a changed file came as %+v", q)
		}
	})
}

// shortLived are options under which a robots.txt lives for less than a second.
func shortLived(t *testing.T, web *testweb.Web, lifetime time.Duration) Options {
	o := testOptions(t, web)
	o.Frontier.Robots.MinLifetime = lifetime
	o.Frontier.Robots.MaxLifetime = lifetime
	o.Frontier.Robots.NoCacheLifetime = lifetime
	o.Frontier.Robots.NotRobotsLifetime = lifetime
	return o
}

// TestRobotsAskedOnceALifetime crawls for several lifetimes of robots.txt: it is
// requested again, with its validators, once in each.
func TestRobotsFetchedOnceALifetime(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const lifetime = 400 * time.Millisecond
		routes := testweb.Routes{"/robots.txt": validated(`"one"`, "0", closePrivate)}
		var paths []string
		for i := range 30 {
			paths = append(paths, fmt.Sprintf("/open/%d", i), fmt.Sprintf("/private/%d", i))
		}
		for _, p := range paths {
			routes[p] = testweb.Page(p)
		}
		web := serve(testweb.Site{Host: "site.test", Handler: routes})
		o := shortLived(t, web, lifetime)
		o.Frontier.Politeness.Delay = 40 * time.Millisecond
		var seeds []Seed
		for _, p := range paths {
			seeds = append(seeds, seed(t, web.URL("site.test", p)))
		}
		crawlOnce(t, o, seeds...)
		log := web.Requests()
		files := log.Path("/robots.txt")
		must.True(t, len(files) >= 2, "robots.txt was requested %d times, want several", len(files))
		assert.AtMost(t, len(files.ShortGaps(lifetime*8/10)), 0, "robots.txt was requested again after", lifetime)
		for _, q := range files[1:] {
			assert.True(t, q.IfNoneMatch == `"one"` && q.Status == 304, "requested again without the validators: %+v",
				q)
		}
		got := requestedPages(log)
		assert.True(t, len(got) == 30 && len(log.Repeats()) <= 0 && got[0][:6] == "/open/" && got[29][:6] == "/open/",
			"requested %q", got)
		assert.AtMost(t, len(log.BeforeRobots()), 0, "was requested before robots.txt was read")
	})
}

// TestRobotsClosedSite crawls a site that closes itself to all crawlers and
// opens later, and one that never does. Neither is requested anything but
// robots.txt while closed, and that once a lifetime; and the crawl ends, though
// lifetimes are shorter than the time after which it gives up. A fourth site
// keeps the crawl busy for some lifetimes.
func TestRobotsClosedSite(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, testRobotsClosedSite)
}

func testRobotsClosedSite(t *testing.T, network *memnet.Network) {
	const lifetime = 500 * time.Millisecond
	closed := testweb.Robots("User-agent: *\nDisallow: /\n")
	web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
		robotsSite("opens.test", testweb.Flaky(2, closed, testweb.Robots(closePrivate))),
		robotsSite("closed.test", closed),
		robotsSite("forbidden.test", testweb.Status(403)),
		{Host: "busy.test", Handler: testweb.Routes{"/": testweb.Slow(2*time.Second, testweb.Page("busy"))}},
	}})
	o := shortLived(t, web, lifetime)
	o.GiveUpAfter = time.Second
	o.Frontier.Robots.ForbiddenDenies = true
	sum := crawlOnce(t, o, rootSeeds(t, web)...)
	checkReach(t, web, "opens.test", reachesOpen)
	checkReach(t, web, "closed.test", reachesNone)
	checkReach(t, web, "forbidden.test", reachesNone)
	checkPostponed(t, sum, "closed.test", "robots.txt: rule")
	checkPostponed(t, sum, "forbidden.test", "robots.txt: forbidden")
	for _, host := range []string{"opens.test", "closed.test", "forbidden.test"} {
		files := web.Requests().Host(host).Path("/robots.txt")
		assert.AtLeast(t, len(files), 3, host, "was requested robots.txt times")
		assert.AtMost(t, len(files.ShortGaps(lifetime*8/10)), 0, host, "was requested robots.txt again after",
			lifetime)
	}
	log := web.Requests().Host("opens.test")
	for i, q := range log[:min(3, len(log))] {
		assert.Equal(t, q.Path, "/robots.txt", "request", i+1, "of opens.test was for")
	}
}
