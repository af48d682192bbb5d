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
// names; TestCurves draws the pictures of docs/PERFORMANCE.md from such tables.
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

// readCurve reads what save wrote.
func readCurve(t *testing.T, path string) (points []point) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		var n [5]float64
		for i, field := range row {
			if n[i], err = strconv.ParseFloat(field, 64); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		points = append(points, point{
			Items: int(n[0]), Rate: n[1], Worst: time.Duration(n[2]) * time.Millisecond, Memory: int(n[3]), Disk: int64(n[4]),
		})
	}
	return points
}

// TestCurves holds that the pictures of docs/PERFORMANCE.md show the tables beside them. With AMBLE_DRAW=1 it draws them.
func TestCurves(t *testing.T) {
	dir := filepath.Join("..", "docs", "performance")
	for _, picture := range []struct {
		file, title string
		lines       []chartLine
	}{
		{"growth.svg", "Discovery into a growing store, 20,000 URLs to a commit", []chartLine{
			{name: "amble, 10,000 hosts", points: readCurve(t, filepath.Join(dir, "Discover_hosts10000_urls50000000.csv"))},
			{name: "plain bbolt, one row a URL", points: readCurve(t, filepath.Join(dir, "Discover_rows_hosts10000_urls10000000.csv"))},
		}},
		{"shapes.svg", "Discovery by the number of hosts, 20,000 URLs to a commit", []chartLine{
			{name: "10,000 hosts", points: readCurve(t, filepath.Join(dir, "Discover_hosts10000_urls10000000.csv"))},
			{name: "1,000,000 hosts of 10 URLs", points: readCurve(t, filepath.Join(dir, "Discover_hosts1000000_urls10000000.csv"))},
			{name: "one host of 5 million URLs", points: readCurve(t, filepath.Join(dir, "Discover_hosts1_urls5000000.csv"))},
		}},
	} {
		c := chart{title: picture.title, lines: picture.lines, panels: []panel{
			{"Rate", "URLs a second of commit time", func(p point) float64 { return p.Rate }},
			{"Longest commit", "milliseconds", func(p point) float64 { return float64(p.Worst.Milliseconds()) }},
			{"Anonymous memory of the process", "MiB", func(p point) float64 { return float64(p.Memory) / (1 << 20) }},
			{"Disk", "bytes a URL", func(p point) float64 { return float64(p.Disk) / float64(p.Items) }},
		}}
		path := filepath.Join(dir, picture.file)
		if os.Getenv("AMBLE_DRAW") != "" {
			if err := os.WriteFile(path, []byte(c.svg()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got := string(readFile(t, path)); got != c.svg() {
			t.Errorf("%s is not what the tables draw: AMBLE_DRAW=1 go test ./storage -run TestCurves", path)
		}
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
