// Package outcome says how a run of a crawl has ended, for people and as JSON.
package outcome

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/storage"
)

// Outcome is the result of a run on one machine, and the status before it.
type Outcome struct {
	crawl.Summary
	Before crawl.Status
	Took   time.Duration
	Again  time.Duration // what was older was fetched again; 0: nothing
}

// Print prints the result of a run and what to do next.
func Print(w io.Writer, c *config.Config, out *Outcome, badSeeds int, now time.Time) error {
	var b strings.Builder
	fmt.Fprintln(&b, Happened(out))
	left := Queued(out.Status)
	switch {
	case out.Stopped():
		fmt.Fprintf(&b, "%s still queued; the same command continues with them.\n", console.Are(left, "URL"))
		failed := slices.DeleteFunc(slices.Clone(out.Postponed), func(p crawl.Postponed) bool { return !p.Failed })
		writeHosts(&b, console.Plural(len(failed), "host")+" could not be fetched from at the end", failed, now)
	case out.End != crawl.EndDone:
		further := "raise it to go on"
		if out.End == crawl.EndMaxTime {
			further = "the same command continues with them"
		}
		fmt.Fprintf(&b, "%s, and %s still queued; %s.\n", LimitText(c, out.End), console.Are(left, "URL"), further)
	default:
		WritePostponed(&b, out.Postponed, now)
	}
	writeFailures(&b, out)
	writeWalls(&b, &out.Status)
	WriteBadSeeds(&b, badSeeds)
	writeFiles(&b, c)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteBadSeeds says how many seeds were left out.
func WriteBadSeeds(b *strings.Builder, count int) {
	if count > 0 {
		fmt.Fprintf(b, "%s bad and left out; amble config check lists those of the settings.\n",
			console.Were(count, "seed"))
	}
}

// LimitText says which limit of the settings has ended a crawl.
func LimitText(c *config.Config, end crawl.End) string {
	switch end {
	case crawl.EndMaxBytes:
		return "crawl.max_bytes (" + c.Crawl.MaxBytes.String() + ") is reached"
	case crawl.EndMaxTime:
		return "crawl.max_time (" + console.Span(c.Crawl.MaxTime) + ") is over"
	}
	return "crawl.max_pages (" + console.Grouped(uint64(c.Crawl.MaxPages)) + ") is reached"
}

// Happened says what this run did.
func Happened(out *Outcome) string {
	if !out.Fresh {
		if out.End != crawl.EndDone || len(out.Postponed) > 0 {
			return "Nothing was fetched."
		}
		if out.Again > 0 {
			return fmt.Sprintf("Nothing is due: all that can be fetched was within %s, %s in all.",
				console.Span(out.Again), inAll(out.Status))
		}
		return "There was nothing new to fetch: everything known is done, " +
			inAll(out.Status) + " in all."
	}
	verb := "Finished"
	if out.Stopped() {
		verb = "Stopped"
	}
	requisites := max(out.Status.Requisites["fetched"]-out.Before.Requisites["fetched"], 0)
	pages := out.Since("fetched") - requisites
	if out.Again > 0 {
		pages, requisites = int(out.Status.Run.Pages), int(out.Status.Run.Requisites)
	}
	text := fmt.Sprintf("%s after %s: fetched %s (%s received)", verb, console.Span(out.Took),
		PagesText(pages, requisites), console.Size(out.Status.Run.Bytes))
	if n := out.Status.Run.Recrawls; n > 0 {
		text += ", recrawled " + console.Plural(n, "page") + " (" +
			console.Grouped(out.Status.Run.Unchanged) + " unchanged)"
	}
	if n := out.Since("redirected"); n > 0 {
		text += " and followed " + console.Plural(n, "redirect")
	}
	var rest []string
	if n := out.Since("failed"); n > 0 {
		rest = append(rest, console.Plural(n, "URL")+" failed")
	}
	if n := out.Since("denied"); n > 0 {
		rest = append(rest, console.Were(n, "URL")+" denied by robots.txt")
	}
	if n := out.Since("excluded"); n > 0 {
		rest = append(rest, console.Were(n, "URL")+" left out")
	}
	if len(rest) > 0 {
		text += ".\n" + strings.Join(rest, ", ")
	}
	return text + "."
}

// PagesText counts pages, and the requisites, if there are any: what pages are made of is no page.
func PagesText[N int | uint64](pages, requisites N) string {
	if requisites == 0 {
		return console.Plural(pages, "page")
	}
	return console.Plural(pages, "page") + " and " + console.Plural(requisites, "requisite")
}

// inAll counts what is fetched over all runs.
func inAll(s crawl.Status) string {
	requisites := s.Requisites["fetched"]
	return PagesText(s.URLs["fetched"]-requisites, requisites)
}

// Since counts the URLs that entered a state in this run.
func (o *Outcome) Since(state string) int { return max(o.Status.URLs[state]-o.Before.URLs[state], 0) }

// writeFailures says why URLs failed in this run, and why the seeds could not be fetched if all
// failed, with the commands that show more.
func writeFailures(b *strings.Builder, out *Outcome) {
	if len(out.Status.Failed) > 0 {
		how, times := "", uint64(0)
		for _, n := range out.Status.Failed {
			times += n
		}
		if times > uint64(out.Since("failed")) { // some were put back since, or had failed before
			how = ", each time counted"
		}
		fmt.Fprintf(b, "Given up for%s: %s; amble urls --state failed lists them, amble retry requests them again.\n",
			how, console.CountsText(out.Status.Failed))
	}
	seeds := &out.Seeds
	if out.Stopped() || !seeds.Failed {
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

// MaxPostponed is how many hosts are listed.
const MaxPostponed = 10

// WritePostponed lists the hosts that could not be fetched from in this run.
func WritePostponed(b *strings.Builder, hosts []crawl.Postponed, now time.Time) {
	writeHosts(b, console.Are(len(hosts), "host")+" postponed; a later run continues with them", hosts, now)
}

// writeHosts lists hosts that wait, with what holds them, below a line that says so.
func writeHosts(b *strings.Builder, heading string, hosts []crawl.Postponed, now time.Time) {
	if len(hosts) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", heading)
	var rows [][]string
	for _, p := range hosts[:min(len(hosts), MaxPostponed)] {
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
	if more := len(hosts) - MaxPostponed; more > 0 {
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

// Queued returns how many URLs wait.
func Queued(s crawl.Status) int { return s.URLs["queued"] + s.URLs["retrying"] }
