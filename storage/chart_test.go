package storage

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// chart is a picture of several panels, each of which shows one fact about the
// same lines, over how many URLs there are.
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

// The measures of a chart, in pixels. Two panels stand side by side.
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

// fewPoints is how many points a line may have so that each is marked.
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
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", chartWidth, height, chartWidth, height)
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
	fmt.Fprintf(b, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, anchor, x, y, html.EscapeString(s))
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
			fmt.Fprintf(b, `<circle class="s%d" style="fill:none;stroke-width:2;stroke-dasharray:none" cx="%.1f" cy="%.1f" r="3"/>`+"\n", i%4, xs.at(float64(pt.Items)/1e6), ys.at(p.of(pt)))
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// scale leads from values to pixels, from 0 on.
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
