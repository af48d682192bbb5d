package storage

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
)

// benchURLs makes URLs that look like a crawl's: uniform over the hosts, about
// 75 bytes each.
type benchURLs struct {
	hosts int
	rng   uint64
	n     int
}

func (g *benchURLs) next() weburl.URL {
	g.rng = g.rng*6364136223846793005 + 1442695040888963407
	h := int(g.rng>>33) % g.hosts
	g.n++
	o := weburl.Origin{Scheme: "https", Host: "www.site-" + strconv.Itoa(h) + ".example", Port: 443}
	return o.URL("/articles/2026/section-" + strconv.Itoa(g.n%17) + "/story-" + strconv.Itoa(g.n) + ".html")
}

const benchBatch = 20000

func fillBatch(s *Store, g *benchURLs, n int, b *Batch) {
	b.Found = b.Found[:0]
	at := time.Unix(1_790_000_000, 0)
	for range n {
		u := g.next()
		b.Found = append(b.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), Depth: 3, ViaHost: 1, ViaOrdinal: 77, At: at})
	}
}

func benchSizes() []int {
	sizes := []int{1_000_000}
	for _, f := range []string{os.Getenv("AMBLE_BENCH_URLS")} {
		if n, err := strconv.Atoi(f); err == nil {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// BenchmarkDiscover commits new URLs, durable, uniform over 10,000 hosts.
func BenchmarkDiscover(b *testing.B) {
	for _, size := range benchSizes() {
		b.Run(fmt.Sprintf("hosts=10000/urls=%d", size), func(b *testing.B) {
			for range b.N {
				discover(b, size, 10_000)
			}
		})
	}
}

func discover(b *testing.B, size, hosts int) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	g := &benchURLs{hosts: hosts}
	var batch Batch
	var commits []time.Duration
	var total time.Duration
	for done := 0; done < size; done += benchBatch {
		fillBatch(s, g, min(benchBatch, size-done), &batch)
		t := time.Now()
		if _, err := s.Commit(&batch); err != nil {
			b.Fatal(err)
		}
		commits = append(commits, time.Since(t))
		total += commits[len(commits)-1]
	}
	if n := s.Counters().URLs; n != uint64(size) {
		b.Fatalf("store has %d URLs, want %d", n, size)
	}
	info, err := os.Stat(s.Path())
	if err != nil {
		b.Fatal(err)
	}
	slices.Sort(commits)
	b.ReportMetric(float64(size)/total.Seconds(), "urls/s")
	b.ReportMetric(float64(info.Size())/float64(size), "B/url")
	b.ReportMetric(float64(commits[len(commits)*99/100].Milliseconds()), "p99-ms")
	b.ReportMetric(float64(commits[len(commits)-1].Milliseconds()), "max-ms")
}
