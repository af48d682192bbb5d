package crawl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// benchClient is a crawl whose clients decide everything, on the disk of the temporary directory.
func benchClient(b *testing.B) *clientRun {
	o := DefaultOptions()
	o.DataDir, o.Archive.Dir = b.TempDir(), b.TempDir()
	o.Fetch.UserAgent, o.MinFree = "amble-test", 0
	o.Workers, o.ExitWhenDone, o.IgnoreRobots, o.Mode = 0, false, true, frontier.ModeAny
	o.Frontier.Politeness.Delay = 0
	r := &clientRun{o: o, remoteRun: startRemote(b, o)}
	time.Sleep(50 * time.Millisecond)
	return r
}

// benchURL is the i-th URL of a list in random order over n hosts.
func benchURL(i, n int) weburl.URL {
	host := int(uint32(i) * 2654435761 % uint32(n))
	u, err := weburl.Parse(fmt.Sprintf("http://host-%05d.example.com/path/to/a/page-%08d.html", host, i))
	if err != nil {
		panic(err)
	}
	return u
}

// putAll puts n URLs in batches of 100, with 64 in flight. It reports the rate.
func putAll(b *testing.B, r *clientRun, n int, put func(i int) Put) {
	const size, clients = 100, 64
	var next atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for {
				from := int(next.Add(size)) - size
				if from >= n {
					return
				}
				puts := make([]Put, 0, size)
				for i := from; i < min(from+size, n); i++ {
					puts = append(puts, put(i))
				}
				if _, err := r.Put(b.Context(), puts); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkPutDiscovered puts discoveries that are spread over the queues.
func BenchmarkPutDiscovered(b *testing.B) {
	for _, queues := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			r := benchClient(b)
			b.ResetTimer()
			putAll(b, r, b.N, func(i int) Put { return Put{URL: benchURL(i, queues)} })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
			b.StopTimer()
			r.end()
		})
	}
}

// BenchmarkPutKnown puts known URLs, half of them completed and half due later.
func BenchmarkPutKnown(b *testing.B) {
	r := benchClient(b)
	const urls, queues = 100_000, 1000
	putAll(b, r, urls, func(i int) Put { return Put{URL: benchURL(i, queues)} })
	b.ResetTimer()
	putAll(b, r, b.N, func(i int) Put {
		p := Put{URL: benchURL(i%urls, queues), Known: true}
		if i%2 == 0 {
			p.Due = time.Now().Add(time.Hour)
		}
		return p
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
	b.StopTimer()
	r.end()
}

// BenchmarkLease leases URLs of all queues without delay, 100 at a time and 10 of each, and puts them
// as completed.
func BenchmarkLease(b *testing.B) {
	for _, queues := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			r := benchClient(b)
			putAll(b, r, b.N+20*queues, func(i int) Put { return Put{URL: benchURL(i, queues)} })
			b.ResetTimer()
			var left atomic.Int64
			left.Store(int64(b.N))
			var mu sync.Mutex
			var took []time.Duration
			var leasing time.Duration
			var wg sync.WaitGroup
			for c := range 8 {
				wg.Go(func() {
					for left.Load() > 0 {
						start := time.Now()
						leases, err := r.Lease(b.Context(), remote.Request{
							Fetcher: fmt.Sprint("c", c), N: 100, PerHost: 10, Wait: time.Second, Visibility: time.Hour})
						if err != nil {
							b.Error(err)
							return
						}
						mu.Lock()
						took = append(took, time.Since(start))
						leasing += time.Since(start)
						mu.Unlock()
						puts := make([]Put, len(leases))
						for i := range leases {
							puts[i] = Put{URL: leases[i].URL, Known: true}
						}
						if left.Add(-int64(len(leases))); len(leases) == 0 && rand.IntN(2) == 0 {
							continue
						}
						if _, err := r.Put(b.Context(), puts); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "leases/s")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.StopTimer()
			r.end()
		})
	}
}

// BenchmarkRestartQueues opens a crawl of 500,000 URLs in 10,000 queues, until the first lease is
// given.
func BenchmarkRestartQueues(b *testing.B) {
	r := benchClient(b)
	putAll(b, r, 500_000, func(i int) Put { return Put{URL: benchURL(i, 10_000)} })
	r.end()
	b.ResetTimer()
	for range b.N {
		r.remoteRun = startRemote(b, r.o)
		leases := r.lease(remote.Request{Fetcher: "x", N: 1, Wait: time.Minute})
		assert.True(b, len(leases) == 1, "%d leases", len(leases))
		b.StopTimer()
		r.end()
		b.StartTimer()
	}
}
