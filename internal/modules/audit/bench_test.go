package audit

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// BenchmarkRun audits a long log. heap-B/host is the memory of the report for each host.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct{ hosts, requests int }{{1000, 200_000}, {100_000, 1_000_000}} {
		b.Run(fmt.Sprintf("hosts=%d/requests=%d", c.hosts, c.requests), func(b *testing.B) {
			dir := b.TempDir()
			writeLog(b, dir, c.hosts, c.requests)
			before := heap()
			var r *Report
			for b.Loop() {
				var err error
				o := Options{Robots: robots.DefaultOptions()}
				if r, err = Run(context.Background(), [][]string{{dir}}, o); err != nil || r.Counts.Violations > 0 {
					b.Fatalf("%+v, %v", r.Counts, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.requests), "ns/request")
			b.ReportMetric((heap()-before)/float64(c.hosts), "heap-B/host")
			runtime.KeepAlive(r)
		})
	}
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// writeLog writes requests to one host after the other, a second apart for each of them.
func writeLog(b *testing.B, dir string, hosts, requests int) {
	b.Helper()
	l := must.Get(requestlog.Open(dir, requestlog.DefaultOptions(),
		requestlog.Process{Began: began, Uptime: 1, Boot: "boot", Tokens: []string{"amble"}, Obey: true}))(b)
	p := policy(rules, began)
	for i := range requests {
		end := began.Add(time.Duration(i) * 2 * time.Second / time.Duration(hosts))
		u := must.Get(weburl.Parse(fmt.Sprintf("http://www.host%d.example/articles/2026/a-title-of-some-length-%d",
			i%hosts, i)))(b)
		must.Do(b, l.Append(&requestlog.Request{URL: u,
			Address: netip.AddrFrom4([4]byte{192, 0, byte(i % hosts / 256), byte(i % hosts)}), Sent: true, Status: 200,
			Start: end.Add(-100 * time.Millisecond), Decided: end.Add(-101 * time.Millisecond), End: end, Bytes: 20_000,
			Delay:       time.Second,
			DelayReason: politeness.ReasonCrawlDelay, Allowed: true, Policy: p}))
	}
	must.Do(b, l.Close())
}
