//go:build !core

package operator

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/outcome"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/storage"
)

func newStatusCommand(settings *Program) *cobra.Command {
	p := console.Printer{}
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the state of a crawl",
		Long: `Show the state of the crawl in data_dir: URLs by state, hosts, rates and the time left. A
running crawl answers over its API at any address: the file server.addr in data_dir has the address, the
settings have the token. Otherwise the figures come from the database, which is opened read-only.

With --json the output is one object, that of GET /api/v1/status.

Exit code 0: done. 1: there is no database, it cannot be used, or not all of a cluster has answered: the
figures are those of the others. 2: wrong usage or settings, or the running crawl does not accept the token. 3: another process has the database and no API answers.`,
		Example: `  amble status
  amble status -c site.yaml --json
  amble status --set data_dir=/srv/crawl`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.Crawl()
			if err != nil {
				return err
			}
			s, err := c.Status(command.Context())
			if err != nil {
				return err
			}
			err = p.Object(command.OutOrStdout(), s, func(w io.Writer) error {
				more, err := settings.moreStatus(command.Context(), c.Config, s.Status)
				return errors.Join(printStatus(w, s.Status, more...), err)
			})
			if err == nil && s.Incomplete != nil {
				err = s.Incomplete
			}
			return err
		},
	}
	p.ObjectFlag(command, "print one JSON object")
	return command
}

// printStatus prints a small table; more rows come before the last ones.
func printStatus(w io.Writer, s crawl.Status, more ...[]string) error {
	rows := [][]string{{"state", stateText(s)}}
	for state := storage.Queued; state <= storage.Retrying; state++ {
		rows = append(rows, []string{state.String(), console.Grouped(s.URLs[state.String()]), stateMeaning(state)})
	}
	rows = append(rows, outcome.RequisiteRows(s)...)
	active, waiting := outcome.HostsAt(s)
	hosts := ""
	if !s.Started.IsZero() {
		hosts = fmt.Sprintf("%s active, %s waiting", console.Grouped(active), console.Grouped(waiting))
	}
	rows = append(rows,
		[]string{"hosts", console.Grouped(s.Hosts), hosts},
		[]string{"requests", console.Grouped(s.Requests), errorsText(s)},
		[]string{"received", console.Size(s.Bytes)},
	)
	if !s.Started.IsZero() {
		rows = append(rows,
			[]string{"rate", fmt.Sprintf("%.1f pages/s, %s/s", s.PagesPerSec, console.Size(s.BytesPerSec))})
	}
	if text := limitsText(s.Limits); text != "" {
		rows = append(rows, []string{"limits", text})
	}
	if text := outcome.FinishText(s); text != "" {
		rows = append(rows, []string{"left", text})
	}
	rows = append(rows, slowestRows(s.Slowest)...)
	rows = append(rows, fetcherRows(s.Fetchers)...)
	rows = append(rows, more...)
	if rows = append(rows, []string{"data", s.DataDir}); s.OutputDir != "" { // in a cluster each shard has its own
		rows = append(rows, []string{"output", s.OutputDir})
	}
	var b strings.Builder
	writeStatusTable(&b, rows)
	_, err := io.WriteString(w, b.String())
	return err
}

// fetcherRows lists the fetchers outside of amble, and what they hold.
func fetcherRows(list []remote.Fetcher) (rows [][]string) {
	for _, f := range list {
		text := fmt.Sprintf("%s leases, %s reported, %s ran out", console.Grouped(f.Leases),
			console.Grouped(f.Reported),
			console.Grouped(f.RanOut))
		if f.CutOff {
			text += ", cut off"
		}
		rows = append(rows, []string{"fetcher", f.Name + ": " + text})
	}
	return rows
}

// limitsText lists the limits of the whole crawl that are set, and how long they have held requests
// back; empty: there are none.
func limitsText(l crawl.Limits) string {
	var parts []string
	if l.MaxRate > 0 {
		waited := console.Span(outcome.Seconds(l.RateWait))
		parts = append(parts, fmt.Sprintf("%g requests/s (hosts that were due waited %s)", l.MaxRate, waited))
	}
	if l.Bandwidth > 0 {
		parts = append(parts, console.Size(uint64(l.Bandwidth))+"/s")
	}
	if l.HostBandwidth > 0 {
		parts = append(parts, console.Size(uint64(l.HostBandwidth))+"/s a host")
	}
	return strings.Join(parts, "; ")
}

// slowestRows lists the hosts that take longest. If there is only one, the line before names it.
func slowestRows(hosts []crawl.SlowHost) (rows [][]string) {
	if len(hosts) < 2 {
		return nil
	}
	width := 0
	for _, h := range hosts {
		width = max(width, len(h.Host))
	}
	label := "slowest"
	for _, h := range hosts {
		rows = append(rows, []string{label,
			fmt.Sprintf("%-*s  about %s for %s", width, h.Host, console.Span(outcome.Seconds(h.Finish)),
				console.Plural(h.URLs, "URL"))})
		label = ""
	}
	return rows
}

// writeStatusTable aligns numbers to the right. A row of two cells that is not a number is left as
// it is.
func writeStatusTable(b *strings.Builder, rows [][]string) {
	width := 0
	for _, cells := range rows {
		if len(cells) == 3 {
			width = max(width, len(cells[1]))
		}
	}
	for _, cells := range rows {
		line := console.Pad(cells[0], console.LabelWidth)
		if len(cells) == 3 {
			line += fmt.Sprintf("%*s  %s", width, cells[1], cells[2])
		} else {
			line += cells[1]
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func stateText(s crawl.Status) string {
	text := s.State
	if since := outcome.StateSince(s); !since.IsZero() {
		text += ", since " + console.InstantText(since, s.At) + " (" + console.Span(s.At.Sub(since)) + ")"
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

func errorsText(s crawl.Status) string {
	if s.Started.IsZero() {
		return ""
	}
	kinds := outcome.ErrorKinds(s)
	text := console.Plural(outcome.Total(kinds), "error") + " in this run"
	if len(kinds) > 0 {
		text += ": " + console.CountsText(kinds)
	}
	return text
}

func stateMeaning(s storage.State) string {
	return map[storage.State]string{
		storage.Queued:     "wait for their turn",
		storage.Fetched:    "fetched with content",
		storage.Redirected: "led to another URL",
		storage.Failed:     "given up",
		storage.Denied:     "forbidden by robots.txt",
		storage.Excluded:   "outside the scope, or left out",
		storage.Retrying:   "failed, and will be tried again",
	}[s]
}
