package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"
)

// BenchmarkDashboard crawls over a large store without any delay, as fast as the machine lets it (see startSized), and compares slices of that with a browser and
// slices without: off, on, on, off, so that what drifts counts for both. The browser has the live stream open and goes from page to page, one each second; a host
// page asks for its host again every other second; /metrics is scraped in between. slower is the part of the requests that the crawl does not make meanwhile.
func BenchmarkDashboard(b *testing.B) {
	const slice = 5 * time.Second
	c := startSized(b, 0)
	time.Sleep(slice) // until it has its pace
	var off, on float64
	for b.Loop() {
		off += c.requestsIn(slice)
		ctx, leave := context.WithCancel(context.Background())
		var browser sync.WaitGroup
		browser.Go(func() { c.watch(b, ctx) })
		browser.Go(func() { c.browse(b, ctx) })
		on += c.requestsIn(slice)
		on += c.requestsIn(slice)
		leave()
		browser.Wait()
		off += c.requestsIn(slice)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(off/float64(2*b.N)/slice.Seconds(), "requests/s-off")
	b.ReportMetric(on/float64(2*b.N)/slice.Seconds(), "requests/s-on")
	b.ReportMetric(100*(1-on/off), "%-slower")
}

// requestsIn counts the requests that arrive at the crawled servers.
func (c *sizedCrawl) requestsIn(slice time.Duration) float64 {
	before := c.web.Served()
	time.Sleep(slice)
	return float64(c.web.Served() - before)
}

// watch reads the live stream.
func (c *sizedCrawl) watch(b *testing.B, ctx context.Context) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.server.Address()+"/api/v1/events", nil)
	if err != nil {
		b.Error(err)
		return
	}
	response, err := c.client.Do(q)
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // until the browser leaves
}

// browse asks for what each page of the dashboard asks for.
func (c *sizedCrawl) browse(b *testing.B, ctx context.Context) {
	host, second := c.mesh.Host(c.mesh.Hosts/2), time.NewTicker(time.Second)
	defer second.Stop()
	pages := [][]string{
		{"/", "/app.js", "/style.css", "/api/v1/history?window=10m"},
		{"/api/v1/hosts?sort=waiting&limit=50"},
		{"/api/v1/hosts?sort=finish&limit=50"},
		{"/api/v1/hosts/" + host, "/api/v1/urls?limit=50&host=" + host, "/api/v1/robots?origin=" + url.QueryEscape(c.web.URL(host, ""))},
		{"/metrics"},
		{"/api/v1/hosts/" + host},
		{"/api/v1/hosts?state=busy&sort=delay&limit=50"},
		{"/api/v1/hosts?sort=name&limit=50"},
		{"/api/v1/history?window=24h"},
		{"/api/v1/url?url=" + url.QueryEscape(c.web.URL(host, "/"))},
		{"/api/v1/hosts/" + bigHost, fmt.Sprintf("/api/v1/urls?limit=50&host=%s", bigHost)},
	}
	for n := 0; ; n++ {
		for _, path := range pages[n%len(pages)] {
			if _, _, err := c.get(ctx, path); err != nil {
				if ctx.Err() == nil {
					b.Error(err)
				}
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-second.C:
		}
	}
}
