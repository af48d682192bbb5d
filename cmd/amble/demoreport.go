//go:build !core

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/outcome"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// demoReport describes what the demo did, according to the record of its web.
type demoReport struct {
	config *config.Config
	dir    string
	out    outcome.Outcome
	log    testweb.Log
	facts  testweb.Facts
	web    *testweb.Web
}

func (r *demoReport) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", outcome.Happened(&r.out))
	fmt.Fprintf(&b, "What the web itself saw, in %s. The least gap is the shortest time from the\nend of one "+
		"request to the start of the next:\n",
		console.Plural(len(r.log), "request"))
	tooShort := r.writeHosts(&b)
	b.WriteString("\n")
	if err := r.writeDenied(&b); err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	var wrong []string
	early := len(r.log.BeforeRobots())
	if !r.out.Stopped() {
		outcome.WritePostponed(&b, r.out.Postponed, time.Now())
		wrong = r.facts.Check(r.log)
		writeVerdict(&b, wrong, tooShort, early)
	}
	r.writeNext(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if len(wrong)+tooShort+early > 0 {
		return console.Exit(console.ExitProblem,
			errors.New("the crawler did not behave as a correct one does, see above"))
	}
	return nil
}

// writeHosts writes a row for each host that got requests, and returns the number of gaps that were
// too short.
func (r *demoReport) writeHosts(b *strings.Builder) (tooShort int) {
	rows := [][]string{{"host", "robots", "2xx", "3xx", "4xx", "5xx", "broken", "least gap", "delay in force"}}
	for _, host := range r.log.Hosts() {
		log := r.log.Host(host)
		cells := []string{host, dash(len(log) - len(log.Pages()))}
		for _, n := range byClass(log.Pages()) {
			cells = append(cells, dash(n))
		}
		gaps, short := gapCells(log, r.config.Politeness.Delay, r.facts.CrawlDelay[host])
		rows, tooShort = append(rows, append(cells, gaps...)), tooShort+short
	}
	console.WriteTable(b, rows)
	return tooShort
}

// byClass counts the responses with 2xx, 3xx, 4xx, 5xx, and those that broke off.
func byClass(log testweb.Log) (n [5]int) {
	for _, q := range log {
		if class := q.Status/100 - 2; q.Status != 0 && class >= 0 && class < 4 {
			n[class]++
		} else {
			n[4]++
		}
	}
	return n
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// gapCells returns the cells of a host for the least gap between its requests and for the delay in force,
// and the number of gaps that were shorter.
func gapCells(log testweb.Log, delay, crawlDelay time.Duration) (cells []string, tooShort int) {
	why := ""
	if crawlDelay > delay {
		delay, why = crawlDelay, ", its Crawl-delay"
	}
	if tooShort = len(log.ShortGaps(delay)); tooShort > 0 {
		why += ": TOO SHORT " + console.Plural(tooShort, "time")
	}
	return []string{leastGap(log), delay.String() + why}, tooShort
}

func leastGap(log testweb.Log) string {
	gaps := log.Gaps()
	if len(gaps) == 0 {
		return "-"
	}
	least := gaps[0].Length
	for _, g := range gaps {
		least = min(least, g.Length)
	}
	return least.Truncate(100 * time.Microsecond).String() // rounded up it might look long enough
}

// writeVerdict says whether the crawler behaved correctly.
func writeVerdict(b *strings.Builder, wrong []string, tooShort, early int) {
	yes := func(good bool) string {
		if good {
			return "yes"
		}
		return "NO"
	}
	b.WriteString("\n")
	console.WriteTable(b, [][]string{
		{"fetched exactly the pages that it should:", yes(len(wrong) == 0)},
		{"kept the delay of every host after each request:", yes(tooShort == 0)},
		{"fetched no page before its host's robots.txt:", yes(early == 0)},
	})
	for _, text := range wrong[:min(len(wrong), outcome.MaxPostponed)] {
		fmt.Fprintln(b, "    "+text)
	}
}

// writeNext says where the files are and what to try next.
func (r *demoReport) writeNext(b *strings.Builder) {
	info, _ := debug.ReadBuildInfo()
	amble, settings := commandOf(os.Args[0], info), " -c "+filepath.Join(r.dir, "config.yaml")
	b.WriteString("\nTry next:\n")
	console.WriteTable(b, [][]string{
		{amble + " status" + settings, "what the database knows"},
		{amble + " db check" + settings, "is it sound?"},
		{amble + " config show" + settings, "the settings of this crawl"},
		{"less " + filepath.Join(r.config.OutputDir(), "pages-000001.jsonl"), "the pages, one JSON object a line"},
		{"less " + filepath.Join(r.dir, "requests.jsonl"), "what the web saw"},
	})
	fmt.Fprintf(b, "All files are in %s, which can be deleted.\n", r.dir)
}

// commandOf returns the command that runs this program. go run deletes the executable at the end,
// so then it is go run again.
func commandOf(file string, info *debug.BuildInfo) string {
	dir := filepath.ToSlash(filepath.Dir(file))
	if info == nil || info.Path == "" || !strings.Contains(dir, "/go-build") || !strings.HasSuffix(dir, "/exe") {
		return file
	}
	if v := info.Main.Version; v != "" && v != "(devel)" && !strings.Contains(v, "+dirty") {
		return "go run " + info.Path + "@" + v
	}
	return "go run " + info.Path
}

// maxDenied is how many denied URLs the report lists, each of another host.
const maxDenied = 5

// writeDenied lists some URLs that robots.txt denied, each with the line that decided.
func (r *demoReport) writeDenied(b *strings.Builder) error {
	n := r.out.Since("denied")
	if n == 0 {
		return nil
	}
	store, err := storage.Open(r.config.DataDir, storage.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	rows, err := r.denied(store)
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	fmt.Fprintf(b, "%s not fetched, because robots.txt disallows it. Examples, each with the line that decides:\n",
		console.Were(n, "URL"))
	console.WriteTable(b, rows)
	return nil
}

func (r *demoReport) denied(store *storage.Store) (rows [][]string, err error) {
	listed := map[string]bool{}
	for _, never := range r.facts.Never {
		if listed[never.Host] || len(rows) == maxDenied {
			continue
		}
		u, err := weburl.Parse(r.web.URL(never.Host, never.Path))
		if err != nil {
			return nil, err
		}
		head, _, err := store.Lookup(u)
		if errors.Is(err, storage.ErrNotFound) || err == nil && head.Last.State != storage.Denied {
			continue
		}
		if err != nil {
			return nil, err
		}
		line, err := robotsLine(store, u.Origin(), int(head.Last.Line))
		if err != nil {
			return nil, err
		}
		listed[never.Host] = true
		rows = append(rows, []string{never.String(), line})
	}
	return rows, nil
}

// robotsLine returns a line of the stored robots.txt of an origin.
func robotsLine(store *storage.Store, origin weburl.Origin, line int) (string, error) {
	encoded, err := store.Policy(origin)
	if err != nil {
		return "", err
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return "", fmt.Errorf("robots.txt of %s: %w", origin, err)
	}
	return fmt.Sprintf("line %d: %s", line, console.Printable(strings.TrimSpace(robots.LineText(record.Body, line)))),
		nil
}
