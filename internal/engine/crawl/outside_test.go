package crawl

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestCheckOutside: links that leave the scope are checked once, by a HEAD, and by a GET if that is refused, at the
// delay and under the robots.txt of their hosts. Nothing there is followed, nothing counts as a page, and what does not
// answer is failed, whatever the depth of the page that has the link.
func TestCheckOutside(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		full := func(links ...string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, port, _ := net.SplitHostPort(r.Host)
				var all []string
				for _, link := range links {
					host, path, _ := strings.Cut(link, "/")
					all = append(all, "http://"+host+":"+port+"/"+path)
				}
				testweb.Page("a", all...).ServeHTTP(w, r)
			})
		}
		noHead := func(status int) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					w.WriteHeader(status)
					return
				}
				testweb.Page("no head", "/deeper").ServeHTTP(w, r)
			})
		}
		web := serve(
			testweb.Site{Host: "a.test", Handler: testweb.Routes{
				"/": full("a.test/deep", "b.test/ok", "b.test/missing", "b.test/405", "b.test/403", "b.test/moved",
					"b.test/denied"),
				"/deep": full("a.test/too/deep", "b.test/ok", "c.test/far", "d.test/"),
			}},
			testweb.Site{Host: "b.test", Handler: testweb.Routes{
				"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /denied\n"),
				"/ok":         testweb.Page("ok", "/deeper"), "/missing": testweb.Status(404), "/405": noHead(405),
				"/403": noHead(403), "/denied": testweb.Page("x"), "/deeper": testweb.Page("x"),
				"/moved": testweb.Redirect(301, "/deeper"),
			}},
			testweb.Site{Host: "d.test", Handler: testweb.Routes{"/": http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Cf-Mitigated", "challenge")
					w.WriteHeader(http.StatusForbidden)
				})}},
			testweb.Site{Host: "c.test", Handler: testweb.Routes{"/far": testweb.Page("far", "/deeper")}})
		o := testOptions(t, web)
		o.CheckOutside, o.Frontier.MaxDepth, o.Frontier.MaxRedirects = true, 1, 5
		o.Frontier.HostBudget = 2
		crawl(t, o, web.URL("a.test", "/"))
		got := make(map[string]string)
		for u, outcome := range stored(t, o.DataDir) {
			p := parse(t, u)
			if p.Host() == "d.test" { // it may be tried again
				assert.Equal(t, outcome.Reason, storage.ReasonWall, "a challenge is taken for", outcome)
				continue
			}
			got[p.Host()+p.RequestURI()] = fmt.Sprint(outcome.State, " ", outcome.Status, " ",
				inspect.ReasonName(outcome.Reason))
		}
		want := map[string]string{
			"a.test/": "fetched 200 ", "a.test/deep": "fetched 200 ",
			"b.test/ok": "excluded 200 checked", "b.test/missing": "failed 404 status",
			"b.test/405": "excluded 200 checked",
			"b.test/403": "excluded 200 checked", "b.test/moved": "excluded 301 checked",
			"b.test/denied": "denied 0 robots",
			"c.test/far":    "excluded 200 checked",
		}
		assert.True(t, maps.Equal(got, want), "the URLs are\n%v, want\n%v", got, want)
		var requests []string
		for _, q := range web.Requests() {
			if q.Host != "a.test" && q.Host != "d.test" && q.Path != "/robots.txt" {
				requests = append(requests, q.Method+" "+q.Host+q.Path)
			}
		}
		slices.Sort(requests)
		if text := strings.Join(requests, ", "); text != "GET b.test/403, GET b.test/405, GET b.test/missing, "+
			"HEAD b.test/403, HEAD b.test/405, HEAD b.test/missing, HEAD b.test/moved, HEAD b.test/ok, "+
			"HEAD c.test/far" {
			t.Errorf("outside of the scope was requested: %s", text)
		}
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
		assert.Equal(t, storedPages(t, o), 2, "pages count")
	})
}

// TestCheckOutsideWildcard: links to a domain with a wildcard in the DNS are checked at as many hosts as
// traps.domain_hosts says.
func TestCheckOutsideWildcard(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		var links []string
		var sites []testweb.Site
		for i := range 30 {
			host := fmt.Sprintf("h%d.wild.example", i)
			links = append(links, "//"+host+"/")
			sites = append(sites, testweb.Site{Host: host, Handler: testweb.Routes{"/": testweb.Page("home")}})
		}
		web := serve(append(sites, site("a.test", "", nil, testweb.Routes{"/": testweb.Page("a", links...)}))...)
		o := testOptions(t, web)
		o.CheckOutside, o.MaxDomainHosts = true, 10
		crawl(t, o, web.URL("a.test", "/"))
		visited := 0
		for _, site := range sites {
			if web.ServedBy(site.Host) > 0 {
				visited++
			}
		}
		assert.Equal(t, visited, 10, "links of hosts were checked")
	})
}

// storedPages returns how many pages a crawl has.
func storedPages(t *testing.T, o Options) (n uint64) {
	commitTo(t, o, func(s *storage.Store, _ *storage.Batch) { n = s.Counters().Of(storage.Fetched) })
	return n
}
