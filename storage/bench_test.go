package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// benchSizes returns the numbers of URLs on which the benchmarks work: a million, and those of
// AMBLE_BENCH_URLS:
//
//	AMBLE_BENCH_URLS=10000000,50000000 go test -run '^$' -bench . -benchtime 1x ./storage
func benchSizes(b *testing.B) []int {
	sizes := []int{1_000_000}
	for _, text := range strings.FieldsFunc(os.Getenv("AMBLE_BENCH_URLS"), func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		must.Do(b, err, "AMBLE_BENCH_URLS")
		if !slices.Contains(sizes, n) {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// benchHosts is the number of hosts in the stores of the benchmarks.
const benchHosts = 10_000

// benchURLs makes URLs that look like a crawl's: uniform over the hosts, about 75 bytes each.
type benchURLs struct {
	hosts int
	n     int // made so far
}

// host returns the number of the n-th URL's host.
func (g *benchURLs) host(n int) int {
	mixed := (uint64(n) + 1) * 0x9e3779b97f4a7c15
	mixed = (mixed ^ mixed>>29) * 0xbf58476d1ce4e5b9
	return int(mixed>>33) % g.hosts
}

func benchHostName(host int) string { return "www.site-" + strconv.Itoa(host) + ".example" }

// at returns the n-th URL.
func (g *benchURLs) at(n int) weburl.URL {
	o := weburl.Origin{Scheme: "https", Host: benchHostName(g.host(n)), Port: 443}
	return o.URL("/articles/2026/section-" + strconv.Itoa(n%17) + "/story-" + strconv.Itoa(n) + ".html")
}

func (g *benchURLs) next() weburl.URL {
	g.n++
	return g.at(g.n)
}

// benchBatch is the number of new URLs in a commit.
const benchBatch = 20000

func benchFound(s *Store, u weburl.URL) Found {
	return Found{URL: u, Fingerprint: s.Fingerprint(u), Depth: 3, ViaHost: 1, ViaOrdinal: 77, At: someTime}
}

// benchOutcome returns an outcome for the n-th URL of a host.
func benchOutcome(n uint64) Outcome {
	return Outcome{
		State: Fetched, Status: 200, At: someTime, Bytes: 20_000 + n, Digest: n*0x9e3779b97f4a7c15 + 1,
		ETag: `"` + strings.Repeat("e", 20) + `"`, Modified: someTime.UTC().Format(httpDate),
	}
}

func benchOpen(b *testing.B, dir string, o Options) *Store {
	return must.Get(Open(dir, o))(b)
}

func benchClose(b *testing.B, s *Store) {
	must.Do(b, s.Close())
}

// commits are the durations of commits, and the most anonymous memory of the process after one of
// them.
type commits struct {
	took      []time.Duration
	anonymous int
}

// newCommits frees what the benchmark used before, so that the memory is that of the commits.
func newCommits() *commits {
	debug.FreeOSMemory()
	return &commits{}
}

// time makes one commit and returns how long it took.
func (c *commits) time(b *testing.B, commit func() error) time.Duration {
	t := time.Now()
	must.Do(b, commit())
	took := time.Since(t)
	c.took = append(c.took, took)
	c.anonymous = max(c.anonymous, anonymousBytes())
	return took
}

// report reports the rate of n items, the longest commits and the memory.
func (c *commits) report(b *testing.B, n int, unit string) {
	var total time.Duration
	for _, t := range c.took {
		total += t
	}
	slices.Sort(c.took)
	b.ReportMetric(float64(n)/total.Seconds(), unit+"/s")
	b.ReportMetric(float64(c.took[len(c.took)*99/100].Milliseconds()), "p99-ms")
	b.ReportMetric(float64(c.longest().Milliseconds()), "max-ms")
	b.ReportMetric(float64(c.anonymous)/(1<<20), "anonymous-MiB")
}

func (c *commits) longest() time.Duration { return slices.Max(c.took) }

func benchFileSize(b *testing.B, path string) int64 {
	return must.Get(fileSize(path))(b)
}

func reportSize(b *testing.B, path string, urls int) {
	b.ReportMetric(float64(benchFileSize(b, path))/float64(urls), "B/url")
}

// anonymousBytes returns the memory of the process without mapped files, or 0 if it is unknown.
func anonymousBytes() int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// BENCH_STORE names a directory in which the benchmarks keep their filled stores, because filling
// one of 50 million URLs takes longer than the measurements on it. Without it each benchmark fills
// a store in a temporary directory.
func benchKept() string { return os.Getenv("BENCH_STORE") }

// madeStore fills a store and returns its directory. A kept store gets its name when it is complete
// and replaces an earlier one; what an interrupted benchmark leaves has another name.
func madeStore(b *testing.B, name string, fill func(dir string)) string {
	if benchKept() == "" {
		dir := b.TempDir()
		fill(dir)
		return dir
	}
	dir := filepath.Join(benchKept(), name)
	part := dir + ".part"
	must.Do(b, errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o755)))
	fill(part)
	must.Do(b, errors.Join(os.RemoveAll(dir), os.Rename(part, dir)))
	return dir
}

// keptStore returns the directory of a kept store, or fills one.
func keptStore(b *testing.B, name string, fill func(dir string)) string {
	if benchKept() != "" {
		dir := filepath.Join(benchKept(), name)
		if _, err := os.Stat(dir); err == nil {
			b.Logf("uses %s", dir)
			return dir
		}
	}
	return madeStore(b, name, fill)
}

// changeable returns the directory of a store that the benchmark may change: a copy of a kept one.
func changeable(b *testing.B, dir, file string) string {
	if benchKept() == "" {
		return dir
	}
	own := b.TempDir()
	must.Do(b, copyFile(filepath.Join(own, file), filepath.Join(dir, file)))
	return own
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close(), in.Close())
}

// cycled is a store in which a crawl goes on.
type cycled interface {
	path() string
	take(b *testing.B, host int) // reads the next URL of a host and notes its outcome
	find(u weburl.URL)           // notes a link of it
	full() bool                  // whether that is as much as a crawl commits at a time
	commit() error               // writes all that was noted, durable
}

// benchCycle takes the next URL of each host in turn and completes it with ten links, two of them
// new. All of that counts, including the creation of the links. It returns its measurements.
func benchCycle(b *testing.B, g *benchURLs, s cycled) point {
	size, disk := g.n, benchFileSize(b, s.path())
	all := newCommits()
	cycles := 0
	for b.Loop() {
		for !s.full() {
			cycles++
			s.take(b, cycles%g.hosts)
			for i := range 10 {
				u := g.at(1 + (cycles*2654435761+i*40503)%g.n)
				if i < 2 {
					u = g.next()
				}
				s.find(u)
			}
		}
		all.time(b, s.commit)
	}
	rate := float64(cycles) / b.Elapsed().Seconds()
	all.report(b, cycles, "commit-cycles")
	b.ReportMetric(rate, "cycles/s")
	b.ReportMetric(float64(disk)/float64(size), "B/url")
	return point{Items: size, Rate: rate, Worst: all.longest(), Memory: all.anonymous, Disk: disk}
}
