package crawl

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestRobotsRedirects crawls sites whose robots.txt is somewhere else, or
// nowhere.
func TestRobotsRedirects(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		to := func(location string) http.Handler { return testweb.Redirect(302, location) }
		rules := testweb.Robots(closePrivate)
		site := func(host string, robots http.Handler, more testweb.Routes) testweb.Site {
			routes := robotsRoutes(robots)
			for path, h := range more {
				routes[path] = h
			}
			return testweb.Site{Host: host, Handler: routes}
		}
		// other.test lets everything of its own be requested.
		other := testweb.Routes{
			"/rules.txt": rules, "/gone": testweb.Status(404), "/broken": encodedRobots("gzip", []byte("no")),
			"/back":   to("//loop.test/robots.txt"),
			"/beyond": to("//other.test/beyond/1"),
		}
		for i := range 9 {
			other[fmt.Sprintf("/beyond/%d", i)] = to(fmt.Sprintf("/beyond/%d", i+1))
		}
		cases := []struct {
			host  string
			to    string
			want  reach
			elsew int // requests to other.test
		}{
			{"same-site", "/rules.txt", reachesOpen, 0},
			{"relative", "rules.txt", reachesOpen, 0},
			{"other-site", "//other.test/rules.txt", reachesOpen, 1},
			{"two-hops", "/onward", reachesOpen, 1},
			{"to-404", "//other.test/gone", reachesAll, 1},
			{"to-broken", "//other.test/broken", reachesNone, 1},
			{"itself", "/robots.txt", reachesAll, 0},
			{"loop", "//other.test/back", reachesAll, 3},     // loop, other, loop, other, loop, other
			{"beyond", "//other.test/beyond", reachesAll, 5}, // beyond, and five hops
			{"no-target", "", reachesAll, 0},
			{"other-scheme", "ftp://other.test/rules.txt", reachesAll, 0},
			{"no-such-host", "//gone.test/robots.txt", reachesNone, 0},
		}
		sites := []testweb.Site{site("other.test", testweb.Robots("User-agent: *\nAllow: /\n"), other)}
		for _, c := range cases {
			sites = append(sites,
				site(c.host+".test", to(c.to),
					testweb.Routes{"/rules.txt": rules, "/onward": to("//other.test/rules.txt")}))
		}
		web := serve(sites...)
		o := testOptions(t, web)
		o.GiveUpAfter = 200 * time.Millisecond
		sum := crawlOnce(t, o, rootSeeds(t, web)...)
		log := web.Requests()
		for _, path := range reachesAll.pages() {
			assert.Equal(t, len(log.Host("other.test").Path(path)), 1, "other.test was not requested", path, "once")
		}
		total := 0
		for _, c := range cases {
			checkRedirected(t, web, c.host+".test", c.want)
			total += c.elsew
			files := robotsRequests(log.Host(c.host + ".test"))
			assert.Equal(t, files, map[bool]int{false: 1, true: 3}[c.host == "loop"], c.host,
				"was requested robots.txt times")
		}
		for _, host := range []string{"to-broken.test", "no-such-host.test"} {
			checkPostponed(t, sum, host, "robots.txt: unreachable")
		}
		requested := len(log.Host("other.test")) - 1 - len(reachesAll.pages())
		assert.Equal(t, requested, total, "other.test served requests of redirects")
		assert.Equal(t, len(log.Path("/beyond/5")), 0, "a sixth redirect was followed")
		for _, host := range log.Hosts() {
			assert.AtMost(t, len(log.Host(host).ShortGaps(o.Frontier.Politeness.Delay)), 0, host, "came after")
		}
	})
}

// checkRedirected is checkReach without the files that stand for a robots.txt.
func checkRedirected(t *testing.T, web *testweb.Web, host string, want reach) {
	t.Helper()
	log := web.Requests().Host(host).Filter(func(q testweb.Request) bool {
		return q.Path != "/rules.txt" && q.Path != "/onward"
	})
	assert.Slice(t, requestedPages(log), want.pages(), host, "saw requests for")
	assert.AtMost(t, len(log.BeforeRobots()), 0, host, "was requested before its robots.txt was read")
}

// TestRobotsRedirectChain follows a robots.txt through five redirects over five hosts. Each of them
// is crawled at the same time and demands a delay of its own. The rules at the end bind the site
// where the chain began and no other, and the hops are as polite to their hosts as all other
// requests.
func TestRobotsRedirectChain(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		delay := func(i int) time.Duration { return time.Duration(150+30*i) * time.Millisecond }
		hop := func(i int) string { return fmt.Sprintf("hop-%d.test", i) }
		sites := []testweb.Site{robotsSite("start.test",
			testweb.Slow(200*time.Millisecond, testweb.Redirect(301, "//hop-1.test/chain")))}
		for i := 1; i <= 5; i++ {
			routes := robotsRoutes(testweb.Robots(fmt.Sprintf("User-agent: *\nCrawl-delay: %g\n", delay(i).Seconds())))
			routes["/chain"] = testweb.Redirect(307, fmt.Sprintf("//hop-%d.test/chain", i+1))
			if i == 5 {
				routes["/chain"] = testweb.Robots(closePrivate)
			}
			sites = append(sites, testweb.Site{Host: hop(i), Handler: routes})
		}
		web := serve(sites...)
		o := testOptions(t, web)
		crawlOnce(t, o, rootSeeds(t, web)...)

		checkReach(t, web, "start.test", reachesOpen)
		got := robotsOutcomes(t, o.DataDir, web.URL("start.test", "/private/1"))[0]
		assert.True(t, got.State == storage.Denied && got.Line == 2, "the private page of start.test is %s by line %d",
			got.State, got.Line)
		log := web.Requests()
		last := log.Host("start.test").Path("/robots.txt")[0]
		for i := 1; i <= 5; i++ {
			host := log.Host(hop(i))
			chain := host.Path("/chain")
			if len(chain) != 1 || chain[0].Start.Before(last.End) {
				t.Fatalf("%s saw %d requests of the chain, or one too early", hop(i), len(chain))
			}
			last = chain[0]
			if pages := requestedPages(host); !slices.Equal(pages, []string{"/", "/chain", "/open/1", "/private/1"}) {
				t.Errorf("%s saw requests for %q", hop(i), pages)
			}
			known := host.Path("/robots.txt")[0]
			paced := host.Filter(func(q testweb.Request) bool { return !q.Start.Before(known.Start) })
			if short := paced.ShortGaps(delay(i)); len(short) > 0 {
				t.Errorf("%s requests %v: %s came %v after %s", hop(i), delay(i), short[0].After.Path, short[0].Length,
					short[0].Before.Path)
			}
		}
		if first := log.Host("start.test").Pages()[0]; first.Start.Before(last.End) {
			t.Errorf("start.test was requested %s before the end of the chain", first.Path)
		}
	})
}

// twoPorts starts two webs that serve the same host name at two ports.
func twoPorts(
	serve func(...testweb.Site) *testweb.Web, host string, first, second http.Handler,
) (a, b *testweb.Web) {
	a = serve(testweb.Site{Host: host, Handler: first})
	b = serve(testweb.Site{Host: host, Handler: second})
	return a, b
}

// together is what two webs saw, in the order of Start.
func together(a, b *testweb.Web) testweb.Log {
	log := append(a.Requests(), b.Requests()...)
	slices.SortStableFunc(log, func(x, y testweb.Request) int { return x.Start.Compare(y.Start) })
	return log
}

// TestRobotsRedirectToOtherPort has the robots.txt of one port of a host at
// another port of it. That binds the first port only; the pace is that of the host.
func TestRobotsRedirectToOtherPort(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const delay = 60 * time.Millisecond
		second := robotsRoutes(testweb.Robots("User-agent: *\nDisallow: /open/\n"))
		second["/rules.txt"] = testweb.Robots(closePrivate)
		first := &editable{h: http.NotFoundHandler()}
		a, b := twoPorts(serve, "site.test", robotsRoutes(first), second)
		first.set(testweb.Redirect(308, b.URL("site.test", "/rules.txt")))
		o := testOptions(t, a)
		o.Frontier.Politeness.Delay = delay
		crawlOnce(t, o, seed(t, a.URL("site.test", "/")), seed(t, b.URL("site.test", "/")))
		checkReach(t, a, "site.test", reachesOpen)
		assert.Slice(t, requestedPages(b.Requests()), []string{"/", "/private/1", "/rules.txt"},
			"the second port saw requests for")
		assert.True(t, robotsRequests(a.Requests()) == 1 && robotsRequests(b.Requests()) == 1,
			"robots.txt was requested %d and %d times", robotsRequests(a.Requests()), robotsRequests(b.Requests()))
		log := together(a, b)
		if short := log.ShortGaps(delay); len(short) > 0 || log.MaxInFlight() > 1 {
			t.Errorf("two ports of one host were requested %d times within %v", len(short), delay)
		}
		rules, page := b.Requests().Path("/rules.txt")[0], a.Requests().Pages()[0]
		assert.True(t, !page.Start.Before(rules.End), "%s was requested before the rules had come", page.Path)
	})
}

// TestCrawlDelayOfAnyPort has a Crawl-delay at one port of a host. It counts for
// requests to the other port as well.
func TestCrawlDelayOfAnyPort(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const delay = 250 * time.Millisecond
		a, b := twoPorts(serve, "site.test",
			robotsRoutes(testweb.Robots("User-agent: *\nCrawl-delay: 0.25\n")),
			robotsRoutes(testweb.Robots("User-agent: *\nAllow: /\n")))
		o := testOptions(t, a)
		crawlOnce(t, o, seed(t, a.URL("site.test", "/")), seed(t, b.URL("site.test", "/")))
		for _, web := range []*testweb.Web{a, b} {
			checkReach(t, web, "site.test", reachesAll)
		}
		known := a.Requests().Path("/robots.txt")[0]
		log := together(a, b)
		paced := log.Filter(func(q testweb.Request) bool { return !q.Start.Before(known.Start) })
		must.True(t, len(paced) >= 6, "only %d requests came after the Crawl-delay was known", len(paced))
		assert.AtMost(t, len(paced.ShortGaps(delay)), 0, "came after", delay)
	})
}
