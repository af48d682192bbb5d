package crawl

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// endless is a site with ordinary pages and one trap of each kind. Each kind of
// trap goes on for ever by itself.
type endless struct {
	ordinary []string
	visits   atomic.Int64
}

func newEndless() *endless {
	year := time.Now().Year()
	e := &endless{ordinary: slices.Concat([]string{"/"}, paths("/docs/", 40), paths("/shop?page=", 15), []string{
		fmt.Sprintf("/archive/%d/05/07/news", year-5), fmt.Sprintf("/report-%d-12.html", year-1), "/photos/1/1/1.html",
		"/a/very/long/path/that/is/still/read/by/people/index.html", "/search?q=a&lang=en&order=date&size=10&from=20",
	})}
	return e
}

func (e *endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	uri, path := r.URL.RequestURI(), r.URL.EscapedPath()
	n := e.visits.Add(1)
	session := fmt.Sprintf("PHPSESSID=%032x", n)
	var links []string
	switch {
	case path == "/robots.txt":
		w.WriteHeader(http.StatusNotFound)
		return
	case path == "/":
		links = slices.Concat(e.ordinary,
			[]string{"/list?n=0", "/calendar/" + time.Now().AddDate(1, 0, 0).Format("2006/01"),
				"/mirror/a/b/", "/grow?x=1", "/same/", "/deep/0/", "/many?x=1"})
	case strings.HasPrefix(path, "/docs/"):
		for _, doc := range paths("/docs/", 40)[:5] {
			links = append(links, doc+"?"+session, fmt.Sprintf("%s;jsessionid=%x", doc, n))
		}
	case path == "/list":
		links = []string{fmt.Sprintf("/list?n=%d", 2*n), fmt.Sprintf("/list?n=%d&order=up", 2*n+1)}
	case strings.HasPrefix(path, "/calendar/"):
		if month, err := time.Parse("2006/01", strings.TrimPrefix(path, "/calendar/")); err == nil {
			links = []string{"/calendar/" + month.AddDate(0, 1, 0).Format("2006/01"),
				"/calendar/" + month.AddDate(8, 0, 0).Format("2006/01")}
		}
	case strings.HasPrefix(path, "/mirror/"):
		links = []string{"a/b/"}
	case path == "/grow":
		links = []string{uri + "&page=2"}
	case strings.HasPrefix(path, "/same/"):
		links, uri = []string{"1/", "2/"}, "the same everywhere"
	case strings.HasPrefix(path, "/deep/"):
		links = []string{fmt.Sprintf("%d/", n)}
	case path == "/many":
		links = []string{uri + fmt.Sprintf("&x%d=1", n)}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<title>%s</title>", html.EscapeString(uri))
	for _, link := range links {
		fmt.Fprintf(&b, "<a href=\"%s\">x</a>\n", html.EscapeString(link))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(b.String()))
}

func trapOptions(t testing.TB, web *testweb.Web) Options {
	o := testOptions(t, web)
	o.Frontier.Politeness.Delay = 0
	o.Storage.MaxQueries, o.Storage.MaxSameDigest = 30, 10
	return o
}

// refusals reads what the store says was refused of a host.
func refusals(t testing.TB, dir, host string) map[storage.Trap]storage.TrapCount {
	t.Helper()
	all := make(map[storage.Trap]storage.TrapCount)
	readHost(t, dir, host, func(s *storage.Store, h *storage.Host) error {
		counts, err := s.Traps(h.ID)
		for _, c := range counts {
			all[c.Reason] = c
		}
		return err
	})
	return all
}

// TestTraps: a crawl of a site that is full of traps ends by itself, all its ordinary
// pages are fetched, and every trap is counted with samples.
func TestTraps(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		site := newEndless()
		web := serve(testweb.Site{Host: "trap.test", Handler: site})
		o := trapOptions(t, web)
		sum := crawl(t, o, seedsOf(web, web.Sites())...)
		states := make(map[string]storage.State)
		for u, outcome := range stored(t, o.DataDir) {
			states["/"+strings.SplitN(u, "/", 4)[3]] = outcome.State
		}
		for _, page := range site.ordinary {
			assert.Equal(t, states[page], storage.Fetched, page)
		}
		assert.AtMost(t, len(states), 400, "URLs of a site with", len(site.ordinary), "ordinary pages are in the store")
		refused := refusals(t, o.DataDir, "trap.test")
		for trap, sample := range map[storage.Trap]string{
			storage.TrapDepth: "/deep/", storage.TrapRepetition: "/mirror/", storage.TrapParameters: "/many?",
			storage.TrapCalendar: "/calendar/", storage.TrapGrowth: "/grow?", storage.TrapQueries: "/list?",
			storage.TrapSession: "/docs/", storage.TrapSameContent: "/same/",
		} {
			c := refused[trap]
			if c.Count == 0 || len(c.Samples) == 0 || len(c.Samples) > 3 || !strings.Contains(c.Samples[0], sample) {
				t.Errorf("%s: %d refused, samples %q; want one of %s", trap, c.Count, c.Samples, sample)
			}
		}
		for trap, c := range refused {
			assert.Equal(t, sum.Status.Traps[trap.String()], c.Count, trap, "the status counts the store")
		}
		assert.Equal(t, len(sum.Status.Traps), len(refused), "status counts", sum.Status.Traps)
		checkOutput(t, o)
		served := web.Served()
		crawl(t, o, seedsOf(web, web.Sites())...)
		assert.Equal(t, web.Served()-served, 0, "requests in a second run")
	})
}

// TestTrapsSwitchedOff: without the checks the same site has no end, and a limit of
// its host stops it. In real time: without a delay, nothing waits.
func TestTrapsSwitchedOff(t *testing.T) {
	t.Parallel()
	site := newEndless()
	web := startWeb(t, testweb.Site{Host: "trap.test", Handler: site})
	o := trapOptions(t, web)
	o.Traps, o.SessionNames = frontier.TrapOptions{}, nil
	o.Storage = storage.Options{MaxHostURLs: 400}
	crawl(t, o, seedsOf(web, web.Sites())...)
	assert.Equal(t, len(stored(t, o.DataDir)), 400, "URLs, the limit is 400")
	refused := refusals(t, o.DataDir, "trap.test")
	assert.True(t, len(refused) == 1 && refused[storage.TrapHostURLs].Count != 0, "refused %v", refused)
}

// TestTrapIsNoWall: short pages that are all the same and link to each other are no wall, whatever
// their sections are, and also if redirects lead to them.
func TestTrapIsNoWall(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/%d/plan", "/%d/moved", "/p/%d/plan", "/month-%d"} {
		virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
			var months []string
			for i := range 30 {
				months = append(months, fmt.Sprintf(path, i))
			}
			routes, all := make(testweb.Routes), len(months)
			for _, month := range months {
				routes[month] = testweb.Page("nothing is planned", months...)
				if strings.HasSuffix(month, "/moved") {
					routes[month+"-to"] = routes[month]
					routes[month] = http.RedirectHandler(month+"-to", http.StatusMovedPermanently)
					all++
				}
			}
			pages := slices.Concat(months[:1], paths("/", 5), paths("/p/", 5), paths("/q/r/", 5))
			web := testweb.Serve(t,
				testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", pages, routes)}})
			o := trapOptions(t, web)
			o.Storage.MaxSameDigest = 0
			began := time.Now()
			crawl(t, o, web.URL("a.test", "/"))
			if n, took := len(web.Requests().Pages()), time.Since(began); n != 16+all || took > 20*time.Second {
				t.Errorf("%s: %d requests in %v, want %d and no backoff", path, n, took, 16+all)
			}
		})
	}
}

// TestSessionRedirect: a site that gives each visitor a session id by a redirect is
// crawled as any other.
func TestSessionRedirect(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		var visits atomic.Int64
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/robots.txt":
				w.WriteHeader(http.StatusNotFound)
			case !strings.Contains(r.RequestURI, "sid="):
				http.Redirect(w, r, fmt.Sprintf("%s?sid=%d", r.URL.Path, visits.Add(1)), http.StatusFound)
			default:
				testweb.Page("page", "/one?sid=7", "/two?sid=7", "/three").ServeHTTP(w, r)
			}
		})
		web := serve(testweb.Site{Host: "session.test", Handler: handler})
		o := trapOptions(t, web)
		o.Frontier.Politeness = politeness.DefaultOptions()
		o.Frontier.Politeness.Delay = time.Millisecond
		crawl(t, o, seedsOf(web, web.Sites())...)
		fetched := make(map[string]int)
		for u, outcome := range stored(t, o.DataDir) {
			if path, _, _ := strings.Cut(strings.SplitN(u, "/", 4)[3], "?"); outcome.State == storage.Fetched {
				fetched[path]++
			}
		}
		want := (map[string]int{"": 1, "one": 1, "two": 1, "three": 1})
		assert.True(t, maps.Equal(fetched, want), "fetched %v, want %v", fetched, want)
	})
}

// TestBudgetIsReported: a host whose budget is spent is postponed for that reason, and
// the next run with the same budget makes no request.
func TestBudgetIsReported(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("big.test", "", paths("/", 30), nil), site("small.test", "", paths("/", 3), nil))
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = time.Millisecond
		o.Frontier.HostBudget = 10
		for range 2 {
			sum := crawl(t, o, seedsOf(web, web.Sites())...)
			p := sum.Postponed
			assert.True(t, len(p) == 1 && p[0].Host == "big.test" && p[0].Reason == "budget" && p[0].URLs == 21,
				"postponed %+v", p)
			assert.Equal(t, len(web.Requests().Pages().CountByPath()), 14, "requested")
		}
	})
}

// TestSeedPriority: seeds of a higher priority are requested first.
func TestSeedPriority(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 30), nil))
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = time.Millisecond
		base := strings.TrimSuffix(seedsOf(web, web.Sites())[0], "/")
		seeds := []Seed{seed(t, base+"/aa"), seed(t, base+"/ab"), seed(t, base+"/ac"), seed(t, base+"/")}
		seeds[0].Priority, seeds[1].Priority, seeds[2].Priority = -1, 3, 7
		e := must.Get(Open(o, testLog(t)))(t)
		must.Get(e.Run(t.Context(), seeds))(t)
		assert.NoError(t, e.Close())
		var order []string
		for _, q := range web.Requests().Pages().Host("a.test") {
			order = append(order, q.Path)
		}
		n := len(order)
		assert.True(t, n == 31 && order[0] == "/ac" && order[1] == "/ab" && order[2] == "/" && order[n-1] == "/aa",
			"requested in the order %v", order)
	})
}
