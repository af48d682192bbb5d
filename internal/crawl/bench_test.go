//go:build unix

package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/testweb"
)

const benchWorkers = 64

// startMesh serves a mesh until the benchmark ends.
func startMesh(b *testing.B, m testweb.Mesh, c testweb.Config) *testweb.Web {
	b.Helper()
	web, err := testweb.NewMesh(m, c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := web.Close(); err != nil {
			b.Error(err)
		}
	})
	return web
}

// meshOptions are those of a crawl of a mesh without delay and without output.
func meshOptions(b *testing.B, web *testweb.Web) Options {
	o := testOptions(b, web)
	o.Workers, o.Fetch.MaxIdleConns = benchWorkers, 1000
	o.Archive.Formats = []string{archive.FormatNone}
	o.Frontier.Politeness.Delay = 0
	return o
}

// BenchmarkCrawl crawls a whole web with the engine as it is (robots.txt, store on
// disk, one request at a time to a host) without output, and with WARC, beside the least that any
// crawler in Go does: fetch, goquery, a map.
func BenchmarkCrawl(b *testing.B) {
	for _, m := range []testweb.Mesh{
		{Hosts: 64, Pages: 200, Links: 20, PageBytes: 8 << 10},
		{Hosts: 500, Pages: 40, Links: 50, PageBytes: 30 << 10},
	} {
		web := startMesh(b, m, testweb.Config{CountOnly: true})
		name := fmt.Sprintf("hosts=%d/pages=%d", m.Hosts, m.TotalPages())
		var bare, own, stored speed
		b.Run("bare/"+name, func(b *testing.B) {
			bare = rate(b, m, func() int { return crawlBare(b, web, m) })
		})
		b.Run("amble/"+name, func(b *testing.B) {
			own = rate(b, m, func() int { return crawlMesh(b, web, m, archive.FormatNone) })
			if bare.pages > 0 {
				b.ReportMetric(own.pages/bare.pages, "of-bare")
				b.ReportMetric(bare.cpu/own.cpu, "of-bare-by-cpu")
			}
		})
		b.Run("warc/"+name, func(b *testing.B) {
			stored = rate(b, m, func() int { return crawlMesh(b, web, m, archive.FormatWARC) })
			if bare.pages > 0 && own.pages > 0 {
				b.ReportMetric(stored.pages/bare.pages, "of-bare")
				b.ReportMetric(stored.pages/own.pages, "of-none")
				b.ReportMetric(own.cpu/stored.cpu, "of-none-by-cpu")
			}
		})
	}
}

// speed is what a page costs.
type speed struct {
	pages float64 // a second
	cpu   float64 // microseconds a page
}

// rate runs whole crawls and reports their speed.
func rate(b *testing.B, m testweb.Mesh, crawl func() int) speed {
	b.ReportAllocs()
	pages, before := 0, cpuTime(b)
	for b.Loop() {
		n := crawl()
		if n != m.TotalPages() {
			b.Fatalf("%d pages, want %d", n, m.TotalPages())
		}
		pages += n
	}
	s := speed{
		pages: float64(pages) / b.Elapsed().Seconds(),
		cpu:   float64((cpuTime(b) - before).Microseconds()) / float64(pages),
	}
	b.ReportMetric(s.pages, "pages/s")
	b.ReportMetric(s.cpu, "cpu-µs/page")
	return s
}

// cpuTime is what the process has used of all cores, the web that it serves
// itself included. On a busy machine it says more than the clock.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// crawlMesh crawls a mesh from its roots.
func crawlMesh(b *testing.B, web *testweb.Web, m testweb.Mesh, format string) int {
	o := meshOptions(b, web)
	o.Archive.Formats = []string{format}
	e, err := Open(o, testLog(b))
	if err != nil {
		b.Fatal(err)
	}
	var seeds []Seed
	for h := range m.Hosts {
		seeds = append(seeds, seed(b, web.URL(m.Host(h), "/")))
	}
	sum, err := e.Run(context.Background(), seeds)
	if err := errors.Join(err, e.Close()); err != nil {
		b.Fatal(err)
	}
	return int(sum.Status.Run.Pages)
}

// bareCrawl is what a crawl of a mesh takes at least.
type bareCrawl struct {
	client *http.Client
	mu     sync.Mutex
	more   *sync.Cond
	seen   map[string]bool
	queue  []string
	busy   int
	pages  int
}

func crawlBare(b *testing.B, web *testweb.Web, m testweb.Mesh) int {
	dialer := &net.Dialer{}
	transport := &http.Transport{MaxIdleConns: 1000, MaxIdleConnsPerHost: benchWorkers, DisableCompression: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, net.JoinHostPort(web.Address(host).String(), port))
		}}
	defer transport.CloseIdleConnections()
	c := &bareCrawl{client: &http.Client{Transport: transport}, seen: make(map[string]bool)}
	c.more = sync.NewCond(&c.mu)
	for h := range m.Hosts {
		c.add(web.URL(m.Host(h), "/"))
	}
	var wg sync.WaitGroup
	for range benchWorkers {
		wg.Go(func() {
			for {
				u, ok := c.next()
				if !ok {
					return
				}
				links, err := c.fetch(u)
				if err != nil {
					b.Error(err)
				}
				c.done(links)
			}
		})
	}
	wg.Wait()
	return c.pages
}

func (c *bareCrawl) add(u string) {
	if !c.seen[u] {
		c.seen[u] = true
		c.queue = append(c.queue, u)
	}
}

func (c *bareCrawl) next() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && c.busy > 0 {
		c.more.Wait()
	}
	if len(c.queue) == 0 {
		return "", false
	}
	u := c.queue[0]
	c.queue = c.queue[1:]
	c.busy++
	return u, true
}

func (c *bareCrawl) done(links []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range links {
		c.add(u)
	}
	c.busy--
	c.pages++
	c.more.Broadcast()
}

func (c *bareCrawl) fetch(text string) (links []string, err error) {
	base, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Get(text)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	doc, err := goquery.NewDocumentFromReader(resp.Body)
	if err != nil {
		return nil, err
	}
	doc.Find("a[href]").Each(func(_ int, s *goquery.Selection) {
		href, _ := s.Attr("href")
		if u, err := base.Parse(href); err == nil {
			u.Fragment = ""
			links = append(links, u.String())
		}
	})
	_, err = io.Copy(io.Discard, resp.Body)
	return links, err
}
