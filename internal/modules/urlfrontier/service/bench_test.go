package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// BenchmarkURLFrontier measures URLs a second through gRPC on a loopback address, with engines that
// sync. URLFRONTIER_REFERENCE is the address of another service, whose crawls it deletes: then each
// measurement but those of a restart is also of engines that do not sync, and of that service, in turn.
// AMBLE_BENCH_URLS=5000000 makes restart a long form; by default it has 100,000 URLs.
func BenchmarkURLFrontier(b *testing.B) {
	const queues = 10_000
	for _, m := range []struct {
		name    string
		measure func(b *testing.B, begin func() *client)
	}{
		{"putdiscovered", func(b *testing.B, begin func() *client) {
			c := begin()
			b.ResetTimer()
			c.fill(b, b.N, queues)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "URLs/s")
		}},
		{"puturls", func(b *testing.B, begin func() *client) {
			c := begin()
			b.ResetTimer()
			c.pump(b, "PutURLs", b.N, func(n int) any { return discovered(info(benchURL(n, queues))) },
				func() any { return new(urlfrontierpb.AckMessage) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "URLs/s")
		}},
		{"geturls", func(b *testing.B, begin func() *client) { measureGets(b, begin(), queues, 1000, false) }},
		{"cycle", func(b *testing.B, begin func() *client) { measureGets(b, begin(), queues, 10, true) }},
		{"latency", func(b *testing.B, begin func() *client) {
			c := begin()
			do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{})
			c.fill(b, max(b.N, 10*queues), queues)
			b.ResetTimer()
			measureLatency(b, c, queues)
		}},
	} {
		for _, of := range services() {
			b.Run(fmt.Sprintf("%s/queues=%d/of=%s", m.name, queues, of.name), func(b *testing.B) {
				m.measure(b, func() *client { return of.begin(b) })
			})
		}
	}
	b.Run(fmt.Sprintf("restart/queues=%d", queues), func(b *testing.B) { benchRestart(b, queues, false) })
	b.Run(fmt.Sprintf("kill/queues=%d", queues), func(b *testing.B) { benchRestart(b, queues, true) })
}

// service is one that is measured.
type service struct {
	name  string
	begin func(b *testing.B) *client // without URLs
}

// services returns those to measure.
func services() []service {
	engines := func(change func(*crawl.Options)) func(b *testing.B) *client {
		return func(b *testing.B) *client {
			crawls, _ := startNode(b, b.TempDir(), change)
			return dial(b, start(b, Options{}, crawls).Address())
		}
	}
	list := []service{{"amble", engines(synced)}}
	if address := os.Getenv("URLFRONTIER_REFERENCE"); address != "" {
		list = append(list, service{"amble-nosync", engines(nil)}, service{"reference", func(b *testing.B) *client {
			c := dial(b, address)
			c.deleteAll()
			return c
		}})
	}
	return list
}

func synced(o *crawl.Options) { o.Storage.NoSync = false }

// measureGets has a client get b.N URLs, without a delay and as many of a queue as it says. With puts,
// it puts each as completed, as a crawler does.
func measureGets(b *testing.B, c *client, queues int, perQueue uint32, puts bool) {
	do[pbEmpty](c, "SetDelay", &urlfrontierpb.QueueDelayParams{})
	c.fill(b, b.N, queues)
	b.ResetTimer()
	for done := 0; done < b.N; {
		urls := c.get(&urlfrontierpb.GetParams{MaxUrlsPerQueue: perQueue, DelayRequestable: 3600})
		if puts {
			c.pump(b, "PutURLs", len(urls), func(n int) any { return known(info(urls[n]), 0) },
				func() any { return new(urlfrontierpb.AckMessage) })
		}
		if done += len(urls); len(urls) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "URLs/s")
}

// benchRestart measures the time from the start of a process until a client has its first URL. The
// process before has ended in order, or by kill -9 amid GetURLs and puts of many of the queues.
func benchRestart(b *testing.B, queues int, killed bool) {
	urls := 100_000
	if text := os.Getenv("AMBLE_BENCH_URLS"); text != "" {
		urls, _ = strconv.Atoi(text)
	}
	dir := b.TempDir()
	crawls, stop := startNode(b, dir, synced)
	s := start(b, Options{}, crawls)
	begun := time.Now()
	dial(b, s.Address()).fill(b, urls, queues)
	b.Logf("%d URLs in %v", urls, time.Since(begun))
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		if killed {
			dir = useAndKill(b, dial(b, s.Address()), dir)
		}
		_ = s.Close(context.Background())
		stop()
		b.StartTimer()
		crawls, stop = startNode(b, dir, synced)
		s = start(b, Options{}, crawls)
		c := dial(b, s.Address())
		for len(c.get(&urlfrontierpb.GetParams{MaxQueues: 1, MaxUrlsPerQueue: 1, DelayRequestable: 1})) == 0 {
			time.Sleep(time.Millisecond) // the crawl may not be open yet
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/restart")
}

// useAndKill has a client get a URL of each of 5,000 queues and put most of them, and copies the files as
// they are then. It returns the directory of the copy.
func useAndKill(b *testing.B, c *client, dir string) string {
	urls := c.get(&urlfrontierpb.GetParams{MaxQueues: 5000, MaxUrlsPerQueue: 1, DelayRequestable: 3600})
	c.pump(b, "PutURLs", len(urls)*3/4, func(n int) any { return known(info(urls[n]), 0) },
		func() any { return new(urlfrontierpb.AckMessage) })
	killed := filepath.Join(b.TempDir(), "killed")
	must.Do(b, os.CopyFS(killed, os.DirFS(dir)))
	return killed
}

// measureLatency has four crawlers get b.N URLs, at most 10 of 10 queues at a time, put them as completed,
// and put as many new ones. It reports how long their GetURLs take.
func measureLatency(b *testing.B, c *client, queues int) {
	const crawlers, pages = 4, 100
	var taken, fresh atomic.Int64
	fresh.Store(1 << 30)
	var mu sync.Mutex
	var took []time.Duration
	var working sync.WaitGroup
	for range crawlers {
		working.Go(func() {
			known, discovered := c.open(b.Context(), "PutURLs"), c.open(b.Context(), "PutDiscovered")
			for taken.Load() < int64(b.N) {
				begun := time.Now()
				urls := c.get(
					&urlfrontierpb.GetParams{MaxQueues: 10, MaxUrlsPerQueue: pages / 10, DelayRequestable: 3600})
				mu.Lock()
				took = append(took, time.Since(begun))
				mu.Unlock()
				taken.Add(int64(len(urls)))
				batch := new(urlfrontierpb.DiscoveredBatch)
				for n := int(fresh.Add(pages)) - pages; len(batch.Items) < pages; n++ {
					batch.Items = append(batch.Items, info(benchURL(n, queues)))
				}
				if err := visit(known, discovered, urls, batch); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	b.ReportMetric(float64(taken.Load())/b.Elapsed().Seconds(), "URLs/s")
	slices.Sort(took)
	for name, at := range map[string]int{"p50-ms": 50, "p99-ms": 99} {
		b.ReportMetric(float64(took[len(took)*at/100].Microseconds())/1000, name)
	}
}

// visit puts URLs as completed and a batch as discovered, and waits for the acknowledgements.
func visit(completed, found grpc.ClientStream, urls []string, batch *urlfrontierpb.DiscoveredBatch) error {
	if err := found.SendMsg(batch); err != nil {
		return err
	}
	for _, u := range urls {
		if err := completed.SendMsg(known(info(u), 0)); err != nil {
			return err
		}
	}
	for range urls {
		if err := completed.RecvMsg(new(urlfrontierpb.AckMessage)); err != nil {
			return err
		}
	}
	return found.RecvMsg(new(urlfrontierpb.BatchAck))
}

func benchURL(n, queues int) string {
	return fmt.Sprintf("http://host-%d.example/section/%d/a-page-with-a-name-%d.html", n%queues, n/queues%10, n)
}

// fill puts discovered URLs in batches of 100.
func (c *client) fill(b *testing.B, urls, queues int) {
	const size = 100
	c.pump(b, "PutDiscovered", (urls+size-1)/size, func(n int) any {
		batch := &urlfrontierpb.DiscoveredBatch{ID: number("batch-", n)}
		for i := n * size; i < min(n*size+size, urls); i++ {
			batch.Items = append(batch.Items, info(benchURL(i, queues)))
		}
		return batch
	}, func() any { return new(urlfrontierpb.BatchAck) })
}

// pump sends messages over one stream, and reads as many.
func (c *client) pump(b *testing.B, rpc string, messages int, message func(int) any, ack func() any) {
	stream := c.open(b.Context(), rpc)
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() {
		for n := range messages {
			if stream.SendMsg(message(n)) != nil {
				return
			}
		}
		_ = stream.CloseSend()
	})
	n := 0
	for ; ; n++ {
		if err := stream.RecvMsg(ack()); err != nil {
			must.True(b, errors.Is(err, io.EOF) && n == messages, "%s: %d of %d acknowledged: %v", rpc, n, messages,
				err)
			return
		}
	}
}
