//go:build !core

package auditreport

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/modules/audit"
)

// GapText formats a time to the millisecond, rounded down.
func GapText(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond).Truncate(time.Millisecond).String()
}

// RequestCells are the columns of a request.
func RequestCells(l *audit.Line) []string {
	gap := "-"
	if l.Gap != nil {
		gap = GapText(*l.Gap)
	}
	return []string{Stamp(l.At), l.Kind, AnswerText(l), gap, GapText(l.Delay), l.Reason, AllowedBy(l),
		console.Printable(l.URL)}
}

// AnswerText says how a request ended.
func AnswerText(l *audit.Line) string {
	switch {
	case l.NoEnd:
		return "no end known"
	case l.Status == 0:
		return l.Failure
	}
	return fmt.Sprint(l.Status)
}

// AllowedBy says in a few words which rule allowed a page.
func AllowedBy(l *audit.Line) string {
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
