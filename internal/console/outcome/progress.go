package outcome

import (
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
)

// Progress shows the state of a crawl.
func Progress(status func() crawl.Status, now func() time.Time, log *slog.Logger) console.Progress {
	return console.Progress{
		Log:  func() { logProgress(log, status()) },
		Rows: func(width int) []console.Row { return progressRows(status(), now(), width) },
	}
}

// logProgress logs the block as one line.
func logProgress(log *slog.Logger, s crawl.Status) {
	active, waiting := HostsAt(s)
	attributes := []any{
		"pages", s.Run.Pages, "pages_per_second", console.Rounded(s.PagesPerSec), "bytes", s.Run.Bytes,
		"hosts_active", active, "hosts_waiting", waiting, "queued", Queued(s), "denied", s.URLs["denied"],
		"errors", Total(ErrorKinds(s)),
	}
	if s.Run.Requisites > 0 {
		attributes = append(attributes, "requisites", s.Run.Requisites)
	}
	if len(s.Slowest) > 0 {
		attributes = append(attributes, "finish", console.Span(Seconds(s.Finish)), "slowest_host",
			s.Slowest[0].Host)
	}
	if s.State == "stalled" {
		log.Warn(stalledText, append(attributes, "reason", s.Reason)...)
		return
	}
	if s.Reason != "" {
		attributes = append(attributes, "reason", s.Reason)
	}
	log.Info(s.State, attributes...)
}

const stalledText = "nothing is fetched until the disk has room again"

// progressRows returns the block for a screen of a width.
func progressRows(s crawl.Status, now time.Time, width int) []console.Row {
	active, waiting := HostsAt(s)
	cells := [][2]string{
		{"pages", fmt.Sprintf("%s  %.1f/s", console.Grouped(s.Run.Pages), s.PagesPerSec)},
		{"hosts", fmt.Sprintf("%s active, %s waiting", console.Grouped(active), console.Grouped(waiting))},
		{"received", fmt.Sprintf("%s  %s/s", console.Size(s.Run.Bytes), console.Size(s.BytesPerSec))},
		{"queue", console.Plural(Queued(s), "URL")},
		{"denied", console.Grouped(s.URLs["denied"]) + " by robots.txt"},
		{"errors", console.Grouped(Total(ErrorKinds(s)))},
	}
	if s.Run.Requisites > 0 {
		cells = append(cells, [2]string{"requisites", console.Grouped(s.Run.Requisites)})
	}
	if s.Run.Recrawls > 0 {
		cells = append(cells, [2]string{"recrawls", console.Unchanged(s.Run.Yield)})
	}
	rows := []console.Row{{Text: title(s, now), Style: console.StyleTitle}}
	if s.State == "stalled" {
		rows = append(rows, console.Row{Text: "  " + stalledText + ": " + s.Reason, Style: console.StyleDanger})
	}
	if s.State == "running" && s.Reason != "" {
		rows = append(rows, console.Row{Text: "  " + s.Reason})
	}
	rows = append(rows, console.Columns(cells, width)...)
	if text := FinishText(s); text != "" {
		rows = append(rows, console.Row{Text: "  " + console.Pad("left", console.LabelWidth) + text})
	}
	return rows
}

func title(s crawl.Status, now time.Time) string {
	switch {
	case s.Started.IsZero():
		return "amble: reading the database"
	case s.State == "stopping":
		return "amble: stopping, " + console.Plural(s.InFlight, "request") + " in flight; Ctrl-C again to stop at once"
	default:
		return "amble: " + s.State + " for " + console.Span(now.Sub(StateSince(s))) + "; Ctrl-C to stop"
	}
}

// FinishText says how long it will take, and which host determines that; empty if it is not known.
func FinishText(s crawl.Status) string {
	if len(s.Slowest) == 0 {
		return ""
	}
	return fmt.Sprintf("about %s; %s has %s", console.Span(Seconds(s.Finish)), s.Slowest[0].Host,
		console.Plural(s.Slowest[0].URLs, "URL"))
}

// HostsAt counts the hosts that have requests in flight, and those that have work and wait.
func HostsAt(s crawl.Status) (active, waiting int) {
	for state, n := range s.HostStates {
		switch state {
		case inspect.HostBusy:
			active += n
		case inspect.HostEmpty:
		default:
			waiting += n
		}
	}
	return active, waiting
}

// Seconds converts seconds to a duration.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// StateSince returns when the crawl entered its state; for a running crawl, its start, even if it was held meanwhile.
func StateSince(s crawl.Status) time.Time {
	if s.State == "running" || s.Since.IsZero() {
		return s.Started
	}
	return s.Since
}

// ErrorKinds counts the failures of this run by kind, those of lookups too; 4xx and requests broken off are none.
func ErrorKinds(s crawl.Status) map[string]uint64 {
	kinds := maps.Clone(s.Errors)
	delete(kinds, "status_4xx")
	delete(kinds, "canceled")
	return kinds
}

// Total returns the sum of counts.
func Total(counts map[string]uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
