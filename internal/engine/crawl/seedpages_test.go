package crawl

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// withMaxPages returns a seed with a limit of pages.
func withMaxPages(t *testing.T, url string, most uint32) Seed {
	s := seed(t, url)
	s.MaxPages, s.Settings = most, true
	return s
}

// atItsPort returns a page with links to other hosts of its web.
func atItsPort(title string, links ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := net.SplitHostPort(r.Host)
		var full []string
		for _, link := range links {
			full = append(full, strings.TrimSuffix(link, "/")+":"+port+"/")
		}
		testweb.Page(title, full...).ServeHTTP(w, r)
	})
}

// TestSeedPages: a seed with max_pages has so many pages and no more, judged by the web, over many hosts at the same
// time, while another seed has all. A higher limit brings more pages, and none brings all, also when the process began
// again in between.
func TestSeedPages(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const hosts, each, others = 8, 5, 12
		var sites []testweb.Site
		var links []string
		for n := range hosts {
			host := fmt.Sprintf("h%d.a.test", n)
			sites = append(sites, site(host, "", append(paths("/", each-1), "/missing"), // with / there are so many
				testweb.Routes{"/missing": testweb.Status(404)}))
			links = append(links, "http://"+host+"/")
		}
		sites = append(sites, site("www.a.test", "", nil, testweb.Routes{"/": atItsPort("a", links...)}),
			site("b.test", "", paths("/", others), nil))
		web := serve(sites...)
		o := testOptions(t, web)
		limited := func(most uint32) Seed {
			s := withMaxPages(t, web.URL("www.a.test", "/"), most)
			s.Scope = "domain"
			return s
		}
		pages := func() (n int) { // of the seed, as the web has served them
			n = pagesOf(web, "www.a.test")["/"]
			for i := range hosts {
				for path, count := range pagesOf(web, fmt.Sprintf("h%d.a.test", i)) {
					if path != "/missing" {
						n += count
					}
				}
			}
			return n
		}
		run := func(change func(*Engine), seeds ...Seed) {
			e, stop := daemonOf(t, o, seeds...)
			defer stop()
			settled := func() bool {
				n := e.Status().URLs
				return n["fetched"] > 0 && n["queued"]+n["retrying"] == 0 && e.Status().InFlight == 0
			}
			time.Sleep(time.Minute) // what an earlier process left, and URLs that come back, have their turn
			testkit.Until(t, "all is settled", settled)
			if change != nil {
				change(e)
				testkit.Until(t, "all is settled", settled)
			}
		}
		set := func(most uint32) func(*Engine) {
			return func(e *Engine) {
				must.Get(e.ChangeSeeds(context.Background(), SeedWish{Add: []Seed{limited(most)}}))(t)
				time.Sleep(time.Minute) // the URLs that come back have their turn
			}
		}
		want := func(what string, n int) {
			t.Helper()
			assert.Equal(t, pages(), n, what, "the web has served pages of the seed")
		}
		other := withMaxPages(t, web.URL("b.test", "/"), 0)
		run(nil, limited(10), other)
		want("max_pages=10", 10)
		assert.Equal(t, len(pagesOf(web, "b.test")), others+1, "the other seed pages")
		left := 0
		for _, outcome := range stored(t, o.DataDir) {
			if outcome.State == storage.Excluded && outcome.Reason == storage.ReasonSeedPages {
				left++
			}
		}
		assert.Not(t, left, 0, "no URL is excluded for max_pages")
		run(nil, limited(10), other)
		want("the same again", 10)
		run(set(14), limited(10), other)
		want("max_pages=14 while it runs", 14)
		run(nil, limited(17), other) // what the settings say has the last word
		want("max_pages=17 when it starts", 17)
		run(set(0), limited(17), other)
		want("no limit", 1+hosts*each)
	})
}

// TestHeavySeedPagesAfterKill kills a crawl again and again: no count is lost, and the seed has as many pages in the
// end as it may. In real time: processes die.
func TestHeavySeedPagesAfterKill(t *testing.T) {
	t.Parallel()
	const most, all, kills = 40, 120, 5
	web := startWeb(t, site("a.test", "", paths("/", all), nil))
	dir, o := prepareChild(t, childConfig{
		Resolver: web.ResolverAddr(), Delay: 5 * time.Millisecond, Seeds: []string{web.URL("a.test", "/")},
		Formats: []string{"jsonl"}, Compress: "none", MaxPages: most,
	})
	for n := range kills {
		child, done := startChild(t, dir)
		before := len(web.Requests().Host("a.test").Pages())
		for deadline := time.Now().Add(patience); len(web.Requests().Host("a.test").Pages()) < before+3+n; {
			if time.Now().After(deadline) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		_ = child.Process.Kill()
		<-done
	}
	_, done := startChild(t, dir)
	must.Do(t, <-done)
	fetched := 0
	for _, outcome := range stored(t, o.DataDir) {
		if outcome.State == storage.Fetched {
			fetched++
		}
	}
	assert.Equal(t, fetched, most, "pages were fetched")
	again, distinct := 0, len(pagesOf(web, "a.test"))
	for _, n := range pagesOf(web, "a.test") {
		again += n - 1
	}
	assert.Equal(t, distinct, most, "different pages were requested")
	t.Logf("%d pages were requested again", again)
}
