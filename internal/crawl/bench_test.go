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
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/internal/warc"
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
// disk, one request at a time to a host) without output, and with WARC in both compressions, next to the least that any
// crawler in Go does: fetch, goquery, a map. In turns: round by round one after the other, because the
// speed of a machine is not the same for as long as it takes to run each of them many times.
func BenchmarkCrawl(b *testing.B) {
	for _, m := range []testweb.Mesh{
		{Hosts: 64, Pages: 200, Links: 20, PageBytes: 8 << 10},
		{Hosts: 500, Pages: 40, Links: 50, PageBytes: 30 << 10},
	} {
		web := startMesh(b, m, testweb.Config{CountOnly: true})
		ways := []way{
			{"bare", func(b *testing.B) int { return crawlBare(b, web, m) }},
			{"amble", func(b *testing.B) int { return crawlMesh(b, web, m, archive.FormatNone, "") }},
			{"warc", func(b *testing.B) int { return crawlMesh(b, web, m, archive.FormatWARC, warc.FormatGzip) }},
			{"zstd", func(b *testing.B) int { return crawlMesh(b, web, m, archive.FormatWARC, warc.FormatZstd) }},
		}
		name := fmt.Sprintf("hosts=%d/pages=%d", m.Hosts, m.TotalPages())
		for _, w := range ways {
			b.Run(w.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				var speeds []speed
				for b.Loop() {
					speeds = append(speeds, w.measure(b, m))
				}
				w.report(b, "", speeds)
			})
		}
		b.Run("turns/"+name, func(b *testing.B) { crawlInTurns(b, m, ways) })
	}
}

// crawlInTurns runs all ways in turn, and reports the median of each and of the quotients of each round.
func crawlInTurns(b *testing.B, m testweb.Mesh, ways []way) {
	speeds := make([][]speed, len(ways))
	for round := 0; b.Loop(); round++ {
		for k := range ways {
			i := (round + k) % len(ways) // nobody is always the first
			speeds[i] = append(speeds[i], ways[i].measure(b, m))
		}
	}
	for i, w := range ways {
		w.report(b, w.name+"-", speeds[i])
		for j, other := range ways[:i] {
			pages := medianOf(speeds[i], func(n int) float64 { return speeds[i][n].pages / speeds[j][n].pages })
			cpu := medianOf(speeds[i], func(n int) float64 { return speeds[j][n].cpu / speeds[i][n].cpu })
			b.ReportMetric(pages, w.name+"-of-"+other.name)
			b.ReportMetric(cpu, w.name+"-of-"+other.name+"-by-cpu")
		}
	}
}

// speed is what a page costs.
type speed struct {
	pages float64 // a second
	cpu   float64 // microseconds a page
}

// way is a way to crawl a mesh. crawl returns how many pages it fetched.
type way struct {
	name  string
	crawl func(b *testing.B) int
}

// measure runs one whole crawl.
func (w way) measure(b *testing.B, m testweb.Mesh) speed {
	start, before := time.Now(), cpuTime(b)
	if n := w.crawl(b); n != m.TotalPages() {
		b.Fatalf("%d pages, want %d", n, m.TotalPages())
	}
	pages := float64(m.TotalPages())
	return speed{pages: pages / time.Since(start).Seconds(), cpu: float64((cpuTime(b) - before).Microseconds()) / pages}
}

// report reports the medians.
func (w way) report(b *testing.B, prefix string, speeds []speed) {
	b.ReportMetric(medianOf(speeds, func(n int) float64 { return speeds[n].pages }), prefix+"pages/s")
	b.ReportMetric(medianOf(speeds, func(n int) float64 { return speeds[n].cpu }), prefix+"cpu-µs/page")
}

// medianOf is that of a value of each round.
func medianOf(rounds []speed, value func(n int) float64) float64 {
	values := make([]float64, len(rounds))
	for n := range rounds {
		values[n] = value(n)
	}
	slices.Sort(values)
	return values[len(values)/2]
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

// crawlMesh crawls a mesh from its roots. records is the compression of WARC records.
func crawlMesh(b *testing.B, web *testweb.Web, m testweb.Mesh, format, records string) int {
	o := meshOptions(b, web)
	o.Archive.Formats, o.Archive.Records.Format = []string{format}, records
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
