//go:build linux

package crawl

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/testing/testweb/todayweb"
)

// BenchmarkMemory crawls pages of 1 MB with 64 workers, and the web of today with 256, in a process of
// its own, and reports the most anonymous memory that it had: all but the pages of files, which the
// system takes back when it wants to. The processor time is that of this process alone.
func BenchmarkMemory(b *testing.B) {
	m := testweb.Mesh{Hosts: 64, Pages: 8, Links: 20, PageBytes: 1 << 20}
	large := benchWeb{startMesh(b, m, testweb.Config{CountOnly: true}), "large", m.TotalPages(), benchWorkers}
	today := startToday(b, todayweb.Web{Hosts: hostsOfBenchmark(b, 300), Pages: 4, PerConnection: 8})
	today.name = "today"
	for _, web := range []benchWeb{large, today} {
		for _, format := range []string{archive.FormatNone, warcfiles.Name} {
			b.Run(fmt.Sprintf("web=%s/output=%s", web.name, format),
				func(b *testing.B) { measureAlone(b, web, format) })
		}
	}
}

// BenchmarkHosts crawls one host and many, without delay, with the crawler in a process of its own and
// as many idle connections as it has by default: what a host costs, without what it costs the web. The
// pages of a single host have 32 KB, and it is also crawled with a wait before each response, as over a
// network.
func BenchmarkHosts(b *testing.B) {
	for _, c := range []struct {
		hosts, pages, bytes int
		wait                time.Duration
	}{
		{1, 10_000, 32 << 10, 0}, {1, 10_000, 32 << 10, time.Millisecond},
		{100, 100, 8 << 10, 0}, {1000, 10, 8 << 10, 0}, {5000, 2, 8 << 10, 0}, {5000, 6, 8 << 10, 0},
	} {
		m := testweb.Mesh{Hosts: c.hosts, Pages: c.pages, Links: 20, PageBytes: c.bytes, Wait: c.wait}
		name := fmt.Sprintf("hosts=%d/pages=%d", c.hosts, c.pages)
		if c.wait > 0 {
			name += fmt.Sprintf("/wait=%v", c.wait)
		}
		b.Run(name, func(b *testing.B) {
			web := benchWeb{startMesh(b, m, testweb.Config{CountOnly: true}), "mesh", m.TotalPages(), benchWorkers}
			measureAlone(b, web, archive.FormatNone)
		})
	}
}

// measureAlone crawls a web in a process of its own.
func measureAlone(b *testing.B, web benchWeb, format string) {
	var most, conns int64
	var cpu time.Duration
	for b.Loop() {
		dir, _ := prepareChild(b, childConfig{Resolver: web.ResolverAddr(), Seeds: seedsOf(web.Web, web.Sites()),
			Formats: []string{format}, Compress: archive.CompressNone, Workers: web.workers,
			CAFile: authoritiesFile(b, web.Web)})
		before, connsBefore := web.Served(), web.Connections()
		child, done := startChild(b, dir)
		tick := time.NewTicker(10 * time.Millisecond)
		for running := true; running; {
			select {
			case err := <-done:
				must.Do(b, err)
				running = false
			case <-tick.C:
				most = max(most, anonymous(child.Process.Pid))
			}
		}
		tick.Stop()
		cpu += child.ProcessState.UserTime() + child.ProcessState.SystemTime()
		conns += web.Connections() - connsBefore
		pages := web.Served() - before
		must.True(b, pages >= int64(web.pages), "%d pages, want %d", pages, web.pages)
	}
	b.ReportMetric(float64(most)/(1<<20), "anonymous-MiB")
	b.ReportMetric(float64(cpu.Microseconds())/float64(web.pages*b.N), "cpu-µs/page")
	b.ReportMetric(float64(conns)/float64(web.pages*b.N), "conns/page")
	b.ReportMetric(float64(web.pages*b.N)/b.Elapsed().Seconds(), "pages/s")
}

// anonymous is the anonymous memory of a process in bytes, 0 when it has ended.
func anonymous(pid int) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}
