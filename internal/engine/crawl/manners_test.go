package crawl

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// after is a response with a Retry-After that is a date, so long after the request. Dates have
// whole seconds: it is rounded up.
func after(status int, wait time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		date := time.Now().Add(wait + time.Second).Truncate(time.Second)
		testweb.RetryAfter(status, date.UTC().Format(http.TimeFormat)).ServeHTTP(w, r)
	})
}

// TestRetryAfterForms: both forms of Retry-After hold the whole host, seen at the server, with each
// status that may have it, and over a stop of the crawler too.
func TestRetryAfterForms(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Second
	for name, answer := range map[string]http.Handler{
		"429 seconds": testweb.RetryAfter(429, "2"), "503 seconds": testweb.RetryAfter(503, "2"),
		"429 date": after(429, wait), "503 date": after(503, wait),
	} {
		for _, stops := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with a stop: %t", name, stops), func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
					refused := make(chan struct{}, 10)
					web := serve(site("a.test", "", paths("/", 3), testweb.Routes{
						"/aa": testweb.Flaky(1, signal(refused, answer), testweb.Page("aa")),
					}))
					o := testOptions(t, web)
					o.GiveUpAfter = 20 * time.Second
					if stops {
						stopAfter(t, o, refused, web.URL("a.test", "/"))
					}
					crawl(t, o, web.URL("a.test", "/"))
					held := false
					for _, g := range web.Requests().Gaps() {
						if g.Before.Status == 429 || g.Before.Status == 503 {
							held = true
							// the date was made a little before the answer was sent
							assert.AtLeast(t, g.Length, wait-50*time.Millisecond, "between", g.Before.Status,
								g.Before.Path, g.After.Path)
						}
					}
					n := len(web.Requests().Path("/aa"))
					assert.True(t, held && n == 2, "/aa was requested %d times", n)
					checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
					checkLogged(t, o.DataDir, web.Requests())
				})
			})
		}
	}
}

// stopAfter crawls until something has happened, and then stops.
func stopAfter(t *testing.T, o Options, happened <-chan struct{}, seeds ...string) {
	t.Helper()
	e := must.Get(Open(o, testLog(t)))(t)
	list := seedList(t, seeds...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() {
		<-happened
		cancel()
	}()
	_, err := e.Run(ctx, list)
	assert.True(t, err == nil, "%v", err)
	assert.NoError(t, e.Close())
}

// TestRedirectsKeepTheGap: a page that redirects to another host makes no request there out of
// turn, nor does a chain between two hosts.
func TestRedirectsKeepTheGap(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const delay = 100 * time.Millisecond
		there, back := make(testweb.Routes), make(testweb.Routes)
		web := serve(site("a.test", "", paths("/", 8), there), site("b.test", "", paths("/", 8), back))
		for i, p := range paths("/", 8) {
			there[p] = testweb.Redirect(302, web.URL("b.test", p))
			if i%2 == 0 {
				back[p] = testweb.Redirect(302, web.URL("a.test", p+"x"))
				there[p+"x"] = testweb.Page("end")
			}
		}
		web.SetHandler("a.test", site("a.test", "", paths("/", 8), there).Handler)
		web.SetHandler("b.test", site("b.test", "", paths("/", 8), back).Handler)
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = delay
		crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		log := web.Requests()
		checkPolite(t, log, delay)
		if a, b := len(log.Host("a.test")), len(log.Host("b.test")); a != 1+1+8+4 || b != 1+1+8 {
			t.Errorf("%d requests to one host and %d to the other, want 14 and 10", a, b)
		}
		checkLogged(t, o.DataDir, log)
	})
}

// TestRetriesKeepTheGap: what failed is tried again at the pace of its host, which failures make
// slower; other pages keep the distance too. A kept connection that breaks says nothing about the
// host, which may just have closed it: the next request, over a new one, does.
func TestRetriesKeepTheGap(t *testing.T) {
	t.Parallel()
	half := testweb.Cut("text/html", []byte("<p>half of it"))
	for _, c := range []struct {
		name string
		bad  http.Handler
		keep bool // connections
		slow int  // failures that slow the host down
	}{
		{"500", testweb.Status(500), true, 2},
		{"reset", testweb.Reset(), false, 2},
		{"reset of a kept connection", testweb.Reset(), true, 1},
		{"cut", half, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				web := serve(site("a.test", "", paths("/", 4),
					testweb.Routes{"/ab": testweb.Flaky(2, c.bad, testweb.Page("ab"))}))
				o := testOptions(t, web)
				o.GiveUpAfter = 20 * time.Second
				if !c.keep {
					o.Fetch.MaxIdleConns = 0
				}
				crawl(t, o, web.URL("a.test", "/"))
				log := web.Requests()
				checkPolite(t, log, o.Frontier.Politeness.Delay)
				failures, slow := 0, 0
				for _, g := range log.Gaps() {
					if g.Before.Path != "/ab" || g.Before.Status == 200 && failures == 2 {
						continue
					}
					failures++
					if g.Length >= time.Second {
						slow++
					}
				}
				if failures != 2 || slow != c.slow {
					t.Errorf("%d failures, %d of them slowed the host down, want 2 and %d: %+v", failures, slow,
						c.slow, log.Gaps())
				}
				assert.Equal(t, len(log.Path("/ab")), 3, "/ab was requested times")
			})
		})
	}
}

// TestStopsKeepTheGap: a crawl that is stopped and gone on with all the time requests nothing of a
// host earlier than one that runs through.
func TestStopsKeepTheGap(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const delay = 300 * time.Millisecond
		rules := fmt.Sprintf("User-agent: *\nCrawl-delay: %g\n", delay.Seconds())
		var sites []testweb.Site
		var hosts []string
		for i := range 5 {
			host := fmt.Sprintf("h%d.test", i)
			sites, hosts = append(sites, site(host, rules, paths("/", 6), nil)), append(hosts, host)
		}
		web := serve(sites...)
		o := testOptions(t, web)
		for i := range 8 {
			must.Get(crawlFor(t, o, time.Duration(100+37*i)*time.Millisecond, seedsOf(web, hosts)...))(t)
		}
		crawl(t, o, seedsOf(web, hosts)...)
		log := web.Requests()
		checkPolite(t, log, delay)
		assert.Equal(t, len(log.Pages()), 5*7, "pages were requested")
		checkLogged(t, o.DataDir, log)
	})
}
