package storage

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/amble-crawler/amble/internal/weburl"
)

// The benchmarks work on a million URLs, and on as many more as AMBLE_BENCH_URLS
// says: AMBLE_BENCH_URLS=10000000 go test -run '^$' -bench . -benchtime 1x ./storage
func benchSizes() []int {
	sizes := []int{1_000_000}
	if n, err := strconv.Atoi(os.Getenv("AMBLE_BENCH_URLS")); err == nil {
		sizes = append(sizes, n)
	}
	return sizes
}

// benchURLs makes URLs that look like a crawl's: uniform over the hosts, about
// 75 bytes each.
type benchURLs struct {
	hosts int
	n     int // made so far
}

// at is the n-th URL.
func (g *benchURLs) at(n int) weburl.URL {
	mixed := (uint64(n) + 1) * 0x9e3779b97f4a7c15
	mixed = (mixed ^ mixed>>29) * 0xbf58476d1ce4e5b9
	o := weburl.Origin{Scheme: "https", Host: "www.site-" + strconv.Itoa(int(mixed>>33)%g.hosts) + ".example", Port: 443}
	return o.URL("/articles/2026/section-" + strconv.Itoa(n%17) + "/story-" + strconv.Itoa(n) + ".html")
}

func (g *benchURLs) next() weburl.URL {
	g.n++
	return g.at(g.n)
}

const benchBatch = 20000

func fillBatch(s *Store, g *benchURLs, n int, b *Batch) {
	b.Found = b.Found[:0]
	for range n {
		b.Found = append(b.Found, benchFound(s, g.next()))
	}
}

func benchFound(s *Store, u weburl.URL) Found {
	return Found{URL: u, Fingerprint: s.Fingerprint(u), Depth: 3, ViaHost: 1, ViaOrdinal: 77, At: someTime}
}

// BenchmarkDiscover commits new URLs, durable: uniform over 10,000 hosts, over
// many hosts of ten URLs, and on one host. Beside it, in the same run, the same
// URLs go into bbolt with one row for each.
func BenchmarkDiscover(b *testing.B) {
	for _, size := range benchSizes() {
		for _, hosts := range []int{10_000, size / 10, 1} {
			b.Run(fmt.Sprintf("hosts=%d/urls=%d", hosts, size), func(b *testing.B) {
				for range b.N {
					s := benchOpen(b)
					discover(b, s, &benchURLs{hosts: hosts}, size)
					benchClose(b, s)
				}
			})
		}
		b.Run(fmt.Sprintf("rows/hosts=10000/urls=%d", size), func(b *testing.B) {
			for range b.N {
				discoverRows(b, &benchURLs{hosts: 10_000}, size)
			}
		})
	}
}

func benchOpen(b *testing.B) *Store {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func benchClose(b *testing.B, s *Store) {
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// commitTimes are how long commits took.
type commitTimes []time.Duration

func (c *commitTimes) commit(b *testing.B, s *Store, batch *Batch) {
	t := time.Now()
	if _, err := s.Commit(batch); err != nil {
		b.Fatal(err)
	}
	*c = append(*c, time.Since(t))
}

// report reports the rate of n items and the longest commits.
func (c commitTimes) report(b *testing.B, n int, unit string) {
	var total time.Duration
	for _, t := range c {
		total += t
	}
	slices.Sort(c)
	b.ReportMetric(float64(n)/total.Seconds(), unit+"/s")
	b.ReportMetric(float64(c[len(c)*99/100].Milliseconds()), "p99-ms")
	b.ReportMetric(float64(c[len(c)-1].Milliseconds()), "max-ms")
}

// memory is what commits have taken so far.
type memory struct{ pages, allocated int64 }

// memoryOf reads the bytes of pages that transactions wrote, and those that the process allocated.
func memoryOf(s *Store) memory {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	stats := s.db.Stats()
	return memory{stats.TxStats.GetPageAlloc(), int64(m.TotalAlloc)}
}

func reportSize(b *testing.B, path string, urls int) {
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/float64(urls), "B/url")
}

func discover(b *testing.B, s *Store, g *benchURLs, size int) {
	var batch Batch
	var times commitTimes
	var before, after memory
	curve := newCurve(size)
	for done := 0; done < size; done += len(batch.Found) {
		fillBatch(s, g, min(benchBatch, size-done), &batch)
		before = memoryOf(s)
		times.commit(b, s, &batch)
		after = memoryOf(s)
		curve.add(done+len(batch.Found), times[len(times)-1], s.Path())
	}
	b.ReportMetric(float64(after.pages-before.pages)/(1<<20), "last-page-MiB")
	b.ReportMetric(float64(after.allocated-before.allocated)/(1<<20), "last-alloc-MiB")
	curve.save(b)
	if n := s.Counters().URLs; n != uint64(size) {
		b.Fatalf("store has %d URLs, want %d", n, size)
	}
	times.report(b, size, "urls")
	reportSize(b, s.Path(), size)
}

// rowsLimit bounds how long the plain rows may take: from some size on they need
// hours for what we do in minutes. BENCH_ROWS_LIMIT says otherwise: BENCH_ROWS_LIMIT=3h.
func rowsLimit(b *testing.B) time.Duration {
	text := os.Getenv("BENCH_ROWS_LIMIT")
	if text == "" {
		return 12 * time.Minute
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		b.Fatalf("BENCH_ROWS_LIMIT: %v", err)
	}
	return limit
}

// discoverRows does the same with one row for each URL: text to what is known of it.
// It ends early after the limit, and reports how far it came.
func discoverRows(b *testing.B, g *benchURLs, size int) {
	path := filepath.Join(b.TempDir(), "rows.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType, InitialMmapSize: defaultMapBytes})
	if err != nil {
		b.Fatal(err)
	}
	var times commitTimes
	curve := newCurve(size)
	keys := make([]string, 0, benchBatch)
	done, limit := 0, rowsLimit(b)
	for start := time.Now(); done < size && time.Since(start) < limit; done += benchBatch {
		keys = keys[:0]
		for range min(benchBatch, size-done) {
			keys = append(keys, g.next().String())
		}
		slices.Sort(keys)
		t := time.Now()
		if err := db.Update(func(tx *bolt.Tx) error { return putRows(tx, keys) }); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(t))
		curve.add(done+len(keys), times[len(times)-1], path)
	}
	curve.save(b)
	times.report(b, done, "urls")
	b.ReportMetric(float64(done), "urls-reached")
	reportSize(b, path, done)
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}

func putRows(tx *bolt.Tx, keys []string) error {
	bucket, err := tx.CreateBucketIfNotExists([]byte("url"))
	if err != nil {
		return err
	}
	known := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(someTime.Unix()))[:16]
	for _, key := range keys {
		if bucket.Get([]byte(key)) != nil {
			continue
		}
		if err := bucket.Put([]byte(key), known); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkGrown measures a store of many URLs over 10,000 hosts: opening it
// (and reading one queue's head), the walk over all hosts, the reading of heads,
// and the cycle of a crawl.
func BenchmarkGrown(b *testing.B) {
	for _, size := range benchSizes() {
		b.Run(fmt.Sprintf("hosts=10000/urls=%d", size), func(b *testing.B) {
			s := benchOpen(b)
			g := &benchURLs{hosts: 10_000}
			discover(b, s, g, size)
			benchClose(b, s)
			dir := filepath.Dir(s.Path())
			b.Run("open", func(b *testing.B) { benchReopen(b, dir) })
			if s, err := Open(dir, Options{}); err != nil {
				b.Fatal(err)
			} else {
				b.Run("walk", func(b *testing.B) { benchHosts(b, s) })
				b.Run("heads", func(b *testing.B) { benchHeads(b, s, g.hosts) })
				b.Run("cycle", func(b *testing.B) { benchCycle(b, s, g) })
				benchClose(b, s)
			}
		})
	}
}

func benchReopen(b *testing.B, dir string) {
	for b.Loop() {
		s, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Heads(HeadsRequest{Host: 1, Queued: 16, Due: 16, Now: someTime}); err != nil {
			b.Fatal(err)
		}
		benchClose(b, s)
	}
}

func benchHosts(b *testing.B, s *Store) {
	hosts := 0
	for b.Loop() {
		if err := s.Hosts(func(*Host) error { hosts++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(hosts)/b.Elapsed().Seconds(), "hosts/s")
}

func benchHeads(b *testing.B, s *Store, hosts int) {
	for n := 0; b.Loop(); n++ {
		h, err := s.Heads(HeadsRequest{Host: HostID(n%hosts + 1), Queued: 16, Due: 16, Now: someTime})
		if err != nil || len(h.Queued) == 0 {
			b.Fatal(len(h.Queued), err)
		}
	}
}

// cycleCommit is how many completions a commit of the cycle carries.
const cycleCommit = 1000

// benchCycle takes the next URL of host after host and completes it with ten
// links, of which two are new. All that counts, the making of the links too.
func benchCycle(b *testing.B, s *Store, g *benchURLs) {
	cursors := make([]uint32, g.hosts+1)
	var times commitTimes
	var batch Batch
	cycles := 0
	for b.Loop() {
		batch.Found, batch.Done, batch.Hosts = batch.Found[:0], batch.Done[:0], batch.Hosts[:0]
		for range cycleCommit {
			cycles++
			benchComplete(b, s, HostID(cycles%g.hosts+1), cursors, &batch)
			for i := range 10 {
				u := g.at(1 + (cycles*2654435761+i*40503)%g.n)
				if i < 2 {
					u = g.next()
				}
				batch.Found = append(batch.Found, benchFound(s, u))
			}
		}
		times.commit(b, s, &batch)
	}
	times.report(b, cycles, "commit-cycles")
	b.ReportMetric(float64(cycles)/b.Elapsed().Seconds(), "cycles/s")
}

// benchComplete reads the next URL of a host and adds its outcome to the batch.
func benchComplete(b *testing.B, s *Store, host HostID, cursors []uint32, batch *Batch) {
	h, err := s.Heads(HeadsRequest{Host: host, From: cursors[host], Queued: 1, Due: 1, Now: someTime})
	if err != nil || len(h.Queued) == 0 {
		b.Fatal(len(h.Queued), err)
	}
	cursors[host] = h.Next
	n := uint64(h.Queued[0].Ordinal)
	batch.Done = append(batch.Done, Done{Host: host, Ordinal: h.Queued[0].Ordinal, Outcome: Outcome{
		State: Fetched, Status: 200, At: someTime, Bytes: 20_000 + n, Digest: n*0x9e3779b97f4a7c15 + 1,
		ETag: `"` + strings.Repeat("e", 20) + `"`, Modified: someTime.UTC().Format(httpDate),
	}})
	batch.Hosts = append(batch.Hosts, HostUpdate{
		Host: host, Requests: 1, Bytes: 20_000, Politeness: make([]byte, 40), Cursors: []Cursor{{0, h.Next}},
	})
}

// BenchmarkFetched completes every URL of a store, host after host in turn, and
// reports what a fetched URL takes, with ETag and Last-Modified.
func BenchmarkFetched(b *testing.B) {
	for _, size := range benchSizes() {
		b.Run(fmt.Sprintf("hosts=10000/urls=%d", size), func(b *testing.B) {
			for range b.N {
				s := benchOpen(b)
				discover(b, s, &benchURLs{hosts: 10_000}, size)
				fetchAll(b, s, size)
				benchClose(b, s)
			}
		})
	}
}

func fetchAll(b *testing.B, s *Store, size int) {
	var hosts []Host
	if err := s.Hosts(func(h *Host) error { hosts = append(hosts, *h); return nil }); err != nil {
		b.Fatal(err)
	}
	slices.SortFunc(hosts, func(a, b Host) int { return cmp.Compare(b.Tail, a.Tail) })
	cursors := make([]uint32, len(hosts)+1)
	var times commitTimes
	var batch Batch
	for done, h := 0, 0; done < size; done++ {
		if h == len(hosts) || cursors[hosts[h].ID] == hosts[h].Tail {
			h = 0 // the rest, of fewer URLs, has none left
		}
		benchComplete(b, s, hosts[h].ID, cursors, &batch)
		h++
		if len(batch.Done) == cycleCommit || done == size-1 {
			times.commit(b, s, &batch)
			batch = Batch{}
		}
	}
	if n := s.Counters().Of(Fetched); n != uint64(size) {
		b.Fatalf("%d URLs are fetched, want %d", n, size)
	}
	times.report(b, size, "urls")
	reportSize(b, s.Path(), size)
}
