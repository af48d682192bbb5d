package crawl

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// TestGaps: from the end of a request to the start of the next, read at the
// server, at least the delay in force.
func TestGaps(t *testing.T) {
	t.Parallel()
	slow := testweb.Slow(150*time.Millisecond, testweb.Page("slow"))
	for _, c := range []struct {
		name   string
		site   testweb.Site
		change func(*Options)
		least  time.Duration
	}{
		{"configured", site("a.test", "", paths("/", 10), nil), nil, 20 * time.Millisecond},
		{"Crawl-delay", site("a.test", "User-agent: *\nCrawl-delay: 0.2\n", paths("/", 8), nil), nil,
			200 * time.Millisecond},
		{"Crawl-delay shorter than configured",
			site("a.test", "User-agent: *\nCrawl-delay: 0.01\n", paths("/", 8), nil),
			func(o *Options) { o.Frontier.Politeness.Delay = 100 * time.Millisecond }, 100 * time.Millisecond},
		{"slow answers", site("a.test", "", paths("/", 2), testweb.Routes{"/aa": slow, "/ab": slow}),
			func(o *Options) { o.Frontier.Politeness.Delay = 100 * time.Millisecond }, 100 * time.Millisecond},
		{"per_host next to a delay", site("a.test", "", paths("/", 10), nil),
			func(o *Options) { o.Frontier.Politeness.PerHost = 8 }, 20 * time.Millisecond},
		{"per_host and no delay but the host's",
			site("a.test", "User-agent: *\nCrawl-delay: 0.1\n", paths("/", 10), nil),
			func(o *Options) { o.Frontier.Politeness.Delay, o.Frontier.Politeness.PerHost = 0, 8 },
			100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				web := serve(c.site)
				o := testOptions(t, web)
				if c.change != nil {
					c.change(&o)
				}
				crawl(t, o, web.URL("a.test", "/"))
				checkPolite(t, web.Requests(), c.least)
				assert.AtMost(t, len(web.Requests().Repeats()), 0, "requested more than once")
				checkOutput(t, o)
			})
		})
	}
}

// TestRequestsSideBySide: without any delay a host is requested by as many requests at a time as
// allowed, and by no more. The first answers wait until so many requests are there, however slow
// the machine.
func TestRequestsSideBySide(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		pages := paths("/", 40)
		routes := testweb.Routes{}
		together := make(chan struct{})
		var came atomic.Int64
		for _, p := range pages {
			slow := testweb.Slow(20*time.Millisecond, testweb.Page(p))
			routes[p] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if came.Add(1) == 3 {
					close(together)
				}
				select {
				case <-together:
				case <-time.After(patience):
				}
				slow.ServeHTTP(w, r)
			})
		}
		web := serve(site("a.test", "", pages, routes))
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay, o.Frontier.Politeness.PerHost, o.Frontier.Politeness.PerIP = 0, 3, 100
		crawl(t, o, web.URL("a.test", "/"))
		assert.Equal(t, web.Requests().MaxInFlight(), 3, "requests were in flight at a time")
		checkPolite(t, web.Requests(), -time.Hour)
	})
}

// TestRetryAfter: 429 and 503 with Retry-After hold the whole host for so long, and
// the URL is requested again. Where there are several, the longest counts.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				web := serve(site("a.test", "", paths("/", 4), testweb.Routes{
					"/aa": testweb.Flaky(1, testweb.RetryAfter(status, "0", "2", "1"), testweb.Page("aa")),
				}))
				o := testOptions(t, web)
				o.GiveUpAfter = 10 * time.Second
				crawl(t, o, web.URL("a.test", "/"))
				log := web.Requests()
				for _, g := range log.Gaps() {
					assert.True(t, g.Before.Status != status || g.Length >= 2*time.Second, "%v between %d %s and %s",
						g.Length, g.Before.Status, g.Before.Path, g.After.Path)
				}
				assert.Equal(t, len(log.Path("/aa")), 2, "/aa was requested times")
				checkStates(t, o, map[string]storage.State{"a.test/": storage.Fetched, "a.test/aa": storage.Fetched,
					"a.test/ab": storage.Fetched, "a.test/ac": storage.Fetched, "a.test/ad": storage.Fetched})
				checkOutput(t, o)
			})
		})
	}
}

// TestBackOff: 429 without a time, and failures in a row, make the crawl leave a
// host alone for longer than the run lasts; its queue is kept, with the reason, and
// the next process keeps the distance too.
func TestBackOff(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(
			site("busy.test", "", paths("/", 9), testweb.Routes{"/ab": testweb.Status(429)}),
			site("down.test", "", paths("/", 9),
				testweb.Routes{"/aa": testweb.Status(500), "/ab": testweb.Status(502), "/ac": testweb.Status(500)}),
		)
		o := testOptions(t, web)
		o.GiveUpAfter = 5 * time.Second
		o.Frontier.RetryDelay = time.Minute
		seeds := []string{web.URL("busy.test", "/"), web.URL("down.test", "/")}
		for run := range 2 {
			sum := crawl(t, o, seeds...)
			reasons := make(map[string]string)
			for _, p := range sum.Postponed {
				reasons[p.Host] = p.Reason
			}
			assert.True(t, len(reasons) == 2 && reasons["busy.test"] == "back-off" &&
				reasons["down.test"] == "back-off", "run %d: postponed: %v", run, reasons)
		}
		log := web.Requests()
		if last := log.Host("busy.test"); last[len(last)-1].Path != "/ab" || len(last) != 4 {
			t.Errorf("busy.test after its 429: %d requests, the last for %s", len(last), last[len(last)-1].Path)
		}
		if last := log.Host("down.test"); last[len(last)-1].Path != "/ac" {
			t.Errorf("down.test got a request for %s after its third failure", last[len(last)-1].Path)
		}
		// Each failure in a row doubles the delay, from half a second on.
		gaps := log.Host("down.test").Gaps()
		for i, least := range []time.Duration{time.Second, 2 * time.Second} {
			assert.AtLeast(t, gaps[len(gaps)-2+i].Length, least, "down.test between")
		}
	})
}

// TestSharedAddress: hosts at one address keep that address's limits together,
// within a run and over a restart.
func TestSharedAddress(t *testing.T) {
	t.Parallel()
	var sites []testweb.Site
	var hosts []string
	for i := range 6 {
		host := fmt.Sprintf("h%d.test", i)
		pages := paths("/", 4)
		routes := testweb.Routes{}
		for _, p := range pages {
			routes[p] = testweb.Slow(20*time.Millisecond, testweb.Page(p))
		}
		s := site(host, "", pages, routes)
		s.Group = "shared"
		sites, hosts = append(sites, s), append(hosts, host)
	}
	t.Run("per_ip", func(t *testing.T) {
		t.Parallel()
		inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
			web := serve(sites...)
			o := testOptions(t, web)
			o.Frontier.Politeness.Delay, o.Frontier.Politeness.PerIP = 0, 2
			crawl(t, o, seedsOf(web, hosts)...)
			assert.Equal(t, web.Requests().MaxInFlight(), 2, "requests at a time reached the address")
			assert.Equal(t, len(web.Requests().Pages()), 6*5, "pages were requested")
		})
	})
	t.Run("ip_delay", func(t *testing.T) {
		t.Parallel()
		inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
			web := serve(sites...)
			o := testOptions(t, web)
			o.Frontier.Politeness.Delay, o.Frontier.Politeness.IPDelay = 0, 50*time.Millisecond
			for range 3 { // the first two runs are stopped on the way
				must.Get(crawlFor(t, o, 600*time.Millisecond, seedsOf(web, hosts)...))(t)
			}
			crawl(t, o, seedsOf(web, hosts)...)
			for _, g := range web.Requests().ShortGaps(o.Frontier.Politeness.IPDelay) {
				t.Errorf("%v between %s%s and %s%s", g.Length, g.Before.Host, g.Before.Path, g.After.Host, g.After.Path)
			}
			assert.Equal(t, len(web.Requests().Pages()), 6*5, "pages were requested")
		})
	})
}

func seedsOf(web *testweb.Web, hosts []string) (seeds []string) {
	for _, h := range hosts {
		seeds = append(seeds, web.URL(h, "/"))
	}
	return seeds
}

// TestHostMoves: a host that moves to another address is requested there, at the pace
// of that address.
func TestHostMoves(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 3), nil), site("b.test", "", nil, nil))
		o := testOptions(t, web)
		crawl(t, o, web.URL("a.test", "/"))
		web.SetAnswer("a.test", web.Address("b.test"))
		web.SetHandler("a.test", site("a.test", "", []string{"/aa"}, nil).Handler)
		crawl(t, o, web.URL("a.test", "/"), web.URL("a.test", "/new"))
		got := web.Requests().Path("/new")
		assert.True(t, len(got) == 1 && got[0].Address == web.Address("b.test").String(),
			"/new was requested like this: %+v", got)
		if addresses := web.Requests().Addresses(); !slices.Contains(addresses, web.Address("a.test").String()) {
			t.Errorf("addresses requested: %v", addresses)
		}
	})
}

// TestOtherFamily: a host is looked up with one query, and its IPv6 address only when it does not
// answer at the other one.
func TestOtherFamily(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 5), nil), site("b.test", "", paths("/", 5), nil))
		o := testOptions(t, web)
		o.GiveUpAfter = time.Hour
		dial, live, dead := o.Fetch.Dial, web.Address("a.test"), netip.MustParseAddr("127.9.9.9")
		var refused atomic.Int64
		o.Fetch.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			to, err := netip.ParseAddrPort(address)
			switch {
			case err == nil && to.Addr() == dead:
				refused.Add(1)
				return nil, syscall.ECONNREFUSED
			case err == nil && to.Addr().Is6():
				address = netip.AddrPortFrom(live, to.Port()).String()
			}
			return dial(ctx, network, address)
		}
		web.SetAnswer("a.test", dead, netip.IPv6Loopback())
		web.SetAnswer("b.test", web.Address("b.test"), netip.IPv6Loopback())
		crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		for u, outcome := range stored(t, o.DataDir) {
			assert.Equal(t, ended(outcome, false), "fetched 200", u)
		}
		if a, b := web.Lookups("a.test"), web.Lookups("b.test"); a != 3 || b != 1 || refused.Load() != 1 {
			t.Errorf("%d and %d queries, want 3 and 1; %d connections refused", a, b, refused.Load())
		}
	})
}

// sizedPages are pages with a link and a title of a length.
func sizedPages(length int, paths ...string) testweb.Routes {
	routes := make(testweb.Routes)
	for _, path := range paths {
		routes[path] = testweb.Page(strings.Repeat("x", length), "/aa")
	}
	return routes
}

// TestNextRequestWhileLinksAreRead: a host without a delay gets its next request while the links of its
// last page are read, one at a time and no further. What is not read yet counts for max_pages and is
// not settled in the start ledger, and a crawl that stops waits for it, for as long as its grace.
func TestNextRequestWhileLinksAreRead(t *testing.T) {
	t.Parallel()
	all, noDelay := paths("/", 6), func(o *Options) { o.Frontier.Politeness.Delay = 0 }
	const long = 10 << 10 // too long for the page of a wall
	for name, test := range map[string]struct {
		length   int // of the pages
		change   func(*Options)
		stops    bool // before the links are read
		released bool // before the grace is over
		while    int  // pages requested before the links are read
		fetched  int  // in the end
	}{
		"no delay": {long, noDelay, false, true, 2, 6},
		"no walls": {long, func(o *Options) { o.Frontier.Politeness.Delay, o.Frontier.Walls = 0, false }, false,
			true, 2, 6},
		"short pages": {100, noDelay, false, true, 1, 6},
		"one worker":  {long, func(o *Options) { o.Frontier.Politeness.Delay, o.Workers = 0, 1 }, false, true, 1, 6},
		"delay":       {long, func(o *Options) { o.Frontier.Politeness.Delay = time.Second }, false, true, 1, 6},
		"max_pages of 1": {long, func(o *Options) { o.Frontier.Politeness.Delay, o.MaxPages = 0, 1 }, false,
			true, 1, 1},
		"host budget": {long, func(o *Options) { o.Frontier.Politeness.Delay, o.Frontier.HostBudget = 0, 1 }, false,
			true, 1, 1},
		"stops":      {long, noDelay, true, true, 2, 2},
		"breaks off": {long, noDelay, true, false, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				closed := testweb.Slow(time.Second, testweb.Robots("User-agent: *\nDisallow: /\n"))
				web := serve(site("a.test", "", all, sizedPages(test.length, all...)),
					site("b.test", "", nil, testweb.Routes{"/robots.txt": closed})) // which is committed meanwhile
				o := testOptions(t, web)
				o.Mode = frontier.ModeAny
				test.change(&o)
				e, err := Open(o, testLog(t))
				must.Do(t, err)
				seeds := []string{web.URL("b.test", "/")}
				for _, path := range all {
					seeds = append(seeds, web.URL("a.test", path))
				}
				permits := cap(e.shared.parsers)
				for range permits {
					<-e.shared.parsers
				}
				release := sync.OnceFunc(func() {
					for range permits {
						e.shared.parsers <- nil
					}
				})
				stop := runDaemon(t, e, seeds...)
				time.Sleep(time.Minute)
				if n := len(web.Requests().Pages()); n != test.while || e.Status().InFlight != test.while {
					t.Errorf("%d pages are requested before the links are read, %d in flight; want %d", n,
						e.Status().InFlight,
						test.while)
				}
				uncommitted := 0
				_, err = starts.Read(o.DataDir, committedOffset(t, e.store), boot.ID(),
					func(_ uint64, s starts.Start) {
						if s.Host == "a.test" {
							uncommitted++
						}
					})
				assert.True(t, err == nil && uncommitted == test.while, "%d requests are not settled (%v), want %d",
					uncommitted, err, test.while)
				switch {
				case test.stops && test.released:
					time.AfterFunc(o.ShutdownGrace/2, release)
				case !test.stops:
					release()
					time.Sleep(time.Minute)
				}
				stop()
				release()
				checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
				assert.AtMost(t, len(web.Requests().Repeats()), 0, "requested more than once")
				checkLogged(t, o.DataDir, web.Requests())
				fetched := func() (n int) {
					for _, outcome := range stored(t, o.DataDir) {
						if outcome.State == storage.Fetched {
							n++
						}
					}
					return n
				}
				assert.Equal(t, fetched(), test.fetched, "pages are fetched")
				if test.stops {
					crawl(t, o)
					assert.Equal(t, fetched(), len(all), "the next process leaves pages fetched")
				}
			})
		})
	}
}
