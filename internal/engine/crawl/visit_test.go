package crawl

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// visit makes a visit of a running crawl.
func (r *running) visit(url string) *Visit {
	r.t.Helper()
	x := &Visit{URL: parse(r.t, url)}
	r.until("the visit", func() bool {
		err := r.Visit(r.t.Context(), x)
		must.True(r.t, err == nil || errors.Is(err, ErrNotRunning), "%v", err)
		return err == nil
	})
	return x
}

// TestVisits: a visit has its turn between the requests of the crawl, after the robots.txt of its origin, and never
// sooner than its host allows. The URL does not become one of the crawl.
func TestVisits(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const rules = "User-agent: *\nCrawl-delay: 30\nDisallow: /private\nAllow: /private/not\n"
		web := serve(
			site("busy.test", "User-agent: *\nCrawl-delay: 10\n", paths("/p/", 300), testweb.Routes{
				"/extra": testweb.Page("x", "/y", "/z")}),
			site("new.test", rules, nil, testweb.Routes{
				"/to": testweb.Redirect(301, "/target"), "/private/not": testweb.Page("n")}),
			site("broken.test", "", nil, testweb.Routes{"/robots.txt": testweb.Status(503), "/": testweb.Page("x")}),
		)
		o := testOptions(t, web)
		o.ExitWhenDone = false
		o.Frontier.Politeness.Delay = time.Second
		r := start(t, o, web, web.URL("busy.test", "/"))
		r.until("the first pages", func() bool { return r.pages("busy.test") > 3 })

		x := r.visit(web.URL("busy.test", "/extra"))
		assert.True(t, x.Page.Status == 200 && x.Page.Outlinks == 2 && x.Request.Sent &&
			x.Request.Delay == 10*time.Second, "the visit of a busy host: %+v, %+v", x.Page, x.Request)
		x = r.visit(web.URL("new.test", "/to"))
		assert.True(t, x.Page.Redirect == web.URL("new.test", "/target") && x.Verdict.Line == 0 &&
			x.Robots.Status == 200, "the visit of a redirect: %+v", x.Page)
		x = r.visit(web.URL("new.test", "/private/not"))
		assert.True(t, x.Page.Status == 200 && x.Verdict.Line == 4, "the visit of what a line allows: %+v, %+v", x.Page,
			x.Verdict)
		x = r.visit(web.URL("new.test", "/private/yes"))
		assert.True(t, !x.Request.Sent && !x.Verdict.Allowed && x.Verdict.Line == 3,
			"the visit of what a line disallows: %+v", x)
		x = r.visit(web.URL("broken.test", "/"))
		assert.True(t, !x.Request.Sent && x.Decided.Kind == robots.DecisionHold,
			"the visit of a host without robots.txt: %+v", x.Decided)
		x = r.visit(web.URL("gone.test", "/"))
		assert.True(t, !x.Request.Sent && x.Robots.Failure == robots.FailureDNS,
			"the visit of a host that does not exist: %+v", x.Robots)
		for _, path := range []string{"/extra"} {
			_, _, err := r.store.Lookup(parse(t, web.URL("busy.test", path)))
			assert.True(t, errors.Is(err, storage.ErrNotFound), "%s is a URL of the crawl now: %v", path, err)
		}
		r.end()
		assert.Equal(t, len(web.Requests().Host("broken.test")), 1, "broken.test saw requests")
		for host, delay := range map[string]time.Duration{"busy.test": 10 * time.Second, "new.test": 30 * time.Second} {
			gaps := web.Requests().Host(host).Gaps()
			assert.True(t, host != "new.test" || len(gaps) == 2,
				"%s saw %d gaps, want those of robots.txt and two pages", host, len(gaps))
			for _, gap := range gaps {
				assert.AtLeast(t, gap.Length, delay, host, "between", gap.Before.Path, gap.After.Path)
			}
		}
	})
}

// TestVisitsEnd: no request is made by hand that nobody waits for any more, or that an opt-out covers.
func TestVisitsEnd(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "User-agent: *\nCrawl-delay: 30\n", nil, nil), site("out.test", "", nil, nil))
		o := testOptions(t, web)
		o.ExitWhenDone = false
		r := start(t, o, web)
		assert.Equal(t, r.visit(web.URL("a.test", "/")).Page.Status, 200, "the first visit")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		x := &Visit{URL: parse(t, web.URL("a.test", "/other"))}
		assert.Is(t, r.Visit(ctx, x), context.DeadlineExceeded,
			"a visit that has to wait for 30 seconds ends after a second with")
		e := must.Get(optout.New(optout.Entry{Scope: optout.ScopeHost, Value: "out.test"}))(t)
		must.Do(t, r.AddOptOut(t.Context(), e))
		assert.Not(t, r.visit(web.URL("out.test", "/")).OptOut, "", "the visit of a host that opted out")
		time.Sleep(time.Hour)
		r.end()
		assert.True(t, !slices.Contains(requestedPages(web.Requests().Host("a.test")), "/other"),
			"a request was made that nobody waited for")
		assert.AtMost(t, len(web.Requests().Host("out.test")), 0, "a host that opted out saw requests")
	})
}

// TestOnlyVisits: a run for visits alone knows what the crawl before it has to wait for, fetches none of its URLs, and
// the next crawl knows of its requests.
func TestOnlyVisits(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "User-agent: *\nCrawl-delay: 60\n", paths("/p/", 9), testweb.Routes{
			"/extra": testweb.Page("x")}))
		o := testOptions(t, web)
		o.ExitWhenDone = false
		pages := func() (paths []string) {
			for _, q := range web.Requests().Host("a.test").Pages() {
				paths = append(paths, q.Path)
			}
			return paths
		}
		for i := range 3 {
			o.OnlyVisits, o.KeepSeeds = i == 1, true
			var r *running
			if o.OnlyVisits {
				before := len(pages())
				r = start(t, o, web)
				x := r.visit(web.URL("a.test", "/extra"))
				assert.True(t, x.Page.Status == 200 && x.Failure == (*fetch.Error)(nil), "the visit: %+v", x.Page)
				time.Sleep(time.Hour)
				if now := pages(); len(now) != before+1 || now[before] != "/extra" {
					t.Errorf("a run for a visit fetched %q", now[before:])
				}
			} else {
				r = start(t, o, web, web.URL("a.test", "/"))
				n := len(pages())
				r.until("two pages", func() bool { return len(pages()) > n+1 })
			}
			r.end()
		}
		for _, gap := range web.Requests().Host("a.test").Gaps() {
			assert.AtLeast(t, gap.Length, time.Minute, "between", gap.Before.Path, gap.After.Path)
		}
	})
}
