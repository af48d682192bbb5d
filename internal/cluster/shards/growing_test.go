package shards

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// growing is a web that goes on while a test needs it: each page links to later pages of its host, and
// to one of the next host that nobody else links to. When it is ended, it is a web of as many pages as
// there are links by then, and one machine can crawl the same.
type growing struct {
	sites []testweb.Site

	mu     sync.Mutex // guards what follows
	ended  bool
	linked []int // by host: how many pages are linked to
}

// ahead is to how many pages a page links.
const ahead = 3

// newGrowing returns a web of so many hosts. Each address has so many of them.
func newGrowing(hosts, sharing int) *growing {
	g := &growing{linked: make([]int, hosts)}
	for i := range hosts {
		site := testweb.Site{Host: fmt.Sprintf("town%d.test", i), Handler: g.host(i)}
		if sharing > 1 {
			site.Group = fmt.Sprint("address ", i%(hosts/sharing))
		}
		g.sites = append(g.sites, site)
	}
	return g
}

// host serves one host.
func (g *growing) host(n int) http.Handler {
	robots := testweb.Robots("User-agent: *\nDisallow: /no/\n")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, path := 0, r.URL.Path
		switch {
		case path == "/robots.txt":
			robots.ServeHTTP(w, r)
		case path == "/":
			testweb.Page(r.Host, g.links(n, 0)...).ServeHTTP(w, r)
		case scan(path, "/page/%d", &i):
			next := g.sites[(n+1)%len(g.sites)].Host
			links := append(g.links(n, i+1), "/no/1", fmt.Sprintf("//%s/from-another/%d", next, i))
			testweb.Page(r.Host+path, links...).ServeHTTP(w, r)
		case scan(path, "/from-another/%d", &i), scan(path, "/added/%d", &i):
			testweb.Page(r.Host+path, "/page/0").ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

func scan(path, format string, n *int) bool {
	matched, err := fmt.Sscanf(path, format, n)
	return err == nil && matched == 1 && path == fmt.Sprintf(format, *n)
}

// links returns the links to the pages of a host from a number on.
func (g *growing) links(host, from int) (all []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.linked[host] = max(g.linked[host], from+ahead)
	}
	for i := from; i < min(from+ahead, g.linked[host]); i++ {
		all = append(all, fmt.Sprintf("/page/%d", i))
	}
	return all
}

// end makes the web stop growing. The first page of each host belongs to it: another host leads there, even
// if the root has not been requested yet.
func (g *growing) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for host := range g.linked {
		g.linked[host] = max(g.linked[host], 1)
	}
}

// size returns how many pages the web has.
func (g *growing) size() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, linked := range g.linked {
		n += 1 + 2*linked
	}
	return n
}

// missing returns the pages of the web that are not among some.
func (g *growing) missing(found []string) (missing []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	check := func(page string) {
		if _, is := slices.BinarySearch(found, page); !is {
			missing = append(missing, page)
		}
	}
	for n, linked := range g.linked {
		check(g.sites[n].Host + "/")
		for i := range linked {
			check(fmt.Sprintf("%s/page/%d", g.sites[n].Host, i))
			check(fmt.Sprintf("%s/from-another/%d", g.sites[(n+1)%len(g.sites)].Host, i))
		}
	}
	return missing
}

// withoutAdded returns the pages that the web has links to.
func withoutAdded(pages []string) []string {
	return slices.DeleteFunc(slices.Clone(pages), func(page string) bool { return strings.Contains(page, "/added/") })
}

// difference returns what only one of two sorted lists has.
func difference(a, b []string) (all []string) {
	for _, lists := range [][2][]string{{a, b}, {b, a}} {
		for _, page := range lists[0] {
			if _, found := slices.BinarySearch(lists[1], page); !found {
				all = append(all, page)
			}
		}
	}
	return all
}

// finish ends the growth, waits until the nodes have requested all of the web, and returns what one
// machine requests of it.
func (w *world) finish(g *growing) (want []string) {
	w.t.Helper()
	g.end()
	start := time.Now()
	for most := -1; ; time.Sleep(50 * time.Millisecond) {
		missing := g.missing(pages(w.web))
		if len(missing) == 0 {
			break
		}
		if found := g.size() - len(missing); found > most {
			most, start = found, time.Now() // something is requested
		}
		if time.Since(start) > patience {
			w.t.Fatalf("the crawl: %d of %d pages are missing, and none of them was requested for %v: %v",
				len(missing), g.size(), patience, missing[:min(len(missing), 30)])
		}
	}
	want = aloneAt(w.t, g.sites)
	if got := pages(w.web); !slices.Equal(want, withoutAdded(got)) {
		w.t.Fatalf("one machine has requested %d pages, the nodes %d, the web has %d: %v",
			len(want), len(got), g.size(), difference(want, got))
	}
	return want
}

// aloneAt returns the pages that one machine without a cluster requests.
func aloneAt(t *testing.T, sites []testweb.Site) []string {
	t.Helper()
	web := serve(t, sites)
	crawlAlone(t, allSeeds(t, web), crawlOptions(web, t.TempDir(), "alone", time.Millisecond))
	return pages(web)
}
