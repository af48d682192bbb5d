//go:build !core

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/audit"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/requestlog"
)

// gapText formats a time to the millisecond, rounded down.
func gapText(seconds float64) string {
	return fromSeconds(seconds).Round(time.Microsecond).Truncate(time.Millisecond).String()
}

// hostAudit prints everything about one host.
func hostAudit(h *audit.Host) string {
	s := &story{}
	s.line("host", "%s", h.Host)
	s.line("requests", "%s: %s, %s for robots.txt; %s without a response", console.Grouped(h.Requests),
		console.Plural(h.Pages, "page"), console.Grouped(h.Robots), console.Grouped(h.Failed))
	s.line("", "from %s to %s", stampOf(h.First), stampOf(h.Last))
	if h.NoEnd+h.Again > 0 {
		s.line("crashes", "%s without a known end, %s repeated after that", console.Grouped(h.NoEnd),
			console.Grouped(h.Again))
	}
	if g := h.Smallest; g != nil {
		s.line("smallest gap", "%s, where %s were in force (%s), at %s%s", gapText(g.Seconds), gapText(g.Delay),
			g.Reason, stampOf(g.At), inexact(g.Exact))
	}
	for _, v := range h.Versions {
		name := v.Version
		if name == "" {
			name = v.Class
		}
		s.line("robots.txt", "%s allowed %s of %s", name, console.Plural(v.Pages, "page"), console.Printable(v.Origin))
		s.line("", "from %s to %s", stampOf(v.First), stampOf(v.Last))
	}
	if h.Older > 0 {
		s.line("", "and %s before them", console.Plural(h.Older, "version"))
	}
	return s.String()
}

func inexact(exact bool) string {
	if exact {
		return ""
	}
	return ", by the wall clock"
}

func stampOf(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000") }

// violations formats the listed violations.
func violations(r *audit.Report) string {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "violation (%s) at %s: %s: %s\n", v.Kind, stampOf(v.At), console.Printable(v.URL),
			console.Printable(v.Text))
	}
	if more := r.Counts.Violations - uint64(len(r.Violations)); more > 0 {
		fmt.Fprintf(&b, "and %s\n", console.Plural(more, "violation"))
	}
	return b.String()
}

// conclusion is the last paragraph: what was found, and what could not be checked.
func conclusion(r *audit.Report, hosts int) string {
	var b strings.Builder
	what := "no violation"
	if n := r.Counts.Violations; n > 0 {
		what = console.Plural(n, "violation")
	}
	if r.Requests == 0 {
		b.WriteString("No request could be read.\n")
	} else {
		fmt.Fprintf(&b, "%s to %s from %s to %s: %s.\n",
			console.Plural(r.Requests, "request"), console.Plural(hosts, "host"), stampOf(r.From), stampOf(r.To), what)
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
		fmt.Fprintf(&b, "damaged, not read: %s.\n", damageText(&r.Damaged[i]))
	}
	if r.Unfinished > 0 {
		fmt.Fprintf(&b, "The last %s of the log are an incomplete record: it is being written, "+
			"or the machine went down.\n", console.Size(uint64(r.Unfinished)))
	}
	return b.String()
}

// damageText describes a part of a file that cannot be read.
func damageText(d *requestlog.Damage) string {
	requests := "an unknown number of requests"
	if d.Requests >= 0 {
		requests = console.Plural(uint64(d.Requests), "request")
	}
	return fmt.Sprintf("%s from byte %d on, %s, %s", d.File, d.Offset, console.Size(uint64(d.Bytes)), requests)
}

// requestCells are the columns of a request.
func requestCells(l *audit.Line) []string {
	gap := "-"
	if l.Gap != nil {
		gap = gapText(*l.Gap)
	}
	return []string{stampOf(l.At), l.Kind, answerText(l), gap, gapText(l.Delay), l.Reason, allowedBy(l),
		console.Printable(l.URL)}
}

func answerText(l *audit.Line) string {
	switch {
	case l.NoEnd:
		return "no end known"
	case l.Status == 0:
		return l.Failure
	}
	return fmt.Sprint(l.Status)
}

// allowedBy says in a few words which rule allowed a page.
func allowedBy(l *audit.Line) string {
	switch {
	case l.Kind != "page":
		return "-"
	case l.Allowed == nil:
		return "not known any more"
	case !*l.Allowed:
		return fmt.Sprintf("DISALLOWED by line %d", l.RuleLine)
	case l.RuleLine > 0:
		return fmt.Sprintf("line %d", l.RuleLine)
	}
	return l.Verdict
}

// printRequest explains why a URL was fetched, and how fast.
func printRequest(w io.Writer, l *audit.Line, now time.Time) error {
	s := &story{now: now}
	s.line("request", "%s, %s (%s)", stampOf(l.At), l.Method+" "+console.Printable(l.URL), l.Kind)
	s.line("", "at %s as %s", l.Address, console.Printable(l.Agent))
	answer := answerText(l)
	if !l.NoEnd {
		answer += fmt.Sprintf(", %s in %s", console.Size(l.Bytes), gapText(l.Seconds))
	}
	if l.RetryAfter > 0 {
		answer += ", Retry-After " + gapText(l.RetryAfter)
	}
	if l.Fetcher != "" {
		answer += ", to the fetcher " + console.Printable(l.Fetcher)
		if l.Lease != "" {
			answer += " by the lease " + console.Printable(l.Lease)
		}
	}
	if l.Again {
		answer += "; fetched again, because the first response was lost in a crash"
	}
	s.line("answer", "%s", answer)
	if l.Gap != nil {
		s.line("gap", "%s since the end of the previous request%s", gapText(*l.Gap), inexact(l.Exact))
	}
	s.line("delay", "%s in force (%s)", gapText(l.Delay), l.Reason)
	if l.DelayLine > 0 {
		s.line("", "robots.txt line %d: %s", l.DelayLine, console.Printable(l.DelayText))
	}
	if l.Kind == "page" {
		s.line("allowed by", "%s", strings.TrimSuffix(allowedBy(l)+": "+console.Printable(l.Rule), ": "))
		if l.Version != "" {
			s.line("", "of robots.txt %s", l.Version)
		}
	}
	for _, v := range l.Violations {
		s.line("violation", "%s: %s", v.Kind, console.Printable(v.Text))
	}
	_, err := io.WriteString(w, s.String()+"\n")
	return err
}
