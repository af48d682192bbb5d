package crawl

import (
	"maps"
	"regexp"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// twoSites link to each other and have 40 pages in all.
func twoSites() []testweb.Site {
	return []testweb.Site{
		site("a.test", "User-agent: *\nDisallow: /no\n", append(paths("/", 19), "//b.test/x", "/no"), nil),
		site("b.test", "", paths("/", 18), testweb.Routes{"/x": testweb.Page("x", "//a.test/y")}),
	}
}

// TestStopAndGoOn: a crawl that is stopped again and again fetches the same pages as
// one that is not, none of them twice, and never faster than its hosts allow.
func TestStopAndGoOn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		whole := serve(twoSites()...)
		o := testOptions(t, whole)
		crawl(t, o, whole.URL("a.test", "/"), whole.URL("b.test", "/"))
		web := serve(twoSites()...)
		o = testOptions(t, web)
		stops := 0
		for {
			sum := must.Get(crawlFor(t, o, 150*time.Millisecond, web.URL("a.test", "/"), web.URL("b.test", "/")))(t)
			checkOutput(t, o)
			if !sum.Stopped() {
				break
			}
			if stops++; stops > 500 {
				t.Fatal("no progress")
			}
		}
		assert.AtLeast(t, stops, 2, "stopped times only")
		want, got := whole.Requests().CountByPath(), web.Requests().CountByPath()
		assert.True(t, maps.Equal(got, want), "with stops: %v\nwithout: %v", got, want)
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
	})
}

// TestFinishedCrawl: another run over a finished crawl makes no request, and says so.
func TestFinishedCrawl(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(twoSites()...)
		o := testOptions(t, web)
		seeds := []string{web.URL("a.test", "/"), web.URL("b.test", "/")}
		assert.True(t, crawl(t, o, seeds...).Fresh, "the first run says that it did nothing")
		before := web.Served()
		sum := crawl(t, o, seeds...)
		assert.True(t, !sum.Fresh && len(sum.Postponed) <= 0, "the second run says that it did something: %+v", sum)
		assert.Equal(t, web.Served()-before, 0, "the second run made requests")
		checkOutput(t, o)
	})
}

// TestRunWithoutSeeds: a run without seeds goes on with those of earlier runs, and is
// an error where there were none.
func TestRunWithoutSeeds(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(twoSites()...)
		o := testOptions(t, web)
		assert.Fails(crawlFor(t, o, time.Minute))(t, ErrNothing, "without seeds and with an empty frontier")
		o.MaxPages = 5
		crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		o.MaxPages = 0
		crawl(t, o)
		for u, outcome := range stored(t, o.DataDir) {
			assert.True(t, outcome.State != storage.Excluded && outcome.State != storage.Queued, "%s is %s", u,
				outcome.State)
		}
		assert.Equal(t, len(web.Requests().Pages()), 41, "pages were requested")
	})
}

// TestNewSeed: a seed of a later run is crawled, and what is known is not repeated.
func TestNewSeed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(twoSites()...)
		o := testOptions(t, web)
		crawl(t, o, web.URL("a.test", "/"))
		assert.Equal(t, len(web.Requests().Host("b.test")), 0, "b.test was requested times before it was a seed")
		crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		assert.Equal(t, len(web.Requests().Host("b.test").Pages()), 19, "b.test pages were requested")
		assert.AtMost(t, len(web.Requests().Repeats()), 0, "requested more than once")
	})
}

// TestScopeChanges: a changed scope counts for what is queued already.
func TestScopeChanges(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		pages := append(paths("/keep/", 20), paths("/drop/", 20)...)
		web := serve(site("a.test", "", pages, nil))
		o := testOptions(t, web)
		o.MaxPages = 5
		crawl(t, o, web.URL("a.test", "/"))
		before := web.Served()
		o.MaxPages = 0
		o.Exclude = []*regexp.Regexp{regexp.MustCompile(`/drop/`)}
		crawl(t, o, web.URL("a.test", "/"))
		for _, q := range web.Requests()[before:] {
			assert.Not(t, q.Path[:2], "/d", q.Path, "was requested after it was excluded")
		}
		excluded := 0
		for u, outcome := range stored(t, o.DataDir) {
			switch outcome.State {
			case storage.Excluded:
				excluded++
			case storage.Fetched:
			default:
				t.Errorf("%s is %s", u, outcome.State)
			}
		}
		assert.Equal(t, excluded, 20, "URLs are excluded")
		checkOutput(t, o)
	})
}

// TestSeedRedirects: where a seed redirects to joins the scope, over several hosts
// and over a restart; where another page redirects to does not.
func TestSeedRedirects(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(
			testweb.Site{Host: "short.test", Handler: testweb.Routes{"/": testweb.Redirect(301, "//www.short.test/")}},
			testweb.Site{Host: "www.short.test",
				Handler: testweb.Routes{"/": testweb.Redirect(302, "//home.test/start")}},
			site("home.test", "", paths("/", 20),
				testweb.Routes{"/start": testweb.Page("home", append(paths("/", 20), "/away", "//short.test/more")...),
					"/away": testweb.Redirect(302, "//foreign.test/")}),
			site("foreign.test", "", paths("/", 3), nil),
		)
		o := testOptions(t, web)
		o.MaxPages = 3
		crawl(t, o, web.URL("short.test", "/"))
		o.MaxPages = 0
		crawl(t, o)
		log := web.Requests()
		assert.Equal(t, len(log.Host("foreign.test")), 0, "foreign.test was requested times")
		assert.Equal(t, len(log.Host("home.test").Pages().CountByPath()), 22, "home.test pages were requested")
		assert.Equal(t, len(log.Host("short.test").Path("/more")), 1, "the seed's own host was requested /more times")
		checkPolite(t, log, o.Frontier.Politeness.Delay)
		checkOutput(t, o)
	})
}
