//go:build unix

package crawl

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// daemonWeb is a web whose pages stay as they are, or change a little, between the rounds of BenchmarkDaemon.
type daemonWeb struct {
	hosts, pages, links, bytes int

	round      atomic.Int64
	changes    bool // a figure in the text of each page is that of the round
	validators bool // pages have a validator
}

func (w *daemonWeb) requests() int { return w.hosts * (w.pages + 1) } // a robots.txt each

// sites returns the hosts. Page i leads to the pages from i*links+1 on, and to itself.
func (w *daemonWeb) sites() (sites []testweb.Site) {
	paragraph := "<p class=\"text\">The ferry over the sound leaves at dawn, and whoever has <em>missed</em> it " +
		"waits with <strong>bread, cheese</strong> and the newspaper of the day before until it is back.</p>\n"
	filler := strings.Repeat(paragraph, max(0, w.bytes-40*w.links)/len(paragraph))
	page := func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			testweb.Robots("").ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		if w.validators {
			rw.Header().Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") != "" {
				rw.WriteHeader(http.StatusNotModified)
				return
			}
		}
		n := 0
		_, _ = fmt.Sscanf(r.URL.Path, "/page-%d", &n)
		var b strings.Builder
		fmt.Fprintf(&b, "<!DOCTYPE html><html lang=en><title>Page %d</title><body><ul>\n", n)
		for j := range w.links {
			fmt.Fprintf(&b, "<li><a href=\"/page-%d\">Page %[1]d</a></li>\n", min(n*w.links+j+1, w.pages-1))
		}
		b.WriteString("</ul>\n" + filler)
		if w.changes {
			fmt.Fprintf(&b, "<p>visitor %d", w.round.Load())
		}
		_, _ = rw.Write([]byte(b.String()))
	}
	for h := range w.hosts {
		sites = append(sites, testweb.Site{Host: fmt.Sprintf("d%d.test", h), Handler: http.HandlerFunc(page)})
	}
	return sites
}

// BenchmarkDaemon crawls a web as a run that ends, and as a daemon, which visits each page three times more. It
// reports the processor time that the crawler takes for a request (a page, or the robots.txt of a host), as medians:
// of a run that ends, of the first visit of a daemon, and of the later visits to pages that say that nothing has
// changed (304), whose body is the same, and whose text has one figure changed. The crawler has a process of its
// own for each round, whose start counts too.
func BenchmarkDaemon(b *testing.B) {
	for _, size := range []int{8 << 10, 16 << 10} {
		b.Run(fmt.Sprintf("hosts=40/pages=16000/bytes=%d", size), func(b *testing.B) {
			costs := make(map[string][]float64)
			for b.Loop() {
				for _, kind := range []string{"304", "equal", "changed"} {
					measureDaemon(b, size, kind, costs)
				}
			}
			for name, each := range costs {
				slices.Sort(each)
				b.ReportMetric(each[len(each)/2], name+"-ms/request")
				b.ReportMetric(each[len(each)/2]/costs["first"][len(costs["first"])/2], name+"/first")
			}
		})
	}
}

// measureDaemon adds what a request costs in each round.
func measureDaemon(b *testing.B, size int, kind string, costs map[string][]float64) {
	w := &daemonWeb{
		hosts: 40, pages: 400, links: 20, bytes: size, changes: kind == "changed", validators: kind == "304",
	}
	web := testweb.Serve(b, testweb.Config{Sites: w.sites(), CountOnly: true})
	plan := recrawl.DefaultOptions()
	plan.Policy, plan.Interval, plan.Min, plan.Max, plan.Budget = recrawl.Fixed, time.Hour, time.Hour, time.Hour, 0
	c := childConfig{
		Resolver: web.ResolverAddr(), Seeds: seedsOf(web, web.Sites()), Formats: []string{archive.FormatNone},
		Compress: archive.CompressNone,
		Workers:  benchWorkers,
	}
	costs["ends"] = append(costs["ends"], crawlAlone(b, b.TempDir(), c, w.requests()))
	c.Recrawl = &plan
	dir := b.TempDir()
	for round := range 4 {
		name, n := "first", w.requests()
		if round > 0 {
			name, n = kind, w.hosts*w.pages
		}
		c.Requests, c.Ahead = int64(n), time.Duration(round)*2*time.Hour
		w.round.Store(int64(round))
		costs[name] = append(costs[name], crawlAlone(b, dir, c, n))
	}
}

// crawlAlone runs the crawler with what it finds in a directory, and returns the milliseconds of processor time a
// request.
func crawlAlone(b *testing.B, dir string, c childConfig, requests int) float64 {
	testkit.PrepareChild(b, dir, c)
	child, done := startChild(b, dir)
	must.Do(b, <-done)
	cpu := child.ProcessState.UserTime() + child.ProcessState.SystemTime()
	return cpu.Seconds() * 1000 / float64(requests)
}
