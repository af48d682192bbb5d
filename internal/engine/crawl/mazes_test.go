package crawl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/domains"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/testing/zoo"
	"github.com/amble-crawler/amble/storage"
)

// addSite adds a site of the zoo.
func (w *wallWeb) addSite(t *testing.T, name string, site zoo.Site) {
	t.Helper()
	visits := must.Get(w.zoo.AddSite(name, site))(t)
	w.visits[name] = visits
	w.seeds = append(w.seeds, w.zoo.URL(name))
}

// TestRefreshMaze: a page that refreshes to itself with another token each time has one request, and as
// many refreshes are followed in a row as redirects.
func TestRefreshMaze(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		const pages = 4
		w.addSite(t, "refreshes", zoo.RefreshMaze(pages))
		o := w.options(t)
		o.Traps, o.MaxPages = DefaultOptions().Traps, 100 // the maze has no end
		crawl(t, o, w.seeds...)
		verify, next := 0, 0
		for _, v := range w.visits["refreshes"]() {
			switch {
			case strings.HasPrefix(v.Target, "/verify/"):
				verify++
			case strings.HasPrefix(v.Target, "/next/"):
				next++
			}
		}
		if want := pages * (1 + int(o.Frontier.MaxRedirects)); verify != pages || next != want {
			t.Errorf("%d and %d requests into the maze, want %d and %d", verify, next, pages, want)
		}
		refused := refusals(t, o.DataDir, w.zoo.Host("refreshes"))
		assert.True(t, len(refused) == 1 && refused[storage.TrapRefresh].Count == 2*pages,
			"refused %v, want %d refreshes", refused, 2*pages)
	})
}

// TestSitemapMaze: indexes of sitemaps take no page from the budget of a host that has pages, and at most a quarter
// of it in all.
func TestSitemapMaze(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		const pages, budget = 20, 40
		w.addSite(t, "sitemaps", zoo.SitemapMaze(100, pages))
		o := w.options(t)
		o.Frontier.HostBudget = budget
		crawl(t, o, w.seeds...)
		var order []string
		requests := make(map[string]int)
		for _, v := range w.visits["sitemaps"]() {
			kind, _, _ := strings.Cut(strings.TrimPrefix(v.Target, "/"), "/")
			kind, _, _ = strings.Cut(kind, "-")
			requests[kind]++
			order = append(order, kind)
		}
		assert.True(t, requests["page"] == pages && requests["map"] <= budget/4 && requests["map"] >= 2,
			"requests by kind: %v, of %d pages", requests, pages)
		if first, last := slices.Index(order, "map"),
			lastIndex(order, "page"); slices.Contains(order[first+1:last], "map") {
			t.Errorf("a sitemap that an index names came before a page: %v", order)
		}
	})
}

func lastIndex(list []string, text string) int {
	last := -1
	for i := range list {
		if list[i] == text {
			last = i
		}
	}
	return last
}

// TestDomainHosts: links to hosts of a domain that has as many as it may have lead nowhere; other domains, and hosts
// that are known, are as before.
func TestDomainHosts(t *testing.T) {
	t.Parallel()
	d := domains.New(100, 1)
	restoreDomains(t, d, "known.wild.example")
	taken := 0
	for i := range 1000 {
		if d.Add(fmt.Sprintf("h%d.wild.example", i)) {
			taken++
		}
	}
	assert.True(t, taken >= 95 && taken <= 99, "%d hosts of a domain were taken, want 99", taken)
	assert.True(t, d.Add("known.wild.example") && d.Add("h3.wild.example") && d.Add("www.other.example"),
		"a known host, or one of another domain, is refused")
	assert.True(t, domains.New(0, 0).Add("any.example"), "without a limit a host is refused")
}

// restoreDomains counts the host of a store.
func restoreDomains(t *testing.T, d *domains.Hosts, name string) {
	one := func(each func(*storage.Host) error) error { return each(&storage.Host{ID: 1, Name: name}) }
	must.Do(t, d.Restore(t.Context(), one))
}

// TestDomainHostsOfStore: whether a link may lead to a host waits until the hosts of the store are counted.
func TestDomainHostsOfStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := domains.New(1, 1)
		added := make(chan bool, 1)
		go func() { added <- d.Add("new.wild.example") }()
		synctest.Wait()
		restoreDomains(t, d, "known.wild.example")
		assert.True(t, !<-added, "a second host of a domain with one host at most is taken")
	})
}

// TestWildcardDomain: a crawl without a scope follows the links of a domain with a wildcard in the DNS to as many
// hosts as traps.domain_hosts says.
func TestWildcardDomain(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		var sites []testweb.Site
		for i := range 30 {
			next := testweb.Page("home", fmt.Sprintf("//h%d.wild.example/", i+1))
			sites = append(sites,
				testweb.Site{Host: fmt.Sprintf("h%d.wild.example", i), Handler: testweb.Routes{"/": next}})
		}
		web := serve(sites...)
		o := testOptions(t, web)
		o.Mode, o.MaxDomainHosts = frontier.ModeAny, 10
		crawl(t, o, web.URL("h0.wild.example", "/"))
		visited := 0
		for _, site := range sites {
			if web.ServedBy(site.Host) > 0 {
				visited++
			}
		}
		assert.Equal(t, visited, 10, "hosts were visited")
	})
}

// TestHeavyMazes: each maze gets at most 200 requests, at its servers and over two restarts, and the pages of the site
// in front of it are all fetched. Forgetting the host, or another setting, puts back what was refused.
func TestHeavyMazes(t *testing.T) {
	t.Parallel()
	const ofSite = 30
	mazes := zoo.Mazes()
	for _, m := range slices.Clone(mazes) {
		if m.Start != "/" {
			mazes = append(mazes, m.WithLinksTo(ofSite, 8))
		}
	}
	for _, m := range mazes {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
				w := newWallWeb(t, network)
				pages := ofSite
				if m.Start == "/" {
					pages = 0 // it is the whole host
				}
				w.addSite(t, "maze", m.Site(pages))
				o := w.options(t)
				o.Traps = DefaultOptions().Traps
				for _, limit := range []time.Duration{80 * time.Second, time.Hour, time.Hour} {
					must.Get(crawlFor(t, o, limit, w.seeds...))(t)
				}
				into, site := 0, make(map[string]bool)
				for _, v := range w.visits["maze"]() {
					if strings.HasPrefix(v.Target, "/page/") {
						site[v.Target] = true
					} else {
						into++
					}
				}
				assert.True(t, into <= 200 && into >= 40 && len(site) == pages,
					"%d requests into it, and for %d pages of %d", into, len(site), pages)
				t.Logf("%d requests into it, of %d pages of the site %d", into, pages, len(site))
				assert.Not(t, refusals(t, o.DataDir, w.zoo.Host("maze"))[storage.TrapMaze].Count, 0,
					"no link is refused")
				o.Traps.MazePages, o.MaxPages = 0, uint64(into+pages+100)
				crawl(t, o, w.seeds...)
				assert.AtLeast(t, len(w.visits["maze"]()), into+pages+50, "requests without the check", into+pages,
					"before")
			})
		})
	}
}

// TestHeavyMazeAtTheRoot: at the server of a site with a maze between its pages, over restarts, all pages are
// fetched, and the maze gets at most 200 requests.
func TestHeavyMazeAtTheRoot(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		m := zoo.Mazes()[1]
		site := zoo.Beside(m, 40)
		m.Links = site.Links
		w.addSite(t, "maze", m.Site(0))
		o := w.options(t)
		o.Traps = DefaultOptions().Traps
		for _, limit := range []time.Duration{200 * time.Second, time.Hour, time.Hour} {
			must.Get(crawlFor(t, o, limit, w.seeds...))(t)
		}
		into, pages := 0, make(map[string]bool)
		for _, v := range w.visits["maze"]() {
			if site.IsPage(v.Target) {
				pages[v.Target] = true
			} else if v.Target != "/robots.txt" {
				into++
			}
		}
		assert.True(t, len(pages) == site.Pages && into <= 200 && into >= 40,
			"%d pages of %d, %d requests into the maze", len(pages), site.Pages, into)
		assert.Not(t, refusals(t, o.DataDir, w.zoo.Host("maze"))[storage.TrapMaze].Count, 0, "no link is refused")
	})
}
