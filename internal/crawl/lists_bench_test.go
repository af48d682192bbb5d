//go:build unix

package crawl

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// BenchmarkLists asks a crawl that is paused for pages of its lists, over hosts of ten URLs: 100,000 URLs, or as many as
// AMBLE_BENCH_URLS says. longest is that of all calls, and includes the first, which has the table of hosts made.
func BenchmarkLists(b *testing.B) {
	size := benchURLs()
	m := testweb.Mesh{Hosts: size / 10, Pages: 10, Links: 6, PageBytes: 2 << 10, Addresses: 10}
	web := startMesh(b, m, testweb.Config{CountOnly: true})
	o := meshOptions(b, web)
	o.ExitWhenDone, o.Mode, o.Frontier.Politeness.Delay = false, frontier.ModeAny, time.Minute
	fillMesh(b, o, web, m)
	e, err := Open(o, testLog(b))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := e.Run(ctx, nil)
		ended <- err
	}()
	for e.Pause(ctx) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	v := e.View()
	failed, queued := storage.Failed, storage.Queued
	for _, call := range []struct {
		name string
		ask  func() error
	}{
		{"hosts/sort=waiting", hostsBy(v, inspect.HostQuery{Sort: "waiting", Limit: 50})},
		{"hosts/sort=finish", hostsBy(v, inspect.HostQuery{Sort: "finish", Limit: 1000})},
		{"hosts/sort=name", hostsBy(v, inspect.HostQuery{Sort: "name", Limit: 50})},
		{"hosts/sort=name/contains", hostsBy(v, inspect.HostQuery{Sort: "name", Limit: 50, Contains: "nowhere"})},
		{"hosts/state=busy", hostsBy(v, inspect.HostQuery{State: inspect.HostBusy, Sort: "waiting", Limit: 50})},
		{"host", func() error { _, err := v.Host(ctx, m.Host(m.Hosts-1)); return err }},
		{"urls", urlsBy(v, inspect.URLQuery{Limit: 1000, State: &queued, Examine: 20_000})},
		{"urls/state=failed", urlsBy(v, inspect.URLQuery{Limit: 1000, State: &failed, Examine: 20_000})},
		{"urls/from=middle", urlsBy(v, inspect.URLQuery{Limit: 1000, From: storage.Position{Host: storage.HostID(m.Hosts / 2)}})},
		{"url", func() error { _, err := v.URL(ctx, parse(b, web.URL(m.Host(m.Hosts/2), "/"))); return err }},
	} {
		b.Run(fmt.Sprintf("hosts=%d/urls=%d/%s", m.Hosts, size, call.name), func(b *testing.B) {
			var worst time.Duration
			for b.Loop() {
				start := time.Now()
				if err := call.ask(); err != nil {
					b.Fatal(err)
				}
				worst = max(worst, time.Since(start))
			}
			b.ReportMetric(float64(worst.Microseconds())/1000, "longest-ms")
		})
	}
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	if err := e.Close(); err != nil {
		b.Error(err)
	}
}

func hostsBy(v *inspect.View, q inspect.HostQuery) func() error {
	return func() error { _, err := v.HostPage(context.Background(), q); return err }
}

func urlsBy(v *inspect.View, q inspect.URLQuery) func() error {
	return func() error { _, err := v.URLPage(context.Background(), q); return err }
}

// benchURLs is how many URLs the benchmarks of large stores make: AMBLE_BENCH_URLS says it.
func benchURLs() int {
	if n, err := strconv.Atoi(os.Getenv("AMBLE_BENCH_URLS")); err == nil {
		return n
	}
	return 100_000
}

// fillMesh makes a store that knows all pages of a mesh.
func fillMesh(b *testing.B, o Options, web *testweb.Web, m testweb.Mesh) {
	s, err := storage.Open(o.DataDir, storage.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var batch storage.Batch
	for h := range m.Hosts {
		root, err := weburl.Parse(web.URL(m.Host(h), "/"))
		if err != nil {
			b.Fatal(err)
		}
		for i := range m.Pages {
			u := root.Origin().URL(m.Path(i))
			batch.Found = append(batch.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: time.Now()})
		}
		if len(batch.Found) < maxPending && h+1 < m.Hosts {
			continue
		}
		if _, err := s.Commit(&batch); err != nil {
			b.Fatal(err)
		}
		batch.Found = batch.Found[:0]
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
