package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/storage"
)

// printSummary prints the result of a run and what to do next.
func printSummary(w io.Writer, c *config.Config, out outcome, badSeeds int) error {
	var b strings.Builder
	fmt.Fprintln(&b, happened(c, out))
	left := queued(out.Status)
	switch {
	case out.Stopped:
		fmt.Fprintf(&b, "%s still queued; the same command continues with them.\n", are(left, "URL"))
	case reachedMaxPages(c, out):
		fmt.Fprintf(&b, "crawl.max_pages (%s) is reached, and %s still queued; raise it to go on.\n",
			grouped(uint64(c.Crawl.MaxPages)), are(left, "URL"))
	default:
		writePostponed(&b, out.Postponed, time.Now())
	}
	writeFailures(&b, out)
	writeBadSeeds(&b, badSeeds)
	writeFiles(&b, c)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeBadSeeds(b *strings.Builder, count int) {
	if count > 0 {
		fmt.Fprintf(b, "%s bad and left out; amble config check lists those of the settings.\n", were(count, "seed"))
	}
}

func reachedMaxPages(c *config.Config, out outcome) bool {
	return c.Crawl.MaxPages > 0 && out.Status.URLs["fetched"] >= int(c.Crawl.MaxPages)
}

// happened says what this run did.
func happened(c *config.Config, out outcome) string {
	if !out.Fresh {
		if out.Stopped || len(out.Postponed) > 0 || reachedMaxPages(c, out) {
			return "Nothing was fetched."
		}
		return "There was nothing new to fetch: everything known is done, " +
			plural(out.Status.URLs["fetched"], "page") + " in all."
	}
	verb := "Finished"
	if out.Stopped {
		verb = "Stopped"
	}
	text := fmt.Sprintf("%s after %s: fetched %s (%s received)", verb, span(out.took),
		plural(out.since("fetched"), "page"), size(out.Status.Run.Bytes))
	if n := out.Status.Run.Recrawls; n > 0 {
		text += ", recrawled " + plural(n, "page")
	}
	if n := out.since("redirected"); n > 0 {
		text += " and followed " + plural(n, "redirect")
	}
	var rest []string
	if n := out.since("failed"); n > 0 {
		rest = append(rest, plural(n, "URL")+" failed")
	}
	if n := out.since("denied"); n > 0 {
		rest = append(rest, were(n, "URL")+" denied by robots.txt")
	}
	if n := out.since("excluded"); n > 0 {
		rest = append(rest, were(n, "URL")+" outside the scope")
	}
	if len(rest) > 0 {
		text += ".\n" + strings.Join(rest, ", ")
	}
	return text + "."
}

// since counts the URLs that entered a state in this run.
func (o *outcome) since(state string) int { return max(o.Status.URLs[state]-o.before.URLs[state], 0) }

// writeFailures says why URLs failed in this run, and why the seeds could not be fetched if all
// failed, with the commands that show more.
func writeFailures(b *strings.Builder, out outcome) {
	if len(out.Status.Failed) > 0 {
		fmt.Fprintf(b, "Given up for: %s; amble urls --state failed lists them, amble retry requests them again.\n",
			countsText(out.Status.Failed))
	}
	seeds := &out.Seeds
	if out.Stopped || !seeds.Failed {
		return
	}
	fmt.Fprintf(b, "No seed could be fetched:\n")
	var rows [][]string
	for _, s := range seeds.First {
		rows = append(rows, []string{s.URL, s.State, reasonText(s.Reason)})
	}
	writeTable(b, rows)
	if more := seeds.Total - len(seeds.First); more > 0 {
		fmt.Fprintf(b, "  and %s\n", plural(more, "more seed"))
	}
	fmt.Fprintf(b, "amble urls %s shows everything known of it.\n", seeds.First[0].URL)
}

const maxPostponed = 10

// writePostponed lists the hosts that could not be fetched from in this run.
func writePostponed(b *strings.Builder, hosts []crawl.Postponed, now time.Time) {
	if len(hosts) == 0 {
		return
	}
	fmt.Fprintf(b, "%s postponed; a later run continues with them:\n", are(len(hosts), "host"))
	var rows [][]string
	for _, p := range hosts[:min(len(hosts), maxPostponed)] {
		until := ""
		if !p.Until.IsZero() {
			until = "not before " + instantText(p.Until, now)
		}
		why := postponedReason(p.Reason)
		if p.Cause != "" {
			why += "; last failure: " + p.Cause
		}
		rows = append(rows, []string{p.Host, plural(p.URLs, "URL"), until, why})
	}
	writeTable(b, rows)
	if more := len(hosts) - maxPostponed; more > 0 {
		fmt.Fprintf(b, "  and %s\n", plural(more, "more host"))
	}
}

// postponedReason explains the one-word reasons of politeness and robots.
func postponedReason(reason string) string {
	words := map[string]string{
		"budget":                  "its pages are spent: limits.host_pages or limits.domain_pages",
		"delay":                   "its turn comes later",
		"crawl-delay":             "Crawl-delay of its robots.txt",
		"adaptive":                "it answers slowly",
		"errors":                  "requests to it failed",
		"retry-after":             "it demanded a pause (Retry-After)",
		"back-off":                "it refused or failed repeatedly",
		"restart":                 "requests of an earlier run may have reached it",
		"request-rate":            "Request-rate of its robots.txt",
		"visit-time":              "Visit-time of its robots.txt: outside of its hours",
		"pause":                   "paused by the operator",
		"lookup":                  "its name is being looked up",
		"loading":                 "its queue is being read",
		"request":                 "a request is in flight",
		"set-delay":               "the delay set by the operator",
		"start":                   "its turn comes later",
		"wall":                    "it has put up a wall: amble hosts HOST says which",
		"parked: wall":            "parked: its wall has not ended; it is probed once a day",
		"limit":                   "a shared limit of its address, group or domain",
		"rate-limit":              "nothing is left of its quota (RateLimit)",
		"rate-policy":             "a quota of its server (RateLimit-Policy)",
		"hours":                   "outside of politeness.hours",
		"parked: hours":           "parked: politeness.hours and its Visit-time have no hour in common",
		"parked: retry-after":     "parked: it demanded a pause of more than a week (Retry-After)",
		"parked: rate-limit":      "parked: its quota is reset in more than a week (RateLimit)",
		"parked: rate-policy":     "parked: its quota allows a request in more than a week (RateLimit-Policy)",
		"robots.txt: rule":        "its robots.txt disallows everything",
		"robots.txt: unreachable": "its robots.txt cannot be read",
		"robots.txt: forbidden":   "its robots.txt is forbidden",
	}
	if text, known := words[reason]; known {
		return text
	}
	return reason
}

// writeFiles says where the files are and which commands read them.
func writeFiles(b *strings.Builder, c *config.Config) {
	rows := [][]string{{"database", filepath.Join(c.DataDir, storage.FileName)}}
	if c.Output.Format[0] != "none" {
		rows = append(rows, []string{"output", c.OutputDir()})
	}
	writeTable(b, rows)
}

// writeTable writes rows of columns, each as wide as its widest cell, indented by two.
func writeTable(b *strings.Builder, rows [][]string) {
	var widths []int
	for _, cells := range rows {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, cells := range rows {
		line := " "
		for i, cell := range cells {
			line += " " + fmt.Sprintf("%-*s", widths[i]+1, cell)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func are(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return plural(n, noun) + " are"
}

func were[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return plural(n, noun) + " were"
}
