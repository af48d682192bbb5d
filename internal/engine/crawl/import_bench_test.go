package crawl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/urllist"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// benchURLs is how many URLs the benchmarks of large stores make: AMBLE_BENCH_URLS says it.
func benchURLs() int {
	if n, err := strconv.Atoi(os.Getenv("AMBLE_BENCH_URLS")); err == nil {
		return n
	}
	return 100_000
}

// BenchmarkImport imports a list of URLs of 10,000 hosts, and of a host for every 3.3 URLs, durable: in random order
// and, for comparison, sorted by host; into a store, and through a crawl that fetches some hundred pages a second
// meanwhile. AMBLE_BENCH_URLS sets the number of URLs.
func BenchmarkImport(b *testing.B) {
	for _, hosts := range []int{10_000, benchURLs() * 3 / 10} {
		for _, order := range []string{"sorted", "random"} {
			name := fmt.Sprintf("order=%s/hosts=%d/urls=%d", order, hosts, benchURLs())
			list := filepath.Join(b.TempDir(), fmt.Sprint(order, hosts))
			must.Do(b, writeList(list, order == "sorted", hosts, benchURLs()))
			b.Run("store/"+name, func(b *testing.B) {
				for range b.N {
					importIntoStore(b, list)
				}
			})
			b.Run("running/"+name, func(b *testing.B) {
				for range b.N {
					importIntoCrawl(b, list)
				}
			})
		}
	}
}

// writeList writes a list: the n-th URL is of a host that looks random, or those of a host come
// together.
func writeList(path string, sorted bool, hosts, urls int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for n := range urls {
		mixed := (uint64(n) + 1) * 0x9e3779b97f4a7c15
		host := int((mixed^mixed>>29)*0xbf58476d1ce4e5b9>>33) % hosts
		if sorted {
			host = n * hosts / urls
		}
		fmt.Fprintf(w, "https://www.site-%d.example/articles/2026/section-%d/story-%d.html\n", host, n%17, n)
	}
	return errors.Join(w.Flush(), f.Close())
}

func importIntoStore(b *testing.B, list string) {
	o := DefaultOptions()
	o.DataDir, o.Archive.Dir, o.MinFree, o.Mode = b.TempDir(), b.TempDir(), 0, frontier.ModeAny
	o.Fetch.UserAgent = "amble-test"
	i := must.Get(OpenImporter(o, nil))(b)
	var longest atomic.Int64
	l := i.newImport(ImportOptions{}, func(ctx context.Context, rows lists.Rows) (lists.Added, error) {
		started := time.Now()
		got, err := i.commitRows(ctx, rows)
		longest.Store(max(longest.Load(), int64(time.Since(started))))
		return got, err
	})
	measureImport(b, l, list)
	b.ReportMetric(float64(longest.Load())/1e6, "max-ms")
	must.Do(b, i.Close())
	file := must.Get(os.Stat(filepath.Join(o.DataDir, storage.FileName)))(b)
	b.ReportMetric(float64(file.Size())/float64(benchURLs()), "disk-B/url")
}

// importIntoCrawl imports while a crawl of other hosts is under way.
func importIntoCrawl(b *testing.B, list string) {
	m := testweb.Mesh{Hosts: 60, Pages: 2_000, Links: 10}
	web := must.Get(testweb.NewMesh(m, testweb.Config{CountOnly: true}))(b)
	defer web.Close()
	o := meshOptions(b, web)
	o.Mode, o.ExitWhenDone, o.Frontier.Politeness.Delay = frontier.ModeAny, false, 100*time.Millisecond
	e := must.Get(Open(o, testLog(b)))(b)
	longest := new(longestCommit)
	e.Observe(longest)
	var seeds []Seed
	for h := range m.Hosts {
		seeds = append(seeds, seed(b, web.URL(m.Host(h), "/")))
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := e.Run(ctx, seeds)
		ended <- err
	}()
	for e.Status().Run.Pages < 100 {
		time.Sleep(10 * time.Millisecond)
	}
	longest.took.Store(0)
	before := e.Status().Run.Pages
	l := must.Get(e.NewImport(ImportOptions{}))(b)
	took := measureImport(b, l, list)
	b.ReportMetric(float64(e.Status().Run.Pages-before)/took.Seconds(), "pages/s")
	b.ReportMetric(float64(longest.took.Load())/1e6, "max-ms")
	stop()
	must.Do(b, errors.Join(<-ended, e.Close()))
}

// longestCommit is an Observer of the longest commit.
type longestCommit struct{ took atomic.Int64 }

func (l *longestCommit) Requested(requestlog.Request) {}

func (l *longestCommit) Committed(took time.Duration, _ int) {
	l.took.Store(max(l.took.Load(), int64(took))) // the committer alone calls it
}

// measureImport imports a list, and reports the rate, the processor time and what is written.
func measureImport(b *testing.B, i Import, path string) time.Duration {
	f := must.Get(os.Open(path))(b)
	defer f.Close()
	started, cpu, written := time.Now(), cpuTime(b), writtenBytes()
	list, err := urllist.NewReader(f)
	for err == nil {
		var item urllist.Item
		if item, err = list.Next(); err != nil {
			break
		}
		if err = i.Add(Addition{URL: item.URL}); err == nil && i.Full() {
			err = i.Commit(context.Background())
		}
	}
	must.True(b, err == io.EOF, "%v", err)
	must.Do(b, i.Commit(context.Background()))
	took, urls := time.Since(started), float64(i.Sum().Added)
	b.ReportMetric(urls/took.Seconds(), "urls/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/1e3/urls, "cpu-µs/url")
	b.ReportMetric(float64(writtenBytes()-written)/urls, "written-B/url")
	if err := i.Close(); err != nil || i.Sum().Added != benchURLs() {
		b.Fatalf("%+v, %v", i.Sum(), err)
	}
	return took
}

// writtenBytes returns what the process has caused to be written to disks, or 0 if it is unknown.
func writtenBytes() int64 {
	text, _ := os.ReadFile("/proc/self/io")
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			bytes, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return bytes
		}
	}
	return 0
}
