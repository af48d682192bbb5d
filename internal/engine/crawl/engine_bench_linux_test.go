package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// noNetwork is a fetcher that has each page in memory: page i of a host leads to those from i*links+1 on.
type noNetwork struct {
	*fetch.Client
	pages map[string][]byte // by path, of any host
}

func newNoNetwork(client *fetch.Client, pages, links, bytes int) *noNetwork {
	n := &noNetwork{client, map[string][]byte{"/robots.txt": []byte("User-agent: *\nDisallow: /private/\n")}}
	for i := range pages {
		var b strings.Builder
		fmt.Fprintf(&b, "<!DOCTYPE html><html lang=en><title>Page %d</title><body><ul>\n", i)
		for j := range links {
			fmt.Fprintf(&b, "<li><a href=\"/page-%d\">Page %[1]d</a></li>\n", 1+(i*links+j)%(pages-1))
		}
		text := "<p>The ferry over the sound leaves at dawn.</p>\n"
		b.WriteString("</ul>\n" + strings.Repeat(text, max(0, bytes-b.Len())/len(text)))
		n.pages[fmt.Sprintf("/page-%d", i)] = []byte(b.String())
	}
	n.pages["/"] = n.pages["/page-0"]
	return n
}

// Do is part of fetcher.
func (n *noNetwork) Do(_ context.Context, r fetch.Request) (*fetch.Response, error) {
	now := time.Now()
	kind := "text/html; charset=utf-8"
	if r.URL.RequestURI() == "/robots.txt" {
		kind = "text/plain"
	}
	body := n.pages[r.URL.RequestURI()]
	return &fetch.Response{
		Status: 200, Proto: "HTTP/1.1", Header: http.Header{"Content-Type": {kind}}, Body: spool.Of(body),
		Start: now, Connected: now, FirstByte: now, End: now, WireBytes: int64(len(body)),
		RemoteAddr: netip.AddrPortFrom(r.Address, 80),
	}, nil
}

// threadTime is what the thread of the caller has used.
func threadTime(b *testing.B) time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	must.Do(b, syscall.Getrusage(thread, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEngine crawls pages that a fetcher without a network has in memory, twice: what all of the engine does, the
// reading of the pages and the commits included, and what the dispatcher costs, on a thread of its own.
func BenchmarkEngine(b *testing.B) {
	const hosts, pages, links, bytes = 200, 100, 10, 2 << 10
	web := testweb.Serve(b, testweb.Config{Sites: engineSites(hosts), CountOnly: true})
	for _, procs := range []int{1, 2, 4} {
		name := fmt.Sprintf("hosts=%d/pages=%d/bytes=%d/procs=%d", hosts, hosts*pages, bytes, procs)
		b.Run(name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			var dispatcher, all, clock time.Duration
			for b.Loop() {
				for _, locked := range []bool{false, true} {
					thread, process, took := crawlWithoutNetwork(b, web, pages, links, bytes, locked)
					if locked {
						dispatcher += thread
					} else {
						all, clock = all+process, clock+took
					}
				}
			}
			n := float64(b.N * hosts * pages)
			b.ReportMetric(float64(dispatcher.Nanoseconds())/1000/n, "dispatcher-µs/page")
			b.ReportMetric(float64(all.Nanoseconds())/1000/n, "cpu-µs/page")
			b.ReportMetric(n/clock.Seconds(), "pages/s")
		})
	}
}

// crawlWithoutNetwork crawls all pages of a web. If locked, the dispatcher has a thread of its own, whose processor
// time it returns; then each hand-over to the dispatcher wakes that thread.
func crawlWithoutNetwork(
	b *testing.B, web *testweb.Web, pages, links, bytes int, locked bool,
) (thread, process, took time.Duration) {
	e := must.Get(Open(meshOptions(b, web), testLog(b)))(b)
	e.client = newNoNetwork(e.shared.client, pages, links, bytes)
	var seeds []Seed
	for _, u := range seedsOf(web, web.Sites()) {
		seeds = append(seeds, seed(b, u))
	}
	if locked {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	thread, process, began := threadTime(b), cpuTime(b), time.Now()
	sum, err := e.Run(context.Background(), seeds)
	thread, process, took = threadTime(b)-thread, cpuTime(b)-process, time.Since(began)
	if err := errors.Join(err, e.Close()); err != nil || sum.Status.Run.Pages != uint64(len(seeds)*pages) {
		b.Fatalf("%d pages: %v", sum.Status.Run.Pages, err)
	}
	return thread, process, took
}

// engineSites are hosts that nobody asks for pages.
func engineSites(n int) (sites []testweb.Site) {
	for h := range n {
		sites = append(sites, testweb.Site{Host: fmt.Sprintf("e%d.test", h), Handler: http.NotFoundHandler()})
	}
	return sites
}
