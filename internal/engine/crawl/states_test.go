package crawl

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// TestEveryURLEnds: each URL that was ever committed is in the state that its
// answers mean, and in the output if it was requested.
func TestEveryURLEnds(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		routes := testweb.Routes{
			"/gone": testweb.Status(410), "/file": testweb.Content("application/pdf", []byte("%PDF")),
			"/nowhere": testweb.Redirect(302, ""), "/self": testweb.Redirect(302, "/self"),
			"/away": testweb.Redirect(301, "//other.test/"), "/permanent": testweb.Redirect(308, "/target"),
			"/target": testweb.Page("target", "/from-target"), "/from-target": testweb.Page("end"),
			"/flaky":      testweb.Flaky(1, testweb.Status(500), testweb.Page("flaky", "/from-flaky")),
			"/from-flaky": testweb.Page("end"),
		}
		for i := range 7 {
			routes[fmt.Sprintf("/chain/%d", i)] = testweb.Redirect(302, fmt.Sprintf("/chain/%d", i+1))
		}
		root := testweb.Page("a.test", "/missing", "/no/1", "//other.test/out", "/gone", "/file", "/nowhere", "/self",
			"/away", "/permanent", "/flaky", "/chain/0")
		routes["/"] = root
		web := serve(site("a.test", "User-agent: *\nDisallow: /no/\n", nil, routes),
			site("error.test", "", nil, testweb.Routes{"/": testweb.Status(500)}),
			site("other.test", "", nil, nil),
		)
		o := testOptions(t, web)
		o.Frontier.MaxAttempts = 2
		o.GiveUpAfter = 20 * time.Second
		crawl(t, o, web.URL("a.test", "/"), web.URL("error.test", "/"))
		checkStates(t, o, map[string]storage.State{
			"a.test/": storage.Fetched, "a.test/missing": storage.Failed, "a.test/gone": storage.Failed,
			"a.test/file": storage.Fetched,
			"a.test/no/1": storage.Denied, "a.test/nowhere": storage.Failed, "a.test/self": storage.Failed,
			"a.test/away": storage.Redirected, "a.test/permanent": storage.Redirected, "a.test/target": storage.Fetched,
			"a.test/from-target": storage.Fetched, "a.test/flaky": storage.Fetched,
			"a.test/from-flaky": storage.Fetched,
			"a.test/chain/0":    storage.Redirected, "a.test/chain/1": storage.Redirected,
			"a.test/chain/2": storage.Redirected,
			"a.test/chain/3": storage.Redirected, "a.test/chain/4": storage.Redirected,
			"a.test/chain/5": storage.Failed,
			"error.test/":    storage.Failed,
		})
		checkOutput(t, o)
		all := stored(t, o.DataDir)
		for path, want := range map[string]storage.Outcome{
			web.URL("a.test", "/chain/5"): {Reason: storage.ReasonRedirects, Status: 302},
			web.URL("a.test", "/self"):    {Reason: storage.ReasonLoop, Status: 302},
			web.URL("a.test", "/nowhere"): {Reason: storage.ReasonLocation, Status: 302},
			web.URL("a.test", "/away"):    {Reason: storage.ReasonScope, Status: 301},
			web.URL("a.test", "/no/1"):    {Reason: storage.ReasonRobots, Line: 2},
			web.URL("a.test", "/gone"):    {Reason: storage.ReasonStatus, Status: 410},
			web.URL("error.test", "/"):    {Reason: storage.ReasonStatus, Status: 500, Attempts: 2},
		} {
			got := all[path]
			assert.True(t, got.Reason == want.Reason && got.Status == want.Status && got.Line == want.Line &&
				got.Attempts == want.Attempts, "%s: %+v, want %+v", path, got, want)
		}
		assert.AtMost(t, len(web.Requests().Host("other.test")), 0, "other.test is out of scope and was requested")
		assert.Equal(t, len(web.Requests().Host("error.test").Path("/")), 2, "error.test was requested times")
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
	})
}

// TestNamesThatLeadNowhere: a name that does not exist, and one whose addresses
// are out of reach, end in a final state that says so, and nothing is requested.
func TestNamesThatLeadNowhere(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, nil), site("private.test", "", nil, nil))
		o := testOptions(t, web)
		o.Frontier.MaxAttempts = 2
		o.GiveUpAfter = 20 * time.Second
		o.Fetch.ResolveCache = 0 // each lookup is an answer of its own
		o.Fetch.AllowPrivate = false
		web.SetAnswer("ten.test", netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("169.254.169.254"))
		urls := []string{web.URL("missing.test", "/"), web.URL("missing.test", "/2"), web.URL("private.test", "/"),
			web.URL("ten.test", "/"), "http://127.0.0.1/"}
		crawl(t, o, urls...)
		all := stored(t, o.DataDir)
		for i, u := range urls {
			want := fetch.KindBlockedAddress
			if i < 2 {
				want = fetch.KindDNSNotFound
			}
			if got := all[u]; got.State != storage.Failed || got.Reason != reasonFor(want) || got.At.IsZero() {
				t.Errorf("%s: %+v, want failed because of %s", u, got, want)
			}
		}
		assert.Equal(t, web.Served(), 0, "requests were made")
		checkOutput(t, o)
	})
}

// TestOneAnswerIsNoSecond: that a name does not exist counts once for each time that a name server
// says so, not for each time that the answer is remembered.
func TestOneAnswerIsNoSecond(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, AbsenceLasts: time.Minute})
		o := testOptions(t, web)
		o.Frontier.MaxAttempts = 2
		o.GiveUpAfter = 20 * time.Second
		url := web.URL("missing.test", "/")
		crawl(t, o, url)
		if got := stored(t, o.DataDir)[url]; got.State != storage.Queued {
			t.Errorf("%+v after %d queries", got, web.Lookups("missing.test"))
		}
		assert.AtMost(t, web.Lookups("missing.test"), 1, "queries")
	})
}

// TestMaxPages: never more pages than the limit, over several runs.
func TestMaxPages(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		var sites []testweb.Site
		var hosts []string
		for i := range 8 {
			hosts = append(hosts, fmt.Sprintf("h%d.test", i))
			sites = append(sites, site(hosts[i], "", append(paths("/", 20), "/missing"), nil))
			delete(sites[i].Handler.(testweb.Routes), "/missing")
		}
		web := serve(sites...)
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = 0
		for _, limit := range []uint64{1, 30, 30, 75} {
			o.MaxPages = limit
			crawl(t, o, seedsOf(web, hosts)...)
			answered := web.Requests().Pages().Filter(func(q testweb.Request) bool { return q.Status == 200 })
			assert.Equal(t, uint64(len(answered)), limit, len(answered), "pages were fetched")
			checkOutput(t, o)
		}
	})
}

// TestMaxDepth: links of the deepest pages are not taken.
func TestMaxDepth(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, testweb.Routes{
			"/": testweb.Page("0", "/1"), "/1": testweb.Page("1", "/2", "/"), "/2": testweb.Page("2", "/3"),
			"/3": testweb.Page("3"),
		}))
		o := testOptions(t, web)
		o.Frontier.MaxDepth = 2
		crawl(t, o, web.URL("a.test", "/"))
		checkStates(t, o,
			map[string]storage.State{"a.test/": storage.Fetched, "a.test/1": storage.Fetched,
				"a.test/2": storage.Fetched})
	})
}

// TestScopeModes: how far the crawl goes from its seed.
func TestScopeModes(t *testing.T) {
	links := []string{"/docs/b", "/blog/c", "//www.site.test/d", "//far.test/e"}
	sites := []testweb.Site{
		site("site.test", "", links, testweb.Routes{"/docs/": testweb.Page("docs", links...)}),
		site("www.site.test", "", nil, testweb.Routes{"/d": testweb.Page("d")}),
		site("far.test", "", nil, testweb.Routes{"/e": testweb.Page("e")}),
	}
	for _, c := range []struct {
		mode  frontier.Mode
		pages []string
	}{
		{frontier.ModePrefix, []string{"site.test/docs/b"}},
		{frontier.ModeHost, []string{"site.test/docs/b", "site.test/blog/c"}},
		{frontier.ModeDomain, []string{"site.test/docs/b", "site.test/blog/c", "www.site.test/d"}},
		{frontier.ModeAny, []string{"site.test/docs/b", "site.test/blog/c", "www.site.test/d", "far.test/e"}},
	} {
		t.Run(fmt.Sprint(c.mode), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				web := serve(sites...)
				o := testOptions(t, web)
				o.Mode = c.mode
				crawl(t, o, web.URL("site.test", "/docs/"))
				want := map[string]storage.State{"site.test/docs/": storage.Fetched}
				for _, p := range c.pages {
					want[p] = storage.Fetched
				}
				checkStates(t, o, want)
			})
		})
	}
}
