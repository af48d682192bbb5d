package crawl

import (
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestRulesBeforePages: no page before the robots.txt of its host, nothing that
// it disallows, and every host is requested it once.
func TestRulesBeforePages(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		rules := "User-agent: *\nDisallow: /no/\n"
		web := serve(
			site("a.test", rules, []string{"/1", "/2", "/no/1", "//b.test/deep"}, nil),
			site("b.test", rules, []string{"/no/2"},
				testweb.Routes{"/deep": testweb.Page("deep", "/no/3", "/yes"), "/yes": testweb.Page("yes")}),
		)
		o := testOptions(t, web)
		crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		log := web.Requests()
		checkPolite(t, log, o.Frontier.Politeness.Delay)
		for _, q := range log {
			assert.True(t, !strings.HasPrefix(q.Path, "/no/"), "%s%s is disallowed and was requested", q.Host, q.Path)
		}
		for _, host := range []string{"a.test", "b.test"} {
			assert.Equal(t, len(log.Host(host).Path("/robots.txt")), 1, host, "robots.txt was requested times")
		}
		checkStates(t, o, map[string]storage.State{
			"a.test/": storage.Fetched, "a.test/1": storage.Fetched, "a.test/2": storage.Fetched,
			"a.test/no/1": storage.Denied,
			"b.test/":     storage.Fetched, "b.test/deep": storage.Fetched, "b.test/no/2": storage.Denied,
			"b.test/no/3": storage.Denied, "b.test/yes": storage.Fetched,
		})
		checkOutput(t, o)
	})
}

// TestRulesExpire: rules are not used beyond their lifetime.
func TestRulesExpire(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 60), nil))
		const lifetime = 300 * time.Millisecond
		o := shortLived(t, web, lifetime)
		crawl(t, o, web.URL("a.test", "/"))
		// At least a delay apart, no more pages than this have room in a lifetime that
		// is stretched by the delay in force.
		room := int((lifetime+o.Frontier.Politeness.Delay)/o.Frontier.Politeness.Delay) + 1
		files, row := 0, 0
		for _, q := range web.Requests() {
			if row++; q.Robots() {
				files, row = files+1, 0
			}
			must.True(t, row <= room,
				"%s is page %d in a row without a look at robots.txt, whose lifetime has room for %d", q.Path, row,
				room)
		}
		assert.AtLeast(t, files, 3, "robots.txt was requested times in a crawl of several lifetimes")
	})
}

// TestHeldHosts: a host whose robots.txt answers 5xx, or disallows everything, is
// held as a whole and postponed with the reason; another one goes on.
func TestHeldHosts(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(
			site("good.test", "", paths("/", 3), nil),
			site("broken.test", "", paths("/", 3), testweb.Routes{"/robots.txt": testweb.Status(500)}),
			site("closed.test", "User-agent: *\nDisallow: /\n", paths("/", 3), nil),
		)
		o := testOptions(t, web)
		sum := crawl(t, o, web.URL("good.test", "/"), web.URL("broken.test", "/"), web.URL("closed.test", "/"),
			web.URL("closed.test", "/aa"))
		for _, q := range web.Requests().Pages() {
			assert.Equal(t, q.Host, "good.test", q.Path, "was requested")
		}
		reasons := make(map[string]string)
		for _, p := range sum.Postponed {
			reasons[p.Host] = p.Reason
			assert.True(t, !p.Until.IsZero() && p.URLs != 0, "postponed without a time or a number: %+v", p)
		}
		assert.True(t, len(reasons) == 2 && reasons["broken.test"] == "robots.txt: unreachable" &&
			reasons["closed.test"] == "robots.txt: rule", "postponed: %v", reasons)
		checkStates(t, o, map[string]storage.State{
			"good.test/": storage.Fetched, "good.test/aa": storage.Fetched, "good.test/ab": storage.Fetched,
			"good.test/ac": storage.Fetched,
			"broken.test/": storage.Queued, "closed.test/": storage.Queued, "closed.test/aa": storage.Queued,
		})
	})
}

// TestRulesNotObeyed: with obey off the rules are not requested, but robots.txt is
// fetched, and its Crawl-delay counts.
func TestRulesNotObeyed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "User-agent: *\nDisallow: /\nCrawl-delay: 0.3\n", paths("/", 3), nil))
		o := testOptions(t, web)
		o.Frontier.Obey = false
		crawl(t, o, web.URL("a.test", "/"))
		checkPolite(t, web.Requests(), 300*time.Millisecond)
		assert.Equal(t, len(web.Requests().Pages()), 4, "pages were requested")
	})
}
