package crawlcheck

import (
	_ "embed"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteText writes a report as a table for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STATION\tLEVEL\tVERDICT\tREQUESTS\tWHY")
	for _, s := range r.Results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", s.Station, s.Level, s.Verdict, s.Requests, printable(s.Why))
	}
	_ = t.Flush() // a strings.Builder does not fail
	fmt.Fprintf(&b, "\n%s, seed %d, %.0f s, ended because %s\n", plural(int(r.Requests), "request"), r.Seed, r.Seconds,
		r.Ended)
	for _, agent := range r.Agents {
		fmt.Fprintf(&b, "User-Agent %s\n", quoted(agent))
	}
	for _, level := range []Level{Must, Should, Courtesy} {
		n := r.count(level)
		fmt.Fprintf(&b, "%-9s %2d hold, %2d broken, %2d not shown, %2d not run\n", level, n[Holds], n[Broken],
			n[NotShown], n[NotRun])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) count(level Level) map[Verdict]int {
	n := make(map[Verdict]int)
	for _, s := range r.Results {
		if s.Level == level {
			n[s.Verdict]++
		}
	}
	return n
}

// printable makes control characters of text from the network visible.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u202e' {
			return '?'
		}
		return c
	}, s)
}

// WriteJSON writes a report as JSON. docs/CONFORMANCE.md describes the fields.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// The elements of a JUnit report.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     float64     `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string      `xml:"name,attr"`
		Class   string      `xml:"classname,attr"`
		Failure *junitCause `xml:"failure"`
		Skipped *junitCause `xml:"skipped"`
	}
	junitCause struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes a report as JUnit XML. What was not shown fails; what was not run is skipped.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junitSuite{Name: "crawlcheck", Tests: len(r.Results), Time: r.Seconds}
	for _, s := range r.Results {
		c := junitCase{Name: s.Station, Class: "crawlcheck." + s.Group}
		cause := &junitCause{Message: fmt.Sprintf("%s (%s): %s", s.Verdict, s.Level, printable(s.Why)), Text: s.Rule}
		switch s.Verdict {
		case Broken, NotShown:
			c.Failure = cause
			suite.Failures++
		case NotRun:
			c.Skipped = cause
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", " ")
	return e.Encode(suite)
}

//go:embed report.html
var reportPage string

// The width of a time line, in its own units.
const lineWidth = 1000

// bar is a request on a time line.
type bar struct {
	X, W  float64
	Bad   bool
	Title string
}

// bars returns the requests of a result on a time line of their own.
func bars(s Result) (list []bar) {
	if len(s.Proof) == 0 {
		return nil
	}
	first, last := s.Proof[0].At, 0.0
	for _, p := range s.Proof {
		last = max(last, p.At+p.Seconds)
	}
	scale := lineWidth / max(last-first, 0.001)
	for _, p := range s.Proof {
		list = append(list, bar{
			X: (p.At - first) * scale, W: max(p.Seconds*scale, 3), Bad: p.Breaks,
			Title: fmt.Sprintf("%.3f s: %s %s%s, status %d, %.3f s", p.At, p.Method, p.Host, p.Path, p.Status,
				p.Seconds),
		})
	}
	return list
}

// WriteHTML writes a report as one page of HTML that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error {
	page, err := template.New("report").Funcs(template.FuncMap{
		"bars": bars, "join": strings.Join, "count": func(r *Report, v string) int { return r.Counts[Verdict(v)] },
		"class": func(v Verdict) string { return strings.ReplaceAll(string(v), " ", "-") },
		"breaking": func(list []Proof) []Proof {
			return slices.DeleteFunc(slices.Clone(list), func(p Proof) bool { return !p.Breaks })
		},
	}).Parse(reportPage)
	if err != nil {
		return fmt.Errorf("crawlcheck: the page of a report: %w", err)
	}
	return page.Execute(w, r)
}

// WriteBadge writes how many rules hold as an SVG image.
func (r *Report) WriteBadge(w io.Writer) error {
	held := r.Counts[Holds]
	run := len(r.Results) - r.Counts[NotRun]
	colour := "#4c1"
	if !r.MustsHold() {
		colour = "#c43"
	} else if held < run {
		colour = "#a90"
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="150" height="20" role="img" `+
		`aria-label="crawlcheck: %[1]d of %[2]d hold"><title>crawlcheck: %[1]d of %[2]d hold</title>`+
		`<rect width="76" height="20" fill="#555"/><rect x="76" width="74" height="20" fill="%[3]s"/>`+
		`<g fill="#fff" font-family="Verdana,sans-serif" font-size="11"><text x="6" y="14">crawlcheck</text>`+
		`<text x="82" y="14">%[1]d of %[2]d</text></g></svg>`+"\n", held, run, colour)
	return err
}
