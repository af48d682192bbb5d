package storage

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	since  []time.Duration
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
	if dir := os.Getenv("AMBLE_BENCH_CURVES"); dir != "" {
		writeCurve(b, filepath.Join(dir, curveName(b.Name())), c.points)
	}
}

func curveName(benchmark string) string {
	return strings.NewReplacer("/", "_", "=", "").Replace(strings.TrimPrefix(benchmark, "Benchmark")) + ".csv"
}

// savePoint writes what a benchmark saw of a store of one size into the table of all its sizes, in the place of what an
// earlier run saw at that size. The name of the table is the benchmark's without the size.
func savePoint(b *testing.B, p point) {
	dir := os.Getenv("AMBLE_BENCH_CURVES")
	if dir == "" {
		return
	}
	path := filepath.Join(dir, curveName(strings.Replace(b.Name(), fmt.Sprintf("/urls=%d", p.Items), "", 1)))
	points := []point{p}
	if _, err := os.Stat(path); err == nil {
		points = append(points, slices.DeleteFunc(readCurve(b, path), func(old point) bool { return old.Items == p.Items })...)
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.Items, b.Items) })
	writeCurve(b, path, points)
}

func writeCurve(b *testing.B, path string, points []point) {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := csv.NewWriter(f)
	_ = w.Write([]string{"items", "items_per_second", "longest_commit_ms", "anonymous_bytes", "file_bytes"})
	for _, p := range points {
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

// readCurve reads what writeCurve wrote.
func readCurve(t testing.TB, path string) (points []point) {
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
	rate := func(unit string) panel { return panel{"Rate", unit, func(p point) float64 { return p.Rate }} }
	others := []panel{
		{"Longest commit", "milliseconds", func(p point) float64 { return float64(p.Worst.Milliseconds()) }},
		{"Anonymous memory of the process", "MiB", func(p point) float64 { return float64(p.Memory) / (1 << 20) }},
		{"Disk", "bytes a URL", func(p point) float64 { return float64(p.Disk) / float64(p.Items) }},
	}
	table := func(name string) []point { return readCurve(t, filepath.Join(dir, name)) }
	for file, c := range map[string]chart{
		"growth.svg": {
			title: "Discovery into a growing store, 20,000 URLs to a commit at most",
			lines: []chartLine{
				{name: "amble, 10,000 hosts", points: table("Discover_hosts10000_urls50000000.csv")},
				{name: "plain bbolt, one row a URL", points: table(largestTable(t, dir, "Discover_rows_hosts10000_urls"))},
			},
			panels: append([]panel{rate("URLs a second of commit time")}, others...),
		},
		"shapes.svg": {
			title: "Discovery by the number of hosts, 20,000 URLs to a commit at most",
			lines: []chartLine{
				{name: "10,000 hosts", points: table("Discover_hosts10000_urls10000000.csv")},
				{name: "1,000,000 hosts of 10 URLs", points: table("Discover_hosts1000000_urls10000000.csv")},
				{name: "one host of 5 million URLs", points: table("Discover_hosts1_urls5000000.csv")},
			},
			panels: append([]panel{rate("URLs a second of commit time")}, others...),
		},
		"cycle.svg": {
			title: "The cycle of a crawl by the size of its store, at most 1,667 pages of 10 links to a commit",
			lines: []chartLine{
				{name: "amble, 10,000 hosts", points: table("Grown_hosts10000_cycle.csv")},
				{name: "plain bbolt, one row a URL and one a URL that waits", points: table("Grown_rows_hosts10000_cycle.csv")},
			},
			panels: append([]panel{rate("cycles a second")}, others...),
		},
	} {
		path := filepath.Join(dir, file)
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

// largestTable is the name of the table of the most URLs among those whose names begin alike.
func largestTable(t *testing.T, dir, prefix string) (name string) {
	paths, err := filepath.Glob(filepath.Join(dir, prefix+"*.csv"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no table %s in %s: %v", prefix, dir, err)
	}
	urls := func(path string) int {
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), prefix), ".csv"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return filepath.Base(slices.MaxFunc(paths, func(a, b string) int { return cmp.Compare(urls(a), urls(b)) }))
}
