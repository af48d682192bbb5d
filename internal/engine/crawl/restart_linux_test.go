package crawl

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// BenchmarkRestart kills a crawler in the middle of its work, again and again, and measures from
// the start of the next process to the arrival of its first request at a server. With
// AMBLE_BENCH_URLS=10000000 it does so over 10 million URLs, of 100,000 hosts or as many as
// BENCH_HOSTS says. BENCH_STORE names a directory in which the data directory is kept for the next
// run; the crawl has gone on in it by then. cold: the database is not in the page cache.
func BenchmarkRestart(b *testing.B) {
	size := benchURLs()
	hosts := benchHosts(b, size)
	m := testweb.Mesh{Hosts: hosts, Pages: size / hosts, Links: 6, PageBytes: 2 << 10, Addresses: 100}
	kept := os.Getenv("BENCH_STORE")
	var config testweb.Config
	if kept != "" {
		config.Port = restartPort
	}
	web := startMesh(b, m, config)
	dir, o := prepareChild(b, childConfig{
		Resolver: web.ResolverAddr(), Delay: time.Second, Mode: frontier.ModeAny,
		Formats: []string{archive.FormatNone}, Compress: archive.CompressNone,
	})
	if kept == "" {
		fillMesh(b, o, web, m)
	} else {
		keepMesh(b, o, web, m, filepath.Join(kept, fmt.Sprintf("restart-%d-%d", hosts, size)))
	}
	crawlAndKill(b, dir, web, nil) // so that there is something to be settled
	for _, cache := range []string{"warm", "cold"} {
		b.Run(fmt.Sprintf("hosts=%d/urls=%d/cache=%s", hosts, size, cache), func(b *testing.B) {
			var total, worst time.Duration
			var memory, runs int
			for b.Loop() {
				if cache == "cold" {
					forgetCached(b, filepath.Join(o.DataDir, storage.FileName))
				}
				took := crawlAndKill(b, dir, web, func(pid int) { memory = max(memory, anonymousOf(b, pid)) })
				total, worst, runs = total+took, max(worst, took), runs+1
			}
			b.ReportMetric(float64(total.Milliseconds())/float64(runs), "ms-to-first-request")
			b.ReportMetric(float64(worst.Milliseconds()), "longest-ms")
			b.ReportMetric(float64(memory)/(1<<20), "anonymous-MiB")
		})
	}
}

// restartPort is the port of the web where the store is kept: its URLs name it.
const restartPort = 18378

// benchHosts is over how many hosts the URLs are: BENCH_HOSTS says it.
func benchHosts(b *testing.B, size int) int {
	text := os.Getenv("BENCH_HOSTS")
	if text == "" {
		return size / 100
	}
	hosts, err := strconv.Atoi(text)
	must.True(b, err == nil && hosts >= 1 && hosts <= size,
		"BENCH_HOSTS=%s: want a number of hosts, at most one for each of the %d URLs", text, size)
	return hosts
}

// keepMesh makes the data directory a link to one that is kept, and fills that if it is not there.
// It gets its name when it is complete.
func keepMesh(b *testing.B, o Options, web *testweb.Web, m testweb.Mesh, kept string) {
	if _, err := os.Stat(kept); err != nil {
		part := o
		part.DataDir = kept + ".part"
		must.Do(b, os.RemoveAll(part.DataDir))
		fillMesh(b, part, web, m)
		must.Do(b, os.Rename(part.DataDir, kept))
	}
	whole := must.Get(filepath.Abs(kept))(b)
	must.Do(b, os.Symlink(whole, o.DataDir))
}

// crawlAndKill starts a crawler, lets it make some hundred requests, and kills it. It returns what
// passed from its start to the arrival of its first request.
func crawlAndKill(b *testing.B, dir string, web *testweb.Web, look func(pid int)) time.Duration {
	before := web.Served()
	start := time.Now()
	child, done := startChild(b, dir)
	for limit := start.Add(time.Minute); web.Served() < before+300; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			b.Fatalf("%d requests in a minute", web.Served()-before)
		}
	}
	if look != nil {
		look(child.Process.Pid)
	}
	must.Do(b, child.Process.Kill())
	err := <-done
	must.True(b, err != nil, "the child ended before it was killed")
	for _, q := range web.Requests() {
		if q.Start.After(start) {
			return q.Start.Sub(start)
		}
	}
	b.Fatal("no request is recorded")
	return 0
}

// forgetCached takes a file out of the page cache.
func forgetCached(b *testing.B, path string) {
	f := must.Get(os.Open(path))(b)
	must.Do(b, errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close()))
}

// anonymousOf is the memory of a process less what is mapped from files.
func anonymousOf(b *testing.B, pid int) int {
	f := must.Get(os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid)))(b)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib int
		if n, _ := fmt.Sscanf(lines.Text(), "Anonymous: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	b.Fatal("the system does not tell")
	return 0
}
