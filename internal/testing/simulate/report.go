package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// FRESHNESS.md has the tables between these two lines.
const (
	document = "FRESHNESS.md"
	tablesIn = "<!-- simulate: begin -->\n"
	tablesTo = "<!-- simulate: end -->\n"
)

// mean returns the mean over the seeds.
func (r *Result) mean() (m Score) {
	n := float64(len(r.Seeds))
	for _, s := range r.Seeds {
		m.Freshness += s.Freshness / n
		m.Penalty += s.Penalty / n
		m.Age += s.Age / n
		m.Visits += s.Visits / n
	}
	return m
}

// of returns the result of a policy.
func (r *Results) of(web string, budget float64, policy string) *Result {
	for i := range r.Results {
		if x := &r.Results[i]; x.Web == web && x.Budget == budget && x.Policy == policy {
			return x
		}
	}
	return &Result{}
}

// best returns the highest freshness of the policies that know the rates.
func (r *Results) best(web string, budget float64) (best float64) {
	for _, p := range policies() {
		if p.Oracle {
			best = max(best, r.of(web, budget, p.Name).mean().Freshness)
		}
	}
	return best
}

// tables returns the results as tables of Markdown.
func (r *Results) tables() string {
	var b strings.Builder
	for which, w := range webs {
		one := r.of(w.name, budgets[0], ours)
		seeds := fmt.Sprintf("Seed %d", one.First)
		if n := uint64(len(one.Seeds)); n > 1 {
			seeds = fmt.Sprintf("Mean of seeds %d to %d, and the range of freshness", one.First, one.First+n-1)
		}
		fmt.Fprintf(&b, "### Web: %s\n\n%s.\n\n", w.name, seeds)
		b.WriteString("| Policy | 100 a day: fresh / penalty / age in days / visits a day | of the best oracle | 300 " +
			"a day: the same | of the best oracle |\n|---|---|---|---|---|\n")
		for _, p := range policies() {
			fmt.Fprintf(&b, "| %s |", p.Name)
			for _, budget := range budgets {
				x := r.of(w.name, budget, p.Name)
				m := x.mean()
				spread := ""
				if len(x.Seeds) > 1 {
					least, most := x.Seeds[0].Freshness, x.Seeds[0].Freshness
					for _, s := range x.Seeds {
						least, most = min(least, s.Freshness), max(most, s.Freshness)
					}
					spread = fmt.Sprintf(" (%.3f to %.3f)", least, most)
				}
				fmt.Fprintf(&b, " %.3f%s / %.3f / %.2f / %.0f | %.3f |", m.Freshness, spread, m.Penalty, m.Age,
					m.Visits, m.Freshness/r.best(w.name, budget))
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\n![%s](%s)\n\n", w.name, drawingOf(which))
	}
	return b.String()
}

// drawingOf returns the file name of the drawing of a web under the directory of the documentation.
func drawingOf(which int) string {
	name := strings.ToLower(strings.NewReplacer(",", "", " ", "-").Replace(webs[which].name))
	return "freshness/" + name + ".svg"
}

// Measures of a drawing.
const (
	width, left    = 760, 240
	rowHeight      = 22
	barHeight      = 8
	top, bottom    = 56, 30
	ours           = "harmonic"
	colourFew      = "#4c78a8"
	colourMany     = "#e0803a"
	textAttributes = `font-family="sans-serif" font-size="12" fill="#777"`
)

// drawing returns a chart of one web: the freshness of each policy with both budgets. Its colours
// are readable on light and dark.
func (r *Results) drawing(which int) string {
	w := webs[which]
	var b strings.Builder
	height := top + bottom + rowHeight*len(policies())
	x := func(v float64) float64 { return left + v*float64(width-left-20) }
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`role="img" aria-label="freshness by policy, %s">`+"\n", width, height, w.name)
	fmt.Fprintf(&b, `<text x="%d" y="20" %s font-weight="bold">Weighted freshness, web: %s</text>`+"\n", left,
		textAttributes, w.name)
	for i, budget := range budgets {
		fmt.Fprintf(&b, `<rect x="%d" y="30" width="12" height="8" fill="%s"/>`+
			`<text x="%d" y="38" %s>%g visits a day</text>`+"\n",
			left+150*i, [...]string{colourFew, colourMany}[i], left+150*i+18, textAttributes, budget)
	}
	for tick := range 6 {
		v := float64(tick) / 5
		fmt.Fprintf(&b, `<line x1="%.0f" x2="%.0f" y1="%d" y2="%d" stroke="#999" stroke-opacity="0.4"/>`+
			`<text x="%.0f" y="%d" text-anchor="middle" %s>%.1f</text>`+"\n",
			x(v), x(v), top-6, height-bottom+4, x(v), height-bottom+20, textAttributes, v)
	}
	for i, p := range policies() {
		y := top + rowHeight*i
		weight := "normal"
		if p.Name == ours {
			weight = "bold"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" %s font-weight="%s">%s</text>`+"\n", left-8, y+13,
			textAttributes, weight, p.Name)
		for j, budget := range budgets {
			v := r.of(w.name, budget, p.Name).mean().Freshness
			opacity := 1.0
			if p.Oracle {
				opacity = 0.45
			}
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s" `+
				`fill-opacity="%g"><title>%.3f</title></rect>`+"\n",
				left, y+1+j*(barHeight+1), x(v)-left, barHeight, [...]string{colourFew, colourMany}[j], opacity, v)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// write writes tables and drawings to the documentation.
func write(docs string, r Results) error {
	for which := range webs {
		if err := os.WriteFile(filepath.Join(docs, filepath.FromSlash(drawingOf(which))), []byte(r.drawing(which)),
			0o644); err != nil {
			return err
		}
	}
	path := filepath.Join(docs, document)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(text, []byte(tablesIn))
	_, after, ok2 := bytes.Cut(rest, []byte(tablesTo))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the tables: want the lines %q and %q", path, tablesIn, tablesTo)
	}
	return os.WriteFile(path, []byte(string(before)+tablesIn+r.tables()+tablesTo+string(after)), 0o644)
}
