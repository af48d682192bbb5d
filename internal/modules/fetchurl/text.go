//go:build !core

package fetchurl

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/output/archive"
)

// pageLine is what people are shown of the line of the output.
type pageLine struct {
	Title       string                   `json:"title"`
	Language    string                   `json:"language"`
	Canonical   string                   `json:"canonical"`
	Robots      []string                 `json:"robots"`
	NoIndex     bool                     `json:"noindex"`
	Unavailable string                   `json:"unavailable_after"`
	Preferences []string                 `json:"preferences"`
	Usage       map[string]archive.Usage `json:"usage"`
	Licenses    []string                 `json:"licenses"`
	Note        string                   `json:"note"`
	Extracted   string                   `json:"extracted"`
	Fields      map[string]any           `json:"fields"`
	Browser     bool                     `json:"needs_browser"`
}

// text is a report for people: a label and a value a line. Values from outside are made printable.
type text struct{ strings.Builder }

func (t *text) line(label, format string, args ...any) {
	value := console.Printable(fmt.Sprintf(format, args...))
	t.WriteString(strings.TrimRight(console.Pad(label, 12)+"  "+value, " ") + "\n")
}

func (t *text) value(label, value string) {
	if value != "" {
		t.line(label, "%s", value)
	}
}

// Print prints a report for people, with the links if all is wanted.
func (r *FetchedURL) Print(w io.Writer, all bool) error {
	var t text
	t.line("URL", "%s", r.URL)
	t.line("outcome", "%s", strings.TrimSuffix(string(r.Outcome)+": "+r.Reason, ": "))
	if !r.Until.IsZero() {
		t.line("until", "%s", r.Until.UTC().Format(time.RFC3339))
	}
	t.robots(r.Robots)
	if q := r.Request; q != nil {
		t.line("request", "%s", requestText(q))
	}
	if a := r.Response; a != nil {
		t.line("response", "%d %s, %s, %s received, %s decoded, first byte after %.1f ms, complete after %.1f ms",
			a.Status, http.StatusText(a.Status), a.Protocol, console.Size(a.Received), console.Size(uint64(a.Bytes)),
			a.FirstByte, a.Duration)
		label := "header"
		for _, name := range slices.Sorted(maps.Keys(a.Header)) {
			for _, value := range a.Header[name] {
				t.line(label, "%s: %s", name, value)
				label = ""
			}
		}
	}
	if err := t.page(r); err != nil {
		return err
	}
	t.links(r, all)
	_, err := io.WriteString(w, t.String())
	return err
}

func (t *text) robots(r *URLRobots) {
	if r == nil {
		return
	}
	switch {
	case r.Line > 0:
		t.line("robots.txt", "%s by line %d: %s", r.Verdict, r.Line, r.Rule)
	case r.Verdict == "none":
		t.line("robots.txt", "gives no verdict")
	default:
		t.line("robots.txt", "%s: %s", r.Verdict, r.Why)
	}
	from := r.Class
	if r.Status > 0 {
		from += fmt.Sprintf(" (%d)", r.Status)
	}
	if r.Failure != "" {
		from += ": " + r.Failure
	}
	if !r.Fetched.IsZero() {
		from += ", fetched " + r.Fetched.UTC().Format(time.RFC3339)
	}
	if r.Group != "" {
		from += ", group " + r.Group
	}
	if r.Delay > 0 {
		from += ", crawl delay " + span(r.Delay)
	}
	t.line("", "%s: %s", r.URL, from)
}

func requestText(q *URLRequest) string {
	parts := []string{q.At.UTC().Format(time.RFC3339)}
	if q.Address != "" {
		parts[0] += " to " + q.Address
	}
	delay := "delay " + span(q.Delay)
	if q.DelayReason != "" {
		delay += " (" + q.DelayReason + ")"
	}
	if parts = append(parts, delay); q.Gap > 0 {
		parts = append(parts, span(q.Gap)+" after the last request to the host")
	}
	return strings.Join(parts, ", ")
}

// span writes seconds for people, short ones with their milliseconds.
func span(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return console.Span(d)
}

// page prints what was read out of the page.
func (t *text) page(r *FetchedURL) error {
	var p pageLine
	if len(r.Page) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Page, &p); err != nil {
		return fmt.Errorf("the line of the page: %w", err)
	}
	if p.Browser {
		t.line("content", "needs a browser: the page has scripts, hardly a link and hardly text")
	}
	t.value("title", p.Title)
	t.value("language", p.Language)
	t.value("canonical", p.Canonical)
	t.value("robots", strings.Join(p.Robots, ", "))
	if p.NoIndex {
		t.line("", "it must not be indexed")
	}
	t.value("unavailable", p.Unavailable)
	t.value("preferences", strings.Join(p.Preferences, ", "))
	label := "usage"
	for _, category := range slices.Sorted(maps.Keys(p.Usage)) {
		t.line(label, "%s=%s, by %s", category, p.Usage[category].Preference, p.Usage[category].From)
		label = ""
	}
	t.value("licenses", strings.Join(p.Licenses, ", "))
	t.value("note", p.Note)
	t.value("extracted", p.Extracted)
	label = "field"
	for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
		t.line(label, "%s: %v", name, p.Fields[name])
		label = ""
	}
	return nil
}

// fewLinks is how many links people are shown unless they want all.
const fewLinks = 20

func (t *text) links(r *FetchedURL, all bool) {
	if r.Links == nil {
		return
	}
	t.line("links", "%s, %s refused", console.Plural(len(r.Links), "link"), console.Plural(r.Ignored, "reference"))
	for i := range r.Links {
		if i == fewLinks && !all {
			t.line("", "and %d more: --links lists them", len(r.Links)-i)
			return
		}
		mark := ""
		if r.Links[i].NoFollow {
			mark = "  nofollow"
		}
		t.line("", "%s  %s%s", console.Pad(r.Links[i].Kind, 9), r.Links[i].To, mark)
	}
}
