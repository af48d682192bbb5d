//go:build !core

package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/output/csvout"
)

// The forms of a report.
const (
	FormatText = "text" // for people, on a terminal
	FormatHTML = "html" // one page, without a script
	FormatJSON = "json" // one object
	FormatCSV  = "csv"  // one of the Tables
)

// The tables of a report, for CSV.
const (
	tableBroken    = "broken"
	tableRedirects = "redirects"
	tableHosts     = "hosts"
	tableSeeds     = "seeds"
	tableCounts    = "counts"
)

// Tables returns the names of all tables.
func Tables() []string {
	return []string{tableBroken, tableRedirects, tableHosts, tableSeeds, tableCounts}
}

// MediaType returns the media type of a form.
func MediaType(format string) string {
	switch format {
	case FormatHTML:
		return "text/html; charset=utf-8"
	case FormatCSV:
		return "text/csv; charset=utf-8"
	case FormatJSON:
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// Write writes the report in a form; table is the one for CSV. An error is one of the writer.
func (r *Summary) Write(w io.Writer, format, table string) error {
	switch format {
	case FormatHTML:
		return r.writeHTML(w)
	case FormatCSV:
		return r.writeCSV(w, table)
	case FormatText:
		return r.writeText(w)
	}
	return console.WriteJSON(w, r)
}

// linkRow is a row of the tables of links: a link and one page that has it.
type linkRow struct {
	URL       string `json:"url"`
	Status    int    `json:"status,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Note      string `json:"note,omitempty"`
	Target    string `json:"target,omitempty"`
	Seed      string `json:"seed,omitempty"`
	Depth     int    `json:"depth"`
	Referrers uint64 `json:"referrers"`
	From      string `json:"from,omitempty"`
	Text      string `json:"text,omitempty"`
	Rel       string `json:"rel,omitempty"`
}

// countRow is a row of the table of counts.
type countRow struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	Count   uint64 `json:"count"`
	Bytes   uint64 `json:"bytes,omitempty"`
}

func (r *Summary) writeCSV(w io.Writer, table string) error {
	switch table {
	case tableBroken:
		return writeRows(w, linkRows(r.Broken.List))
	case tableRedirects:
		return writeRows(w, linkRows(r.Redirects.List))
	case tableHosts:
		return writeRows(w, r.LeftOut.Hosts)
	case tableSeeds:
		return writeRows(w, r.Seeds.List)
	case tableCounts:
		return writeRows(w, r.counts())
	}
	return fmt.Errorf("there is no table %q", table)
}

func writeRows[T any](w io.Writer, rows []T) error {
	out := csvout.New[T](w)
	for i := range rows {
		if err := out.Write(&rows[i]); err != nil {
			return err
		}
	}
	return out.Flush()
}

// linkRows returns a row for each referrer of each link, and one for a link without any.
func linkRows(list []Link) (rows []linkRow) {
	for i := range list {
		l := &list[i]
		row := linkRow{URL: l.URL, Status: l.Status, Reason: l.Reason, Note: l.Note, Target: l.Target, Seed: l.Seed,
			Depth: l.Depth, Referrers: l.Referrers}
		for _, from := range l.pages() {
			row.From, row.Text, row.Rel = from.URL, from.Text, from.Rel
			rows = append(rows, row)
		}
		if len(l.pages()) == 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// pages returns the pages that are known to have the link.
func (l *Link) pages() []Referrer {
	if len(l.From) == 0 && l.Via != "" {
		return []Referrer{{URL: l.Via}}
	}
	return l.From
}

// counts returns all counts, one a row.
func (r *Summary) counts() []countRow {
	rows := []countRow{{"crawl", "hosts", r.Hosts, 0}, {"crawl", "requests", r.Requests, r.Bytes}}
	add := func(section string, counts map[string]uint64) {
		for _, c := range sorted(counts) {
			rows = append(rows, countRow{section, c.name, c.n, 0})
		}
	}
	add("url", r.URLs)
	add("status", r.Statuses)
	add("failure", r.Failures)
	add("seed", r.Seeds.States)
	for _, t := range r.Types {
		rows = append(rows, countRow{"type", t.Type, t.Responses, t.Bytes})
	}
	for _, c := range r.LeftOut.Causes {
		rows = append(rows, countRow{"left out", c.Cause, c.URLs, 0})
	}
	rows = append(rows, countRow{"not kept", "outside", r.NotKept.Outside, 0},
		countRow{"not kept", "deep", r.NotKept.Deep, 0})
	add("trap", r.NotKept.Traps)
	return rows
}

// count is a named number.
type count struct {
	name string
	n    uint64
}

// sorted returns counts by name; those of statuses come as numbers do.
func sorted(counts map[string]uint64) (list []count) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, count{name, counts[name]})
	}
	return list
}

// statusText names a status for people.
func statusText(status int) string {
	if status == 0 {
		return ""
	}
	return strconv.Itoa(status)
}
