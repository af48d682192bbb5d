package crawl

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

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
		if stops < 2 {
			t.Errorf("stopped %d times only", stops)
		}
		want, got := whole.Requests().CountByPath(), web.Requests().CountByPath()
		if !maps.Equal(got, want) {
			t.Errorf("with stops: %v\nwithout: %v", got, want)
		}
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
		if sum := crawl(t, o, seeds...); !sum.Fresh {
			t.Error("the first run says that it did nothing")
		}
		before := web.Served()
		if sum := crawl(t, o, seeds...); sum.Fresh || len(sum.Postponed) > 0 {
			t.Errorf("the second run says that it did something: %+v", sum)
		}
		if n := web.Served() - before; n != 0 {
			t.Errorf("the second run made %d requests", n)
		}
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
		if _, err := crawlFor(t, o, time.Minute); !errors.Is(err, ErrNothing) {
			t.Errorf("without seeds and with an empty frontier: %v", err)
		}
		o.MaxPages = 5
		crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		o.MaxPages = 0
		crawl(t, o)
		for u, outcome := range stored(t, o.DataDir) {
			if outcome.State == storage.Excluded || outcome.State == storage.Queued {
				t.Errorf("%s is %s", u, outcome.State)
			}
		}
		if n := len(web.Requests().Pages()); n != 41 {
			t.Errorf("%d pages were requested, want 41", n)
		}
	})
}

// TestNewSeed: a seed of a later run is crawled, and what is known is not repeated.
func TestNewSeed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(twoSites()...)
		o := testOptions(t, web)
		crawl(t, o, web.URL("a.test", "/"))
		if n := len(web.Requests().Host("b.test")); n != 0 {
			t.Errorf("b.test was requested %d times before it was a seed", n)
		}
		crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		if n := len(web.Requests().Host("b.test").Pages()); n != 19 {
			t.Errorf("b.test: %d pages were requested, want 19", n)
		}
		if again := web.Requests().Repeats(); len(again) > 0 {
			t.Errorf("requested more than once: %v", again)
		}
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
			if q.Path[:2] == "/d" {
				t.Errorf("%s was requested after it was excluded", q.Path)
			}
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
		if excluded != 20 {
			t.Errorf("%d URLs are excluded, want 20", excluded)
		}
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
		if n := len(log.Host("foreign.test")); n != 0 {
			t.Errorf("foreign.test was requested %d times", n)
		}
		if got := log.Host("home.test").Pages().CountByPath(); len(got) != 22 {
			t.Errorf("home.test: %d pages were requested, want 22: %v", len(got), slices.Sorted(maps.Keys(got)))
		}
		if got := log.Host("short.test").Path("/more"); len(got) != 1 {
			t.Errorf("the seed's own host was requested /more %d times", len(got))
		}
		checkPolite(t, log, o.Frontier.Politeness.Delay)
		checkOutput(t, o)
	})
}
