package requestlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
)

func BenchmarkAppend(b *testing.B) {
	for _, hosts := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			dir := b.TempDir()
			l := mustOpen(b, dir, DefaultOptions(), testProcess())
			p := policyOf("User-agent: *\nCrawl-delay: 1\nDisallow: /private/\n")
			requests := make([]*Request, hosts)
			for i := range requests {
				requests[i] = request(b, i,
					fmt.Sprintf("http://www.host%d.example/articles/2026/11/a-title-of-some-length-%d", i,
						i), 0, p)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				r := requests[n%hosts]
				r.End = began.Add(time.Duration(n) * time.Millisecond)
				r.Start = r.End.Add(-100 * time.Millisecond)
				r.Decided = r.Start.Add(-30 * time.Microsecond)
				r.LedgerOffset = uint64(1000 + 80*n)
				must.Do(b, l.Append(r))
				n++
			}
			_, s := readAllBench(b, dir)
			b.ReportMetric(float64(s.Bytes)/float64(s.Requests), "B/request")
		})
	}
}

func readAllBench(b *testing.B, dir string) (time.Duration, Summary) {
	start := time.Now()
	s := must.Get(Read(dir, Query{}, func(*Request) error { return nil }))(b)
	took := time.Since(start)
	b.ReportMetric(float64(took.Nanoseconds())/float64(s.Requests), "ns/read")
	return took, s
}
