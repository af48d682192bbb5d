package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// quiet makes a log that shows errors only.
func quiet(b *testing.B) *slog.Logger {
	return slog.New(slog.NewTextHandler(b.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
}

// benchNode is a node of this process.
type benchNode struct {
	*Node
	dir   string
	leave func()
}

// startBench starts a node with the default times of a cluster. Each of open is called before it runs.
func startBench(b *testing.B, servers *natstest.Servers, o Options, open ...func(*Node)) *benchNode {
	b.Helper()
	nc, js, err := natsconn.Connect(natsconn.Options{URLs: servers.URLs(), Node: o.Cluster.Node, Names: names})
	must.Do(b, err)
	var n *Node
	waitFor(b, "the node opens", func() bool {
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second) // a request may be lost in an election
		defer cancel()
		n, err = Open(ctx, nc, js, o, quiet(b))
		return err == nil || !errors.Is(err, storage.ErrLogDown) && !errors.Is(err, natsconn.ErrDown)
	})
	must.Do(b, err)
	must.Do(b, agree(b.Context(), n))
	for _, f := range open {
		f(n)
	}
	run, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(run) }()
	left := false
	leave := func() {
		if left {
			return
		}
		left = true
		n.Leave()
		select {
		case err := <-ended:
			assert.NoError(b, err)
		case <-time.After(patience):
			b.Errorf("%s does not leave", o.Cluster.Node)
			stop()
			<-ended
		}
		stop()
		nc.Close()
	}
	b.Cleanup(leave)
	return &benchNode{n, o.Crawl.DataDir, leave}
}

// benchOptions are those of a node without output and without delay.
func benchOptions(c crawl.Options, name string, shards, replicas int) Options {
	c.Archive.Formats, c.Frontier.Politeness.Delay, c.Mode = []string{archive.FormatNone}, 0, frontier.ModeAny
	o := nodeOptions(c, name, longTTL)
	o.Timeout, o.Replicas, o.Cluster.Shards = 5*time.Second, replicas, shards
	return o
}

// waitFor waits until something holds.
func waitFor(b *testing.B, what string, holds func() bool) {
	b.Helper()
	for end := time.Now().Add(10 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		must.True(b, !time.Now().After(end), "%s: not in ten minutes", what)
	}
}

// BenchmarkClusterCrawl crawls 12,800 pages of 8 KB with ten links, in turns: with one engine, with a node
// of 16 shards, and with three, on three NATS servers. All are processes of this machine, but for the
// nodes, which are in this process as the web is. log-B/page is what the log has grown by for a page.
func BenchmarkClusterCrawl(b *testing.B) {
	m := testweb.Mesh{Hosts: 64, Pages: 200, Links: 10, PageBytes: 8 << 10}
	web := must.Get(testweb.NewMesh(m, testweb.Config{CountOnly: true}))(b)
	b.Cleanup(func() { _ = web.Close() })
	root := must.Get(weburl.Parse(web.URL(m.Host(0), "/")))(b)
	seeds := []crawl.Seed{{URL: root, Source: "the benchmark"}}
	all := int64(m.TotalPages() + m.Hosts) // with robots.txt
	var alone, one, three time.Duration
	var bytes float64
	for b.Loop() {
		alone += benchAlone(b, web, seeds, all)
		took, logged := benchCluster(b, web, seeds, all, 1)
		one, bytes = one+took, bytes+logged/float64(m.TotalPages())
		took, _ = benchCluster(b, web, seeds, all, 3)
		three += took
	}
	perSecond := func(d time.Duration) float64 { return float64(b.N) * float64(m.TotalPages()) / d.Seconds() }
	b.ReportMetric(perSecond(alone), "alone-pages/s")
	b.ReportMetric(perSecond(one), "one-pages/s")
	b.ReportMetric(perSecond(three), "three-pages/s")
	b.ReportMetric(perSecond(one)/perSecond(alone), "one/alone")
	b.ReportMetric(perSecond(three)/perSecond(one), "three/one")
	b.ReportMetric(bytes/float64(b.N), "log-B/page")
}

// benchAlone crawls a web without a cluster.
func benchAlone(b *testing.B, web *testweb.Web, seeds []crawl.Seed, all int64) time.Duration {
	o := crawlOptions(web, b.TempDir(), "alone", 0)
	o.Archive.Formats, o.Mode = []string{archive.FormatNone}, frontier.ModeAny
	before, start := web.Served(), time.Now()
	e, err := crawl.Open(o, quiet(b))
	must.Do(b, err)
	_, err = e.Run(b.Context(), seeds)
	took := time.Since(start)
	must.Do(b, errors.Join(err, e.Close()))
	n := web.Served() - before
	must.True(b, n == all, "%d of %d requests", n, all)
	return took
}

// benchCluster crawls a web with nodes, from the moment at which they own all shards.
func benchCluster(b *testing.B, web *testweb.Web, seeds []crawl.Seed, all int64, nodes int) (time.Duration, float64) {
	servers := natstest.StartProcesses(b, names, 3, nil)
	defer func() {
		for i := range 3 {
			servers.Stop(i)
		}
	}()
	waitFor(b, "the servers", func() bool {
		nc, js, err := natsconn.Connect(natsconn.Options{URLs: servers.URLs(), Node: "test", Names: names})
		if err != nil {
			return false
		}
		defer nc.Close()
		_, err = js.AccountInfo(b.Context())
		return err == nil
	})
	var running []*benchNode
	for i := range nodes {
		o := benchOptions(crawlOptions(web, b.TempDir(), fmt.Sprintf("node%d", i), 0), fmt.Sprintf("node%d", i), 16, 3)
		o.Seeds = seeds
		running = append(running, startBench(b, servers, o))
	}
	before := web.Served()
	waitFor(b, "an owner", func() bool { return web.Served() > before })
	start := time.Now()
	waitFor(b, "the crawl", func() bool { return web.Served()-before >= all })
	took := time.Since(start)
	for _, n := range running {
		n.leave()
	}
	return took, logBytes(b, servers)
}

// logBytes returns the bytes of the log.
func logBytes(b *testing.B, servers *natstest.Servers) float64 {
	nc, js, err := natsconn.Connect(natsconn.Options{URLs: servers.URLs(), Node: "test", Names: names})
	must.Do(b, err)
	defer nc.Close()
	var info *jetstream.StreamInfo
	stream, err := js.Stream(b.Context(), names.Stream())
	if err == nil {
		info, err = stream.Info(b.Context())
	}
	must.Do(b, err)
	return float64(info.State.Bytes)
}

// hostsOf returns so many hosts of a shard.
func hostsOf(s cluster.Shard, shards, count int) (hosts []string) {
	for i := 0; len(hosts) < count; i++ {
		if h := fmt.Sprintf("host%d.test", i); cluster.ShardOf(h, shards) == s {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// fillShards adds so many URLs to each shard of a node that owns all.
func fillShards(b *testing.B, n *benchNode, shards, urls int) {
	b.Helper()
	const perHost = 1000
	for s := range cluster.Shard(shards) {
		e := n.engines.engineOf(s)
		var i crawl.Import
		waitFor(b, "an engine that takes URLs", func() (running bool) {
			var err error
			i, err = e.NewImport(crawl.ImportOptions{})
			return err == nil
		})
		for _, host := range hostsOf(s, shards, urls/perHost) {
			for p := range perHost {
				u := must.Get(weburl.Parse(fmt.Sprintf("http://%s/section-%d/page-%d", host, p%16, p)))(b)
				must.Do(b, i.Add(crawl.Addition{URL: u}))
			}
		}
		if err := errors.Join(i.Commit(b.Context()), i.Close()); err != nil || i.Sum().Added != urls {
			b.Fatalf("shard %d: %v, %+v", s, err, i.Sum())
		}
	}
}

// benchPaused starts a node that requests nothing: all hosts are paused.
func benchPaused(
	b *testing.B, servers *natstest.Servers, name string, shards int, open ...func(*Node),
) *benchNode {
	c := crawl.DefaultOptions()
	c.MinFree, c.DataDir, c.Fetch.UserAgent, c.Fetch.Resolver = 0, b.TempDir(), name, "127.0.0.1:9"
	c.Archive.Dir = filepath.Join(c.DataDir, "output")
	o := benchOptions(c, name, shards, 1)
	o.Crawl.Frontier.Politeness.Paused = true
	return startBench(b, servers, o, open...)
}

// BenchmarkNewNode measures the time from the start of a second node until it has the engines of its share
// of the shards open, and how long that has taken for the longest without an owner.
func BenchmarkNewNode(b *testing.B) {
	const shards, urls = 64, 40_000
	b.Run(fmt.Sprintf("shards=%d/urls=%d", shards, urls), func(b *testing.B) {
		servers := natstest.StartProcesses(b, names, 1, nil)
		waitFor(b, "the server", func() bool { return reachable(servers) })
		first := benchPaused(b, servers, "first", shards)
		waitFor(b, "all shards", func() bool { return len(ownedBy(first.Node)) == shards })
		fillShards(b, first, shards, urls)
		b.ResetTimer()
		for b.Loop() {
			second := benchPaused(b, servers, "second", shards)
			waitFor(b, "its share", func() bool {
				a, c := len(ownedBy(first.Node)), len(ownedBy(second.Node))
				return a+c == shards && c >= shards/4
			})
			b.StopTimer()
			b.ReportMetric(float64(len(ownedBy(second.Node))), "shards")
			second.leave()
			waitFor(b, "all shards", func() bool { return len(ownedBy(first.Node)) == shards })
			b.StartTimer()
		}
	})
}

// BenchmarkClusterStatus measures what a node of three says of all 64 shards: the status and the hosts by
// its API, and a round of queries whether they are at rest.
func BenchmarkClusterStatus(b *testing.B) {
	const shards = 64
	servers := natstest.StartProcesses(b, names, 1, nil)
	waitFor(b, "the server", func() bool { return reachable(servers) })
	var nodes []*benchNode
	var api *server.Server
	for _, name := range []string{"first", "second", "third"} {
		nodes = append(nodes, benchPaused(b, servers, name, shards, func(n *Node) {
			one := serveAPI(b, n, b.TempDir())
			b.Cleanup(func() { _ = one.Close(context.Background()) })
			api = one
		}))
	}
	waitFor(b, "all shards", func() bool {
		owned := 0
		for _, n := range nodes {
			owned += len(ownedBy(n.Node))
		}
		return owned == shards && len(ownedBy(nodes[2].Node)) > 0
	})
	for _, path := range []string{"/api/v1/status", "/api/v1/hosts"} {
		b.Run(path[1:], func(b *testing.B) {
			for b.Loop() {
				response := must.Get(http.Get("http://" + api.Address() + path))(b)
				text, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if err != nil || response.StatusCode != http.StatusOK ||
					strings.Contains(string(text), `"incomplete"`) {
					b.Fatalf("%s, %v: %.300s", response.Status, err, text)
				}
			}
		})
	}
	b.Run("rest", func(b *testing.B) {
		restOf := nodes[2].engines.owners.restOf
		all := census{shards: shards,
			rest: func(ctx context.Context, s cluster.Shard, closed bool) (r rest, err error) {
				r, err = restOf(ctx, s, closed)
				assert.True(b, err == nil, "%v", err)
				r.done = true // or the first answer would be the last
				return r, err
			}}
		for b.Loop() {
			_, over, err := all.queryAll(b.Context(), 0, false)
			must.True(b, over, "%v", err)
		}
	})
}

func reachable(servers *natstest.Servers) bool {
	nc, js, err := natsconn.Connect(natsconn.Options{URLs: servers.URLs(), Node: "test", Names: names})
	if err != nil {
		return false
	}
	defer nc.Close()
	_, err = js.AccountInfo(context.Background())
	return err == nil
}

// BenchmarkTakeover measures the time from the claim of a shard until its engine is open, by a node that
// has nothing of it: the database comes from a snapshot.
func BenchmarkTakeover(b *testing.B) {
	const urls = 400_000
	b.Run(fmt.Sprintf("urls=%d", urls), func(b *testing.B) {
		servers := natstest.StartProcesses(b, names, 1, nil)
		waitFor(b, "the server", func() bool { return reachable(servers) })
		first := benchPaused(b, servers, "first", 1)
		waitFor(b, "the shard", func() bool { return len(ownedBy(first.Node)) == 1 })
		fillShards(b, first, 1, urls)
		first.engines.mu.Lock()
		var r *run
		for _, r = range first.engines.open {
		}
		first.engines.mu.Unlock()
		shard := r.streams.Shard(b.Context(), 0, uint64(r.holding.Epoch()))
		must.Do(b, r.engine.Load().Snapshot(func(at storage.LogPosition, incoming uint64,
			backup func(func(int64) (io.Writer, error)) (int64, error)) error {
			return shard.WriteSnapshot(b.Context(), first.dir, at, incoming, backup)
		}))
		first.leave()
		var took time.Duration
		for i := 0; b.Loop(); i++ {
			n := benchPaused(b, servers, fmt.Sprintf("taker%d", i), 1)
			waitFor(b, "the claim", func() bool {
				n.engines.mu.Lock()
				defer n.engines.mu.Unlock()
				return len(n.engines.open) == 1
			})
			start := time.Now()
			waitFor(b, "the engine", func() bool { return len(ownedBy(n.Node)) == 1 })
			took += time.Since(start)
			n.leave()
		}
		b.ReportMetric(took.Seconds()/float64(b.N), "s-from-claim")
	})
}

// BenchmarkIdleEngines measures the memory of an engine that has nothing to do: that of the heap and the
// stacks, of a node of 64 shards.
func BenchmarkIdleEngines(b *testing.B) {
	const shards = 64
	b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
		servers := natstest.StartProcesses(b, names, 1, nil)
		waitFor(b, "the server", func() bool { return reachable(servers) })
		var memory uint64
		for b.Loop() {
			before := usedMemory()
			rss := resident()
			n := benchPaused(b, servers, "paused", shards)
			waitFor(b, "all shards", func() bool { return len(ownedBy(n.Node)) == shards })
			time.Sleep(2 * time.Second) // until they have nothing to do
			memory += usedMemory() - before
			b.ReportMetric(float64(resident()-rss)/shards/(1<<20), "resident-MiB/engine")
			n.leave()
		}
		b.ReportMetric(float64(memory)/float64(b.N)/shards/(1<<20), "MiB/engine")
	})
}

func usedMemory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// resident returns the resident memory of this process in bytes; 0: it is not known.
func resident() (bytes int64) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	_, _ = fmt.Sscan(string(text), &size, &pages)
	return pages * int64(os.Getpagesize())
}
