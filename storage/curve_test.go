package storage

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// curve is the course of a benchmark as its store grows: one point for each hundredth of the way.
// It is written as a table into the directory that AMBLE_BENCH_CURVES names; TestCurves draws the
// pictures of docs/PERFORMANCE.md from such tables.
type curve struct {
	size   int
	points []point
	since  []time.Duration
	taken  int // items at the last point
}

// point is what was measured since the point before.
type point struct {
	Items  int           // items in the store
	Rate   float64       // items a second of commit time
	Worst  time.Duration // the longest commit
	Memory int           // anonymous bytes of the process
	Disk   int64         // bytes of the file
}

func newCurve(size int) *curve { return &curve{size: size} }

// add adds a commit after which the store at path has items.
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

// save writes the curve under the benchmark's name, if there is a directory for it.
func (c *curve) save(b *testing.B) {
	if dir := os.Getenv("AMBLE_BENCH_CURVES"); dir != "" {
		writeCurve(b, filepath.Join(dir, curveName(b.Name())), c.points)
	}
}

func curveName(benchmark string) string {
	return strings.NewReplacer("/", "_", "=", "").Replace(strings.TrimPrefix(benchmark, "Benchmark")) + ".csv"
}

// savePoint writes the measurements of a store of one size into the table of all its sizes, where
// they replace those of an earlier run. The name of the table is the benchmark's without the size.
func savePoint(b *testing.B, p point) {
	dir := os.Getenv("AMBLE_BENCH_CURVES")
	if dir == "" {
		return
	}
	path := filepath.Join(dir, curveName(strings.Replace(b.Name(), fmt.Sprintf("/urls=%d", p.Items), "", 1)))
	points := []point{p}
	if _, err := os.Stat(path); err == nil {
		points = append(points, slices.DeleteFunc(readCurve(b, path),
			func(old point) bool { return old.Items == p.Items })...)
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.Items, b.Items) })
	writeCurve(b, path, points)
}

func writeCurve(b *testing.B, path string, points []point) {
	f := must.Get(os.Create(path))(b)
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
	must.Do(b, w.Error())
}

// readCurve reads what writeCurve wrote.
func readCurve(t testing.TB, path string) (points []point) {
	t.Helper()
	f, err := os.Open(path)
	must.Do(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	must.Do(t, err)
	for _, row := range rows[1:] {
		var n [5]float64
		for i, field := range row {
			n[i], err = strconv.ParseFloat(field, 64)
			must.True(t, err == nil, "%s: %v", path, err)
		}
		points = append(points, point{
			Items: int(n[0]), Rate: n[1], Worst: time.Duration(n[2]) * time.Millisecond, Memory: int(n[3]),
			Disk: int64(n[4]),
		})
	}
	return points
}

// TestCurves checks that the pictures of docs/PERFORMANCE.md show their tables. With AMBLE_DRAW=1
// it draws them.
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
				{name: "plain bbolt, one row a URL",
					points: table(largestTable(t, dir, "Discover_rows_hosts10000_urls"))},
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
				{name: "plain bbolt, one row a URL and one a URL that waits",
					points: table("Grown_rows_hosts10000_cycle.csv")},
			},
			panels: append([]panel{rate("cycles a second")}, others...),
		},
	} {
		path := filepath.Join(dir, file)
		if os.Getenv("AMBLE_DRAW") != "" {
			must.Do(t, os.WriteFile(path, []byte(c.svg()), 0o644))
			continue
		}
		assert.Equal(t, string(readFile(t, path)), c.svg(), path,
			"is not what the tables draw: AMBLE_DRAW=1 go test ./storage -run TestCurves")
	}
}

// largestTable returns the name of the table of the most URLs among those with a prefix.
func largestTable(t *testing.T, dir, prefix string) (name string) {
	paths, err := filepath.Glob(filepath.Join(dir, prefix+"*.csv"))
	must.True(t, err == nil && len(paths) != 0, "no table %s in %s: %v", prefix, dir, err)
	urls := func(path string) int {
		return must.Get(strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), prefix), ".csv")))(t)
	}
	return filepath.Base(slices.MaxFunc(paths, func(a, b string) int { return cmp.Compare(urls(a), urls(b)) }))
}

// chart is a picture of several panels. Each of them shows one fact about the same lines, over the
// number of URLs.
type chart struct {
	title  string
	lines  []chartLine
	panels []panel
}

// chartLine is one curve of a chart.
type chartLine struct {
	name   string
	points []point
}

// panel is one fact of a point.
type panel struct {
	title string
	unit  string
	of    func(point) float64
}

// The measures of a chart, in pixels. Two panels are next to each other.
const (
	chartWidth   = 920
	chartTop     = 40 // title
	legendLine   = 20
	panelWidth   = chartWidth / 2
	panelHeight  = 250
	marginLeft   = 66
	marginRight  = 14
	marginTop    = 34
	marginBottom = 40
)

// fewPoints is the most points of a line with a mark at each.
const fewPoints = 10

// chartStyle is readable on light and on dark pages. Lines differ by dashes too.
const chartStyle = `text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}.panel{font-weight:600}
.tick{font-size:11px;fill:#59636e}.grid{stroke:#d1d9e0;stroke-width:1}.axis{stroke:#59636e;stroke-width:1}
.line{fill:none;stroke-width:1.6;stroke-linejoin:round}
.s0{stroke:#0969da}.s1{stroke:#bc4c00;stroke-dasharray:7 3}.s2{stroke:#1a7f37;stroke-dasharray:2 3}.s3{stroke:#8250df;stroke-dasharray:9 3 2 3}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.tick{fill:#9198a1}.grid{stroke:#30363d}.axis{stroke:#9198a1}
.s0{stroke:#58a6ff}.s1{stroke:#f0883e}.s2{stroke:#3fb950}.s3{stroke:#bc8cff}}`

// svg draws the chart.
func (c *chart) svg() string {
	legend := chartTop + legendLine*((len(c.lines)+1)/2)
	height := legend + panelHeight*((len(c.panels)+1)/2)
	b := &strings.Builder{}
	fmt.Fprintf(b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		chartWidth, height, chartWidth, height)
	fmt.Fprintf(b, "<title>%s</title>\n<style>%s</style>\n", html.EscapeString(c.title), chartStyle)
	text(b, "title", "start", marginLeft, 22, c.title)
	for i, l := range c.lines {
		x, y := float64(marginLeft+i%2*panelWidth), float64(chartTop+i/2*legendLine)
		fmt.Fprintf(b, `<path class="line s%d" d="M%.1f %.1fh30"/>`+"\n", i%4, x, y)
		text(b, "", "start", x+38, y+4, l.name)
	}
	for i := range c.panels {
		c.panel(b, &c.panels[i], float64(i%2*panelWidth), float64(legend+i/2*panelHeight))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func text(b *strings.Builder, class, anchor string, x, y float64, s string) {
	fmt.Fprintf(b, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, anchor, x, y,
		html.EscapeString(s))
}

// panel draws one panel with its corner at x, y.
func (c *chart) panel(b *strings.Builder, p *panel, x, y float64) {
	items, most := 0.0, 0.0
	for _, l := range c.lines {
		for _, pt := range l.points {
			items, most = max(items, float64(pt.Items)/1e6), max(most, p.of(pt))
		}
	}
	xs, ys := newScale(items, 6), newScale(most, 5)
	left, right := x+marginLeft, x+panelWidth-marginRight
	top, bottom := y+marginTop, y+panelHeight-marginBottom
	xs.from, xs.to, ys.from, ys.to = left, right, bottom, top
	text(b, "panel", "start", left, y+20, p.title+", "+p.unit)
	for _, v := range ys.ticks() {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %.1fH%.1f"/>`+"\n", left, ys.at(v), right)
		text(b, "tick", "end", left-6, ys.at(v)+4, tickText(v))
	}
	for _, v := range xs.ticks() {
		fmt.Fprintf(b, `<path class="axis" d="M%.1f %.1fv4"/>`+"\n", xs.at(v), bottom)
		text(b, "tick", "middle", xs.at(v), bottom+17, tickText(v))
	}
	fmt.Fprintf(b, `<path class="axis" d="M%.1f %.1fH%.1f"/>`+"\n", left, bottom, right)
	text(b, "tick", "end", right, bottom+32, "million URLs in the store")
	for i, l := range c.lines {
		d := &strings.Builder{}
		for n, pt := range l.points {
			d.WriteByte("LM"[btoi(n == 0)])
			fmt.Fprintf(d, "%.1f %.1f", xs.at(float64(pt.Items)/1e6), ys.at(p.of(pt)))
		}
		fmt.Fprintf(b, `<path class="line s%d" d="%s"/>`+"\n", i%4, d)
		if len(l.points) > fewPoints {
			continue
		}
		for _, pt := range l.points {
			fmt.Fprintf(b,
				`<circle class="s%d" style="fill:none;stroke-width:2;stroke-dasharray:none" cx="%.1f" cy="%.1f" r="3"/>`+"\n", i%4, xs.at(float64(pt.Items)/1e6), ys.at(p.of(pt)))
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// scale converts values to pixels, from 0 on.
type scale struct {
	step, end float64
	from, to  float64
}

// newScale has about n steps of 1, 2 or 5 times a power of ten, up to most.
func newScale(most float64, n int) scale {
	if most <= 0 {
		most = 1
	}
	raw := most / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, f := range []float64{2, 5, 10} {
		if step < raw*0.999 {
			step = math.Pow(10, math.Floor(math.Log10(raw))) * f
		}
	}
	return scale{step: step, end: step * math.Ceil(most/step*0.999)}
}

func (s *scale) at(v float64) float64 { return s.from + (s.to-s.from)*v/s.end }

func (s *scale) ticks() (all []float64) {
	for i := 0.0; i*s.step <= s.end*1.001; i++ {
		all = append(all, i*s.step)
	}
	return all
}

// tickText writes a number with a comma between thousands.
func tickText(v float64) string {
	t := strconv.FormatFloat(v, 'f', -1, 64)
	if v < 1 {
		t = strconv.FormatFloat(v, 'g', 2, 64)
	}
	for i := len(t) - 3; i > 0 && !strings.Contains(t, "."); i -= 3 {
		t = t[:i] + "," + t[i:]
	}
	return t
}
