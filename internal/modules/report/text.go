//go:build !core

package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/amble-crawler/amble/internal/console"
)

// What the text for a terminal lists of each table; the other forms have all rows.
const (
	textRows      = 10
	textReferrers = 3
)

// text is the report for a terminal.
type text struct {
	strings.Builder
	r *Summary
}

func (r *Summary) writeText(w io.Writer) error {
	t := &text{r: r}
	t.summary()
	t.seeds()
	t.responses()
	t.links("Broken links", &r.Broken)
	t.links("Redirects", &r.Redirects)
	t.leftOut()
	t.notKept()
	for i := range r.Parts {
		t.part(&r.Parts[i])
	}
	for _, file := range r.Output.Damaged {
		fmt.Fprintf(t, "The output cannot be read: %s\n", console.Printable(file))
	}
	if note := r.lacks(); note != "" {
		fmt.Fprintf(t, "\nNot all is in this report: %s\n", note)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// lacks says what the report lacks; empty: nothing.
func (r *Summary) lacks() string {
	if r.Incomplete == nil {
		return ""
	}
	return r.Incomplete.Error()
}

func (t *text) summary() {
	r := t.r
	fmt.Fprintf(t, "The crawl is %s: %s of %s, %s, %s received.\n", r.State,
		console.Plural(r.known(), "URL"), console.Plural(r.Hosts, "host"), console.Plural(r.Requests, "request"),
		console.Size(r.Bytes))
	t.counts(sorted(r.URLs))
}

// known returns the number of URLs.
func (r *Summary) known() (n uint64) {
	for _, c := range r.URLs {
		n += c
	}
	return n
}

// counts writes counts as columns.
func (t *text) counts(list []count) {
	var rows [][]string
	for _, c := range list {
		rows = append(rows, []string{console.Printable(c.name), console.Grouped(c.n)})
	}
	t.table(rows)
}

func (t *text) table(rows [][]string) {
	if len(rows) > 0 {
		console.WriteTable(&t.Builder, rows)
	}
}

// more says that a table has more rows than are shown.
func (t *text) more(shown int, total uint64) {
	if total > uint64(shown) {
		fmt.Fprintf(t, "  and %s more\n", console.Grouped(total-uint64(shown)))
	}
}

func (t *text) seeds() {
	s := &t.r.Seeds
	counted := ""
	if s.Uncounted > 0 {
		counted = " of which " + console.Grouped(s.Total-s.Uncounted) + " are counted"
	}
	fmt.Fprintf(t, "\n%s%s: %s.\n", console.Plural(s.Total, "seed"), counted, countsText(s.States))
	list := s.List[:min(len(s.List), textRows)]
	rows := [][]string{}
	for i := range list {
		rows = append(rows, []string{console.Printable(list[i].URL), list[i].fate(),
			console.Plural(uint64(list[i].Fetched), "page"), list[i].rest()})
	}
	t.table(rows)
	t.more(len(list), s.Total)
}

// countsText lists counts in a line.
func countsText(counts map[string]uint64) string {
	var parts []string
	for _, c := range sorted(counts) {
		parts = append(parts, console.Grouped(c.n)+" "+c.name)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// fate says what became of the URL of a seed.
func (s *Seed) fate() string {
	switch {
	case s.State == stateUnknown:
		return "not taken: beyond the scope, opted out, or not added yet"
	case s.Reason != "" && (s.State == "queued" || s.State == "retrying") && causeTexts()[s.Reason] != "":
		return s.State + ": " + causeTexts()[s.Reason]
	case s.Reason != "":
		return s.State + ": " + console.ReasonText(s.Reason)
	case s.Status > 0:
		return s.State + " " + statusText(s.Status)
	}
	return s.State
}

// rest says what is not fetched of a seed.
func (s *Seed) rest() string {
	var parts []string
	for i, n := range []uint32{s.Failed, s.Waiting, s.Other} {
		if n > 0 {
			parts = append(parts, console.Grouped(uint64(n))+" "+[]string{"failed", "waiting", "other"}[i])
		}
	}
	return strings.Join(parts, ", ")
}

func (t *text) responses() {
	if len(t.r.Statuses) > 0 {
		t.WriteString("\nURLs by the status of their last response:\n")
		t.counts(sorted(t.r.Statuses))
	}
	if len(t.r.Types) > 0 {
		t.WriteString("\nResponses with content:\n")
		rows := [][]string{}
		for _, k := range t.r.Types[:min(len(t.r.Types), textRows)] {
			name := console.Printable(k.Type)
			rows = append(rows, []string{name, console.Grouped(k.Responses), console.Size(k.Bytes)})
		}
		t.table(rows)
		t.more(len(rows), uint64(len(t.r.Types)))
	}
}

func (t *text) links(title string, l *Links) {
	fmt.Fprintf(t, "\n%s: %s.\n", title, console.Grouped(l.Total))
	list := l.List[:min(len(l.List), textRows)]
	for i := range list {
		link := &list[i]
		fmt.Fprintf(t, "  %s%s\n", console.Printable(link.URL), dashed(link.why()))
		pages := link.pages()
		for _, from := range pages[:min(len(pages), textReferrers)] {
			fmt.Fprintf(t, "      on %s%s\n", console.Printable(from.URL), dashed(quoted(from.Text)))
		}
		if more := link.Referrers - uint64(min(len(pages), textReferrers)); more > 0 && link.Referrers > textReferrers {
			fmt.Fprintf(t, "      and on %s\n", console.Plural(more, "more page"))
		}
	}
	t.more(len(list), l.Total)
	if len(list) > 0 && !t.r.Output.Links {
		fmt.Fprintf(t, "  %s\n", firstOnly)
	}
}

// firstOnly says why referrers are missing.
const firstOnly = "Of each, the first page that had it is known. With links among output.format, a crawl keeps all."

func dashed(text string) string {
	if text == "" {
		return ""
	}
	return "  " + text
}

func quoted(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "\"" + console.Printable(text) + "\""
}

// why says why a link is listed.
func (l *Link) why() string {
	why := console.ReasonText(l.Reason)
	if l.Reason == "" {
		why = statusText(l.Status)
	}
	if l.Target != "" {
		why += " to " + console.Printable(l.Target)
	}
	return strings.TrimSpace(why)
}

func (t *text) leftOut() {
	l := &t.r.LeftOut
	if len(l.Causes) == 0 {
		t.WriteString("\nNothing was left out of the hosts.\n")
		return
	}
	t.WriteString("\nLeft out of hosts:\n")
	rows := [][]string{{"CAUSE", "HOSTS", "URLS", ""}}
	for _, c := range l.Causes {
		rows = append(rows, []string{c.Cause, console.Grouped(c.Hosts), console.Grouped(c.URLs), CauseText(c.Cause)})
	}
	t.table(rows)
	rows = [][]string{{"HOST", "CAUSE", "URLS", "WHY"}}
	list := l.Hosts[:min(len(l.Hosts), textRows)]
	for i := range list {
		h := &list[i]
		rows = append(rows, []string{h.Host, h.Cause, console.Grouped(h.URLs), console.Printable(h.why())})
	}
	t.WriteString("\n")
	t.table(rows)
	var all uint64
	for _, c := range l.Causes {
		all += c.Hosts
	}
	t.more(len(list), all)
}

// why says why something was left out, or of what kind it is.
func (h *HostLeft) why() string {
	switch {
	case h.Like != "":
		return h.Like
	case h.Why != "":
		reason, failure, _ := strings.Cut(h.Why, "; ")
		return strings.TrimSuffix(console.PostponedReason(reason)+"; "+failure, "; ")
	}
	return CauseText(h.Cause)
}

// CauseText explains a cause.
func CauseText(cause string) string {
	if text := causeTexts()[cause]; text != "" {
		return text
	}
	return "links into a trap"
}

// causeTexts explain the causes that are no traps.
func causeTexts() map[string]string {
	return map[string]string{
		causeRobots: "robots.txt disallows it", causeWall: "the host is behind a wall",
		causeOptOut: "the site opted out", causeUsage: "consent.policy, by what the site says",
		causeScope: "beyond the scope, at its turn", causeDepth: "beyond crawl.max_depth, at its turn",
		causeOperator: "dropped by the operator", causeSitemaps: "more sitemaps than sitemaps.max_files",
		causeSeedPages: "max_pages of the seed is reached",
		causeMaze:      "a part of the host that goes on for ever",
		causeHeld:      "robots.txt disallows the host, or cannot be read",
		causeWalled:    "they wait until the wall ends",
		causeBudget:    "limits.host_pages or limits.domain_pages", causePaused: "paused by the operator",
		causeFailing: "the host fails, or demands a long wait", causeNotReached: "the crawl ended before their turn",
		"expensive": "expensive endpoints, traps.expensive", "URLs of the host": "limits.host_urls",
	}
}

func (t *text) notKept() {
	n := &t.r.NotKept
	t.WriteString("\nLinks that were not taken, each time they were found:\n")
	list := []count{{"beyond the scope", n.Outside}, {"on pages at the greatest depth", n.Deep}}
	for _, c := range sorted(n.Traps) {
		list = append(list, count{"trap: " + c.name, c.n})
	}
	t.counts(list)
}

func (t *text) part(p *Part) {
	fmt.Fprintf(t, "\n%s. %s\n", p.Title, console.Printable(p.Text))
	rows := [][]string{}
	for _, row := range p.Rows[:min(len(p.Rows), textRows)] {
		line := make([]string, len(row))
		for i := range row {
			line[i] = console.Printable(row[i])
		}
		rows = append(rows, line)
	}
	if len(rows) > 0 {
		t.table(append([][]string{p.Columns}, rows...))
		t.more(len(rows), uint64(len(p.Rows)))
	}
}
