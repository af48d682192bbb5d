//go:build unix

package crawl

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/identity"
	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/testing/testweb/todayweb"
)

const (
	benchWorkers = 64
	// benchIdleConns bounds the idle connections of every crawler: without a bound, a web of
	// thousands of hosts takes all descriptors.
	benchIdleConns = 1000
)

// startMesh serves a mesh until the benchmark ends.
func startMesh(b *testing.B, m testweb.Mesh, c testweb.Config) *testweb.Web {
	b.Helper()
	web := must.Get(testweb.NewMesh(m, c))(b)
	b.Cleanup(func() {
		assert.NoError(b, web.Close())
	})
	return web
}

// meshOptions are those of a crawl of a mesh without delay and without output.
func meshOptions(b *testing.B, web *testweb.Web) Options {
	o := testOptions(b, web)
	o.Workers, o.Fetch.MaxIdleConns = benchWorkers, benchIdleConns
	o.Archive.Formats = []string{archive.FormatNone}
	o.Frontier.Politeness.Delay = 0
	return o
}

// benchWeb is a web that is crawled as a whole.
type benchWeb struct {
	*testweb.Web
	name    string
	pages   int
	workers int
}

// BenchmarkCrawl crawls a whole web with the engine as it is (robots.txt, store on disk, one
// request at a time to a host) without output, and with WARC in both compressions, next to the
// least that any crawler in Go does: fetch, find the links with goquery or in the tokens, a map. In
// turns: round by round one after the other, because the speed of a machine is not the same for as
// long as it takes to run each of them many times.
func BenchmarkCrawl(b *testing.B) {
	for _, m := range []testweb.Mesh{
		{Hosts: 64, Pages: 200, Links: 20, PageBytes: 8 << 10},
		{Hosts: 60, Pages: 300, Links: 20, PageBytes: 16 << 10},
		{Hosts: 500, Pages: 40, Links: 50, PageBytes: 30 << 10},
	} {
		name := fmt.Sprintf("hosts=%d/pages=%d", m.Hosts, m.TotalPages())
		web := startMesh(b, m, testweb.Config{CountOnly: true})
		benchmarkCrawlers(b, benchWeb{web, name, m.TotalPages(), benchWorkers})
	}
}

// BenchmarkToday does the same with the web of today: TLS, HTTP/2, compressed pages of 138 KB in the
// median. BENCH_HOSTS is the number of hosts.
func BenchmarkToday(b *testing.B) {
	benchmarkCrawlers(b, startToday(b, todayweb.Web{Hosts: hostsOfBenchmark(b, 48), Pages: 16, PerConnection: 8}))
}

// BenchmarkSigned crawls the web of today with signed requests, in turn with none, and makes bare signatures of
// Ed25519.
func BenchmarkSigned(b *testing.B) {
	web := startToday(b, todayweb.Web{Hosts: hostsOfBenchmark(b, 48), Pages: 16, PerConnection: 8})
	_, private, err := ed25519.GenerateKey(nil)
	must.Do(b, err)
	b.Run("bare", func(b *testing.B) {
		text := make([]byte, 250)
		for b.Loop() {
			ed25519.Sign(private, text)
		}
	})
	now := time.Now()
	keys := must.Get(identity.OpenKeyring(filepath.Join(b.TempDir(), identity.KeysDir), now))(b)
	k, err := identity.NewKey(private.Seed(), now)
	if err == nil {
		_, err = keys.Add(k)
	}
	must.Do(b, err)
	crawlers := []crawler{
		{"unsigned", func(b *testing.B) int { return crawlWebWith(b, web, withoutOutput) }},
		{"signed", func(b *testing.B) int {
			return crawlWebWith(b, web, func(o *Options) {
				withoutOutput(o)
				o.Fetch.Signer = identity.NewSigner(identity.SignerOptions{
					URL: "https://bot.test", Sign: identity.SignAlways, Now: time.Now, Marks: wall.NewMarks(),
					Counts: identity.NewCounts(),
				}, keys)
			})
		}},
	}
	b.Run("pairs/"+web.name, func(b *testing.B) { crawlInTurns(b, web, crawlers) })
}

func withoutOutput(o *Options) { o.Archive.Formats = []string{archive.FormatNone} }

// BenchmarkPageSize crawls pages of one size each over TLS: how many a core can do at most.
func BenchmarkPageSize(b *testing.B) {
	for _, size := range []float64{8e3, 32e3, 138e3, 512e3} {
		b.Run(fmt.Sprintf("bytes=%.0f", size), func(b *testing.B) {
			t := todayweb.Web{Hosts: 64, Pages: 16, PerConnection: 8,
				Sizes: todayweb.Lognormal{Median: size, Mean: size}}
			benchmarkCrawlers(b, startToday(b, t))
		})
	}
}

// BenchmarkGrowth crawls 10,000 pages of 8 KB on one host and on many: what a host costs.
func BenchmarkGrowth(b *testing.B) {
	for _, hosts := range []int{1, 10, 100, 1000, 5000} {
		m := testweb.Mesh{Hosts: hosts, Pages: 10_000 / hosts, Links: 20, PageBytes: 8 << 10}
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			web := benchWeb{startMesh(b, m, testweb.Config{CountOnly: true}), "", m.TotalPages(), benchWorkers}
			benchmarkCrawler(b, web,
				crawler{"amble", func(b *testing.B) int { return crawlWeb(b, web, archive.FormatNone, "") }})
		})
	}
}

// BenchmarkOneHost crawls 5,000 pages of 16 KB on one host, which gets one request at a time, next to
// bare loops with one connection.
func BenchmarkOneHost(b *testing.B) {
	m := testweb.Mesh{Hosts: 1, Pages: 5000, Links: 20, PageBytes: 16 << 10}
	web := benchWeb{startMesh(b, m, testweb.Config{CountOnly: true}), "", m.TotalPages(), 1}
	crawled := web
	crawled.workers = benchWorkers
	crawlInTurns(b, web, []crawler{
		{"bare", func(b *testing.B) int { return crawlBare(b, web, linksOfTree) }},
		{"tokens", func(b *testing.B) int { return crawlBare(b, web, linksOfTokens) }},
		{"amble", func(b *testing.B) int { return crawlWeb(b, crawled, archive.FormatNone, "") }},
	})
}

// hostsOfBenchmark is the number of hosts in the environment variable BENCH_HOSTS.
func hostsOfBenchmark(b *testing.B, usual int) int {
	if text := os.Getenv("BENCH_HOSTS"); text != "" {
		return must.Get(strconv.Atoi(text))(b)
	}
	return usual
}

// startToday serves a web of today until the benchmark ends.
func startToday(b *testing.B, t todayweb.Web) benchWeb {
	web := must.Get(todayweb.New(t))(b)
	b.Cleanup(func() {
		assert.NoError(b, web.Close())
	})
	return benchWeb{web, fmt.Sprintf("hosts=%d/pages=%d", t.Hosts, t.TotalPages()), t.TotalPages(), 4 * benchWorkers}
}

// benchmarkCrawlers runs each crawler alone, and all of them in turn.
func benchmarkCrawlers(b *testing.B, web benchWeb) {
	crawlers := []crawler{
		{"bare", func(b *testing.B) int { return crawlBare(b, web, linksOfTree) }},
		{"tokens", func(b *testing.B) int { return crawlBare(b, web, linksOfTokens) }},
		{"amble", func(b *testing.B) int { return crawlWeb(b, web, archive.FormatNone, "") }},
		{"warc", func(b *testing.B) int { return crawlWeb(b, web, warcfiles.Name, warc.FormatGzip) }},
		{"zstd", func(b *testing.B) int { return crawlWeb(b, web, warcfiles.Name, warc.FormatZstd) }},
	}
	if peer := os.Getenv("BENCH_PEER"); peer != "" {
		crawlers = append(crawlers, crawler{"peer", func(b *testing.B) int { return crawlPeer(b, web, peer) }})
	}
	for _, w := range crawlers {
		b.Run(w.name+"/"+web.name, func(b *testing.B) { benchmarkCrawler(b, web, w) })
	}
	b.Run("turns/"+web.name, func(b *testing.B) { crawlInTurns(b, web, crawlers) })
	b.Run("pairs/"+web.name, func(b *testing.B) { crawlInTurns(b, web, crawlers[2:4]) })
}

func benchmarkCrawler(b *testing.B, web benchWeb, w crawler) {
	b.ReportAllocs()
	var speeds []speed
	for b.Loop() {
		speeds = append(speeds, w.measure(b, web))
	}
	w.report(b, "", speeds)
}

// crawlInTurns runs all crawlers in turn, and reports the median of each and of the quotients of
// each round.
func crawlInTurns(b *testing.B, web benchWeb, crawlers []crawler) {
	speeds := make([][]speed, len(crawlers))
	for round := 0; b.Loop(); round++ {
		for k := range crawlers {
			i := (round + k) % len(crawlers) // nobody is always the first
			speeds[i] = append(speeds[i], crawlers[i].measure(b, web))
		}
	}
	for i, w := range crawlers {
		w.report(b, w.name+"-", speeds[i])
		for j, other := range crawlers[:i] {
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
	conns float64 // connections a page
}

// crawler crawls a web. crawl returns how many pages it fetched.
type crawler struct {
	name  string
	crawl func(b *testing.B) int
}

// measure runs one whole crawl.
func (w crawler) measure(b *testing.B, web benchWeb) speed {
	start, before, conns := time.Now(), cpuTime(b), web.Connections()
	var n int
	pprof.Do(b.Context(), pprof.Labels("crawler", w.name), func(context.Context) { n = w.crawl(b) })
	must.True(b, n == web.pages, "%s: %d pages, want %d", w.name, n, web.pages)
	pages := float64(web.pages)
	return speed{
		pages: pages / time.Since(start).Seconds(), cpu: float64((cpuTime(b) - before).Microseconds()) / pages,
		conns: float64(web.Connections()-conns) / pages,
	}
}

// report reports the medians.
func (w crawler) report(b *testing.B, prefix string, speeds []speed) {
	b.ReportMetric(medianOf(speeds, func(n int) float64 { return speeds[n].pages }), prefix+"pages/s")
	b.ReportMetric(medianOf(speeds, func(n int) float64 { return speeds[n].cpu }), prefix+"cpu-µs/page")
	b.ReportMetric(medianOf(speeds, func(n int) float64 { return speeds[n].conns }), prefix+"conns/page")
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

// cpuTime is what the process and its ended children have used of all cores, the web that it
// serves itself included. On a busy machine it says more than the clock.
func cpuTime(b *testing.B) (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		must.Do(b, syscall.Getrusage(who, &u))
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// crawlPeer has another crawler crawl the web: a program that takes the seeds as arguments and
// prints the number of pages. /etc/hosts must lead the names to the web (docs/PERFORMANCE.md).
// Pages that it loses are logged, and count as fetched.
func crawlPeer(b *testing.B, web benchWeb, program string) int {
	out, err := exec.CommandContext(b.Context(), program, seedsOf(web.Web, web.Sites())...).Output()
	must.Do(b, err, program)
	pages, err := strconv.Atoi(strings.TrimSpace(string(out)))
	must.Do(b, err, program)
	if pages != web.pages {
		b.Logf("%s: %d pages of %d", program, pages, web.pages)
	}
	return web.pages
}

// crawlWeb crawls a web from its roots. records is the compression of WARC records.
func crawlWeb(b *testing.B, web benchWeb, format, records string) int {
	return crawlWebWith(b, web, func(o *Options) {
		o.Archive.Formats, o.Archive.Records.Format = []string{format}, records
	})
}

// crawlWebWith crawls a web from its roots.
func crawlWebWith(b *testing.B, web benchWeb, amend func(*Options)) int {
	o := meshOptions(b, web.Web)
	o.Workers = web.workers
	amend(&o)
	o.Fetch.CAFile = authoritiesFile(b, web.Web)
	e := must.Get(Open(o, testLog(b)))(b)
	var seeds []Seed
	for _, u := range seedsOf(web.Web, web.Sites()) {
		seeds = append(seeds, seed(b, u))
	}
	sum, err := e.Run(context.Background(), seeds)
	must.Do(b, errors.Join(err, e.Close()))
	return int(sum.Status.Run.Pages)
}

// authoritiesFile is a file with the certificates that a web with TLS needs; empty without TLS.
func authoritiesFile(b *testing.B, web *testweb.Web) string {
	if web.Authorities() == nil {
		return ""
	}
	name := filepath.Join(b.TempDir(), "authorities.pem")
	must.Do(b, os.WriteFile(name, web.Authorities(), 0o600))
	return name
}
