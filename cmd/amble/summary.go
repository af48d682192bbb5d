package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/storage"
)

// printSummary prints the result of a run and what to do next.
func printSummary(w io.Writer, c *config.Config, out outcome, badSeeds int) error {
	var b strings.Builder
	fmt.Fprintln(&b, happened(c, out))
	left := queued(out.Status)
	switch {
	case out.Stopped:
		fmt.Fprintf(&b, "%s still queued; the same command continues with them.\n", console.Are(left, "URL"))
	case reachedMaxPages(c, out):
		fmt.Fprintf(&b, "crawl.max_pages (%s) is reached, and %s still queued; raise it to go on.\n",
			console.Grouped(uint64(c.Crawl.MaxPages)), console.Are(left, "URL"))
	default:
		writePostponed(&b, out.Postponed, time.Now())
	}
	writeFailures(&b, out)
	writeWalls(&b, &out.Status)
	writeBadSeeds(&b, badSeeds)
	writeFiles(&b, c)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeBadSeeds(b *strings.Builder, count int) {
	if count > 0 {
		fmt.Fprintf(b, "%s bad and left out; amble config check lists those of the settings.\n",
			console.Were(count, "seed"))
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
			console.Plural(out.Status.URLs["fetched"], "page") + " in all."
	}
	verb := "Finished"
	if out.Stopped {
		verb = "Stopped"
	}
	text := fmt.Sprintf("%s after %s: fetched %s (%s received)", verb, console.Span(out.took),
		console.Plural(out.since("fetched"), "page"), console.Size(out.Status.Run.Bytes))
	if n := out.Status.Run.Recrawls; n > 0 {
		text += ", recrawled " + console.Plural(n, "page") + " (" +
			console.Grouped(out.Status.Run.Unchanged) + " unchanged)"
	}
	if n := out.since("redirected"); n > 0 {
		text += " and followed " + console.Plural(n, "redirect")
	}
	var rest []string
	if n := out.since("failed"); n > 0 {
		rest = append(rest, console.Plural(n, "URL")+" failed")
	}
	if n := out.since("denied"); n > 0 {
		rest = append(rest, console.Were(n, "URL")+" denied by robots.txt")
	}
	if n := out.since("excluded"); n > 0 {
		rest = append(rest, console.Were(n, "URL")+" outside the scope")
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
			console.CountsText(out.Status.Failed))
	}
	seeds := &out.Seeds
	if out.Stopped || !seeds.Failed {
		return
	}
	fmt.Fprintf(b, "No seed could be fetched:\n")
	var rows [][]string
	for _, s := range seeds.First {
		rows = append(rows, []string{s.URL, s.State, console.ReasonText(s.Reason)})
	}
	console.WriteTable(b, rows)
	if more := seeds.Total - len(seeds.First); more > 0 {
		fmt.Fprintf(b, "  and %s\n", console.Plural(more, "more seed"))
	}
	fmt.Fprintf(b, "amble urls %s shows everything known of it.\n", seeds.First[0].URL)
}

// writeWalls says which walls hosts are behind.
func writeWalls(b *strings.Builder, s *crawl.Status) {
	if len(s.Walls) > 0 {
		fmt.Fprintf(b, "Hosts behind walls: %s; made by: %s; amble hosts --state walled lists them.\n",
			console.CountsText(s.Walls), console.CountsText(s.WallMakers))
	}
}

const maxPostponed = 10

// writePostponed lists the hosts that could not be fetched from in this run.
func writePostponed(b *strings.Builder, hosts []crawl.Postponed, now time.Time) {
	if len(hosts) == 0 {
		return
	}
	fmt.Fprintf(b, "%s postponed; a later run continues with them:\n", console.Are(len(hosts), "host"))
	var rows [][]string
	for _, p := range hosts[:min(len(hosts), maxPostponed)] {
		until := ""
		if !p.Until.IsZero() {
			until = "not before " + console.InstantText(p.Until, now)
		}
		why := console.PostponedReason(p.Reason)
		if p.Cause != "" {
			why += "; last failure: " + p.Cause
		}
		rows = append(rows, []string{p.Host, console.Plural(p.URLs, "URL"), until, why})
	}
	console.WriteTable(b, rows)
	if more := len(hosts) - maxPostponed; more > 0 {
		fmt.Fprintf(b, "  and %s\n", console.Plural(more, "more host"))
	}
}

// writeFiles says where the files are and which commands read them.
func writeFiles(b *strings.Builder, c *config.Config) {
	rows := [][]string{{"database", filepath.Join(c.DataDir, storage.FileName)}}
	if c.Output.Format[0] != "none" {
		rows = append(rows, []string{"output", c.OutputDir()})
	}
	console.WriteTable(b, rows)
}
