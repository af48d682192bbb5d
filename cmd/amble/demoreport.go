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
	"github.com/amble-crawler/amble/internal/testweb"
)

// demoReport says what the demo did, by the record that its web kept.
type demoReport struct {
	config *config.Config
	dir    string
	out    outcome
	log    testweb.Log
	facts  testweb.Facts
	web    *testweb.Web
}

func (r *demoReport) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", happened(r.config, r.out))
	fmt.Fprintf(&b, "What the web itself saw, in %s. The least gap is the shortest time from the\nend of one request to the start of the next:\n",
		plural(len(r.log), "request"))
	tooShort := r.writeHosts(&b)
	b.WriteString("\n")
	if err := r.writeDenied(&b); err != nil {
		return exit(exitProblem, err)
	}
	var wrong []string
	early := len(r.log.BeforeRobots())
	if !r.out.Stopped {
		writePostponed(&b, r.out.Postponed, time.Now())
		wrong = r.facts.Check(r.log)
		writeVerdict(&b, wrong, tooShort, early)
	}
	r.writeNext(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if len(wrong)+tooShort+early > 0 {
		return exit(exitProblem, errors.New("the crawler did not behave as a correct one does, see above"))
	}
	return nil
}

// writeHosts writes a row for each host that was asked, and returns how many of their gaps were too short.
func (r *demoReport) writeHosts(b *strings.Builder) (tooShort int) {
	rows := [][]string{{"host", "robots", "2xx", "3xx", "4xx", "5xx", "broken", "least gap", "delay in force"}}
	for _, host := range r.log.Hosts() {
		log := r.log.Host(host)
		cells := []string{host, dash(len(log) - len(log.Pages()))}
		for _, n := range byClass(log.Pages()) {
			cells = append(cells, dash(n))
		}
		delay, why := r.config.Politeness.Delay, ""
		if asked := r.facts.CrawlDelay[host]; asked > delay {
			delay, why = asked, ", its Crawl-delay"
		}
		if short := len(log.ShortGaps(delay)); short > 0 {
			tooShort += short
			why += ": TOO SHORT " + plural(short, "time")
		}
		rows = append(rows, append(cells, leastGap(log), delay.String()+why))
	}
	writeTable(b, rows)
	return tooShort
}

// byClass counts the answers with 2xx, 3xx, 4xx, 5xx, and those that broke off.
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

// writeVerdict says whether the crawler did what a correct one does.
func writeVerdict(b *strings.Builder, wrong []string, tooShort, early int) {
	yes := func(good bool) string {
		if good {
			return "yes"
		}
		return "NO"
	}
	b.WriteString("\n")
	writeTable(b, [][]string{
		{"every page asked for that should be, and no other:", yes(len(wrong) == 0)},
		{"every host left alone for its delay after each request:", yes(tooShort == 0)},
		{"no page asked for before its host's robots.txt:", yes(early == 0)},
	})
	for _, text := range wrong[:min(len(wrong), maxPostponed)] {
		fmt.Fprintln(b, "    "+text)
	}
}

// writeNext says where everything lies and what to try next.
func (r *demoReport) writeNext(b *strings.Builder) {
	info, _ := debug.ReadBuildInfo()
	amble, settings := commandOf(os.Args[0], info), " -c "+filepath.Join(r.dir, "config.yaml")
	b.WriteString("\nTry next:\n")
	writeTable(b, [][]string{
		{amble + " status" + settings, "what the database knows"},
		{amble + " db check" + settings, "is it sound?"},
		{amble + " config show" + settings, "the settings of this crawl"},
		{"less " + filepath.Join(r.config.OutputDir(), "pages-000001.jsonl"), "the pages, one JSON object a line"},
		{"less " + filepath.Join(r.dir, "requests.jsonl"), "what the web saw"},
	})
	fmt.Fprintf(b, "All of it lies in %s, which can be deleted.\n", r.dir)
}

// commandOf is what to type for the program that runs as a file. go run deletes that file at the end, so there it is go run once more.
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
