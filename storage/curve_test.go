package storage

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// curve is how a benchmark went as its store grew: one point for each hundredth
// of the way. It is written as a table into the directory that AMBLE_BENCH_CURVES
// names, where TestCurves draws the pictures of docs/PERFORMANCE.md from it.
type curve struct {
	size   int
	points []point
	since  commitTimes
	taken  int // items at the last point
}

// point is what was seen since the point before.
type point struct {
	Items  int           // items in the store
	Rate   float64       // items a second of commit time
	Worst  time.Duration // the longest commit
	Memory int           // anonymous bytes of the process
	Disk   int64         // bytes of the file
}

func newCurve(size int) *curve { return &curve{size: size} }

// add takes one more commit after which the store at path has items.
func (c *curve) add(items int, took time.Duration, path string) {
	c.since = append(c.since, took)
	if items-c.taken < c.size/100 && items < c.size {
		return
	}
	var total, worst time.Duration
	for _, t := range c.since {
		total += t
		worst = max(worst, t)
	}
	p := point{Items: items, Rate: float64(items-c.taken) / total.Seconds(), Worst: worst, Memory: anonymousBytes()}
	if info, err := os.Stat(path); err == nil {
		p.Disk = info.Size()
	}
	c.points, c.since, c.taken = append(c.points, p), c.since[:0], items
}

// save writes the curve under the benchmark's name, if a directory is given for it.
func (c *curve) save(b *testing.B) {
	dir := os.Getenv("AMBLE_BENCH_CURVES")
	if dir == "" {
		return
	}
	name := strings.NewReplacer("/", "_", "=", "").Replace(strings.TrimPrefix(b.Name(), "Benchmark"))
	f, err := os.Create(filepath.Join(dir, name+".csv"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := csv.NewWriter(f)
	_ = w.Write([]string{"items", "items_per_second", "longest_commit_ms", "anonymous_bytes", "file_bytes"})
	for _, p := range c.points {
		_ = w.Write([]string{
			strconv.Itoa(p.Items), fmt.Sprintf("%.0f", p.Rate), strconv.FormatInt(p.Worst.Milliseconds(), 10),
			strconv.Itoa(p.Memory), strconv.FormatInt(p.Disk, 10),
		})
	}
	w.Flush()
	if err := w.Error(); err != nil {
		b.Fatal(err)
	}
}

// anonymousBytes is the process's memory less what is mapped from files, 0 where
// the system does not tell.
func anonymousBytes() int {
	f, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib int
		if n, _ := fmt.Sscanf(lines.Text(), "Anonymous: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
