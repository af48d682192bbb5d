//go:build !core

package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/modules/audit"
	"github.com/amble-crawler/amble/internal/modules/audit/auditreport"
)

// hostAudit prints everything about one host.
func hostAudit(h *audit.Host) string {
	s := &console.Story{}
	s.Line("host", "%s", h.Host)
	s.Line("requests", "%s: %s, %s for robots.txt; %s without a response", console.Grouped(h.Requests),
		console.Plural(h.Pages, "page"), console.Grouped(h.Robots), console.Grouped(h.Failed))
	s.Line("", "from %s to %s", auditreport.Stamp(h.First), auditreport.Stamp(h.Last))
	if h.NoEnd+h.Again > 0 {
		s.Line("crashes", "%s without a known end, %s repeated after that", console.Grouped(h.NoEnd),
			console.Grouped(h.Again))
	}
	if g := h.Smallest; g != nil {
		s.Line("smallest gap", "%s, where %s were in force (%s), at %s%s", auditreport.GapText(g.Seconds),
			auditreport.GapText(g.Delay),
			g.Reason, auditreport.Stamp(g.At), inexact(g.Exact))
	}
	for _, v := range h.Versions {
		name := v.Version
		if name == "" {
			name = v.Class
		}
		s.Line("robots.txt", "%s allowed %s of %s", name, console.Plural(v.Pages, "page"), console.Printable(v.Origin))
		s.Line("", "from %s to %s", auditreport.Stamp(v.First), auditreport.Stamp(v.Last))
	}
	if h.Older > 0 {
		s.Line("", "and %s before them", console.Plural(h.Older, "version"))
	}
	return s.String()
}

func inexact(exact bool) string {
	if exact {
		return ""
	}
	return ", by the wall clock"
}

// printRequest explains why a URL was fetched, and how fast.
func printRequest(w io.Writer, l *audit.Line) error {
	s := &console.Story{}
	s.Line("request", "%s, %s (%s)", auditreport.Stamp(l.At), l.Method+" "+console.Printable(l.URL), l.Kind)
	s.Line("", "at %s as %s", l.Address, console.Printable(l.Agent))
	answer := auditreport.AnswerText(l)
	if !l.NoEnd {
		answer += fmt.Sprintf(", %s in %s", console.Size(l.Bytes), auditreport.GapText(l.Seconds))
	}
	if l.RetryAfter > 0 {
		answer += ", Retry-After " + auditreport.GapText(l.RetryAfter)
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
	s.Line("answer", "%s", answer)
	if l.Gap != nil {
		s.Line("gap", "%s since the end of the previous request%s", auditreport.GapText(*l.Gap), inexact(l.Exact))
	}
	s.Line("delay", "%s in force (%s)", auditreport.GapText(l.Delay), l.Reason)
	if l.DelayLine > 0 {
		s.Line("", "robots.txt line %d: %s", l.DelayLine, console.Printable(l.DelayText))
	}
	if l.Kind == "page" {
		s.Line("allowed by", "%s", strings.TrimSuffix(auditreport.AllowedBy(l)+": "+console.Printable(l.Rule), ": "))
		if l.Version != "" {
			s.Line("", "of robots.txt %s", l.Version)
		}
	}
	for _, v := range l.Violations {
		s.Line("violation", "%s: %s", v.Kind, console.Printable(v.Text))
	}
	_, err := io.WriteString(w, s.String()+"\n")
	return err
}
