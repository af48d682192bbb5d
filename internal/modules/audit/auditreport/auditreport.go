//go:build !core

// Package auditreport has the text for people of what an audit found.
package auditreport

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/modules/audit"
)

// Stamp formats an instant to the millisecond, by the local clock.
func Stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000") }

// Violations formats the listed violations.
func Violations(r *audit.Report) string {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "violation (%s) at %s: %s: %s\n", v.Kind, Stamp(v.At), console.Printable(v.URL),
			console.Printable(v.Text))
	}
	if more := r.Counts.Violations - uint64(len(r.Violations)); more > 0 {
		fmt.Fprintf(&b, "and %s\n", console.Plural(more, "violation"))
	}
	return b.String()
}

// Conclusion is the last paragraph of an audit: what was found, and what could not be checked.
func Conclusion(r *audit.Report, hosts int) string {
	var b strings.Builder
	what := "no violation"
	if n := r.Counts.Violations; n > 0 {
		what = console.Plural(n, "violation")
	}
	if r.Requests == 0 {
		b.WriteString("No request could be read.\n")
	} else {
		fmt.Fprintf(&b, "%s to %s from %s to %s: %s.\n",
			console.Plural(r.Requests, "request"), console.Plural(hosts, "host"), Stamp(r.From), Stamp(r.To), what)
	}
	if r.NoEnd > 0 {
		fmt.Fprintf(&b, "%s under way when the crawler was killed: counted as if it had ended when the next process "+
			"began.\n", console.Were(r.NoEnd, "request"))
	}
	if r.WallClock > 0 {
		fmt.Fprintf(&b, "%s measured by the wall clock only, which may have been set.\n",
			console.Were(r.WallClock, "gap"))
	}
	if n := r.Unproven - r.UnprovenNoEnd; n > 0 {
		fmt.Fprintf(&b, "%s could not be checked: the log does not have the robots.txt, "+
			"for lack of room or because it is damaged.\n", console.Plural(n, "page"))
	}
	if n := r.UnprovenNoEnd; n > 0 {
		fmt.Fprintf(&b, "%s under way when the crawler was killed and could not be checked: "+
			"the log does not name the robots.txt.\n", console.Were(n, "page"))
	}
	if r.Lost > 0 {
		fmt.Fprintf(&b, "%s not written, because the disk was full.\n", console.Were(r.Lost, "request"))
	}
	for i := range r.Damaged {
		fmt.Fprintf(&b, "damaged, not read: %s.\n", Damage(&r.Damaged[i]))
	}
	if r.Unfinished > 0 {
		fmt.Fprintf(&b, "The last %s of the log are an incomplete record: it is being written, "+
			"or the machine went down.\n", console.Size(uint64(r.Unfinished)))
	}
	return b.String()
}

// Damage describes a part of a file that cannot be read.
func Damage(d *requestlog.Damage) string {
	requests := "an unknown number of requests"
	if d.Requests >= 0 {
		requests = console.Plural(uint64(d.Requests), "request")
	}
	return fmt.Sprintf("%s from byte %d on, %s, %s", d.File, d.Offset, console.Size(uint64(d.Bytes)), requests)
}

// Table returns what an audit of request logs found as a text of one line, and the listed violations as a table.
func Table(ctx context.Context, logs [][]string, o audit.Options) (text string, columns []string, rows [][]string,
	err error) {
	r, err := audit.Run(ctx, logs, o)
	if err != nil {
		return "", nil, nil, fmt.Errorf("check the request log: %w", err)
	}
	if r.Requests == 0 && len(r.Damaged) == 0 {
		return "There is no request log: audit.max_size is 0, or nothing was requested.", nil, nil, nil
	}
	for _, v := range r.Violations {
		rows = append(rows, []string{string(v.Kind), v.At.UTC().Format(time.RFC3339), v.URL, v.Text})
	}
	text = strings.Join(strings.Fields(Conclusion(r, len(r.Hosts()))), " ")
	return text, []string{"violation", "at", "URL", "what"}, rows, nil
}
