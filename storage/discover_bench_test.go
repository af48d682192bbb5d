package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// BenchmarkDiscover commits new URLs, durable: uniform over 10,000 hosts, over many hosts of ten
// URLs, and on one host. For comparison it puts the same URLs into bbolt with one row for each.
func BenchmarkDiscover(b *testing.B) {
	for _, size := range benchSizes(b) {
		for _, hosts := range []int{benchHosts, size / 10, 1} {
			b.Run(fmt.Sprintf("hosts=%d/urls=%d", hosts, size), func(b *testing.B) {
				for range b.N {
					madeDiscovered(b, hosts, size)
				}
			})
			b.Run(fmt.Sprintf("rows/hosts=%d/urls=%d", hosts, size), func(b *testing.B) {
				for range b.N {
					discoverRows(b, &benchURLs{hosts: hosts}, size)
				}
			})
		}
	}
}

func discoveredName(hosts, size int) string { return fmt.Sprintf("discover-%d-%d", hosts, size) }

// madeDiscovered measures how a store is filled. The one with 10,000 hosts is kept for
// BenchmarkGrown and BenchmarkFetched.
func madeDiscovered(b *testing.B, hosts, size int) {
	measured := func(dir string) {
		s := benchOpen(b, dir, Options{})
		discover(b, s, &benchURLs{hosts: hosts}, size)
		benchClose(b, s)
	}
	if hosts != benchHosts {
		measured(b.TempDir())
		return
	}
	madeStore(b, discoveredName(hosts, size), measured)
}

// grownStore returns the directory of a store with a number of queued URLs.
func grownStore(b *testing.B, size int) string {
	return keptStore(b, discoveredName(benchHosts, size), func(dir string) {
		s := benchOpen(b, dir, Options{NoSync: true})
		g := &benchURLs{hosts: benchHosts}
		var batch Batch
		for g.n < size {
			fillBatch(s, g, min(benchBatch, size-g.n), &batch)
			must.Get(s.Commit(&batch))(b)
		}
		must.Do(b, s.db.Sync())
		benchClose(b, s)
	})
}

func fillBatch(s *Store, g *benchURLs, n int, b *Batch) {
	b.Found = b.Found[:0]
	for range n {
		b.Found = append(b.Found, benchFound(s, g.next()))
	}
}

// discover commits URLs in batches, as a crawl does.
func discover(b *testing.B, s *Store, g *benchURLs, size int) {
	var batch Batch
	var batchSize BatchSizer
	var result Result
	var before, after runtime.MemStats
	var changed, allocated uint64 // by one commit, at most
	all, curve := newCommits(), newCurve(size)
	for g.n < size {
		fillBatch(s, g, min(batchSize.Items(), size-g.n), &batch)
		runtime.ReadMemStats(&before)
		took := all.time(b, func() (err error) { result, err = s.Commit(&batch); return err })
		runtime.ReadMemStats(&after)
		batchSize.Committed(len(batch.Found), result.Changed, took)
		changed, allocated = max(changed, uint64(result.Changed)), max(allocated, after.TotalAlloc-before.TotalAlloc)
		curve.add(g.n, took, s.Path())
	}
	b.ReportMetric(float64(batchSize.Items()), "last-batch-size")
	b.ReportMetric(float64(changed)/(1<<20), "most-page-MiB")
	b.ReportMetric(float64(allocated)/(1<<20), "most-alloc-MiB")
	curve.save(b)
	n := s.Counters().URLs
	must.True(b, n == uint64(size), "store has %d URLs, want %d", n, size)
	all.report(b, size, "urls")
	reportSize(b, s.Path(), size)
}

// BenchmarkBusyDisk commits new URLs of 10,000 hosts for 8 seconds, while something else writes up
// to 512 MiB to the same disk, and syncs them: with batches that follow the bytes of commits alone,
// and their time as well.
func BenchmarkBusyDisk(b *testing.B) {
	for _, by := range []string{"bytes", "time"} {
		b.Run("by="+by, func(b *testing.B) {
			for range b.N {
				discoverOnBusyDisk(b, by == "time")
			}
		})
	}
}

func discoverOnBusyDisk(b *testing.B, byTime bool) {
	dir := b.TempDir()
	s := benchOpen(b, dir, Options{})
	ctx, stop := context.WithTimeout(b.Context(), 8*time.Second)
	written := make(chan int, 1)
	go func() { written <- keepBusy(ctx, b, dir) }()
	g, all := &benchURLs{hosts: benchHosts}, newCommits()
	var batch Batch
	var batchSize BatchSizer
	var changed int64
	for ctx.Err() == nil {
		fillBatch(s, g, batchSize.Items(), &batch)
		var result Result
		took := all.time(b, func() (err error) { result, err = s.Commit(&batch); return err })
		if !byTime {
			took = 0
		}
		batchSize.Committed(len(batch.Found), result.Changed, took)
		changed = max(changed, result.Changed)
	}
	stop()
	b.ReportMetric(float64(<-written)/(1<<20), "others-MiB")
	b.ReportMetric(float64(changed)/(1<<20), "most-page-MiB")
	all.report(b, g.n, "urls")
	benchClose(b, s)
}

// keepBusy writes a file over and over and syncs it every 8 MiB. It returns how many bytes it
// wrote, 512 MiB at most.
func keepBusy(ctx context.Context, b *testing.B, dir string) (written int) {
	f, err := os.Create(filepath.Join(dir, "others"))
	if err != nil {
		b.Error(err)
		return 0
	}
	defer f.Close()
	piece := bytes.Repeat([]byte("others"), 8<<20/6)
	for ; ctx.Err() == nil && written < 512<<20; written += len(piece) {
		_, err := f.WriteAt(piece, int64(written%(64<<20)))
		if err = errors.Join(err, f.Sync()); err != nil {
			b.Error(err)
			return written
		}
	}
	return written
}

// rowsLimit bounds the time for plain rows: from some size on they need hours for what takes
// minutes here. BENCH_ROWS_LIMIT=3h changes it.
func rowsLimit(b *testing.B) time.Duration {
	text := os.Getenv("BENCH_ROWS_LIMIT")
	if text == "" {
		return 12 * time.Minute
	}
	limit, err := time.ParseDuration(text)
	must.Do(b, err, "BENCH_ROWS_LIMIT")
	return limit
}

// discoverRows does the same with one row for each URL, without a queue. It ends early after the
// limit, and reports how far it came.
func discoverRows(b *testing.B, g *benchURLs, size int) {
	r := openRows(b, b.TempDir())
	all, curve := newCommits(), newCurve(size)
	keys := make([]string, 0, benchBatch)
	limit := rowsLimit(b)
	for start := time.Now(); g.n < size && time.Since(start) < limit; {
		keys = keys[:0]
		for range min(benchBatch, size-g.n) {
			keys = append(keys, g.next().String())
		}
		slices.Sort(keys)
		took := all.time(b, func() error {
			return r.db.Update(func(tx *bolt.Tx) error { return putKnown(tx, keys) })
		})
		curve.add(g.n, took, r.path)
	}
	curve.save(b)
	all.report(b, g.n, "urls")
	b.ReportMetric(float64(g.n), "urls-reached")
	reportSize(b, r.path, g.n)
	r.close(b)
}

func putKnown(tx *bolt.Tx, keys []string) error {
	urls := tx.Bucket(rowsURL)
	for _, key := range keys {
		if urls.Get([]byte(key)) != nil {
			continue
		}
		if err := urls.Put([]byte(key), appendKnown(nil)); err != nil {
			return err
		}
	}
	return nil
}
