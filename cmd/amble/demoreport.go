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
	"github.com/amble-crawler/amble/internal/testing/crawlcheck"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// demoReport describes what the demo did, according to the record of its web.
type demoReport struct {
	config *config.Config
	dir    string
	out    outcome.Outcome
	judged *crawlcheck.Report
	lab    *crawlcheck.Lab
}

func (r *demoReport) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", outcome.Happened(&r.out))
	if err := r.writeDenied(&b); err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	if !r.out.Stopped() {
		outcome.WritePostponed(&b, r.out.Postponed, time.Now())
	}
	broken := writeJudgement(&b, r.judged)
	r.writeNext(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return broken
}

// writeJudgement writes what the web saw, a row for each group of rules. It returns an error if the crawler broke one.
func writeJudgement(b *strings.Builder, judged *crawlcheck.Report) error {
	fmt.Fprintf(b, "\nWhat the web itself saw, in %s. The least gap is the shortest time from the\nend of one "+
		"request to the start of the next one to the same host:\n", console.Plural(int(judged.Requests), "request"))
	rows, problems := [][]string{{"rules of", "hold", "broken", "not shown", "least gap"}}, [][]string(nil)
	for rest := judged.Results; len(rest) > 0; {
		group, counts, least := rest[0].Group, map[crawlcheck.Verdict]int{}, 0.0
		for ; len(rest) > 0 && rest[0].Group == group; rest = rest[1:] {
			s := rest[0]
			if counts[s.Verdict]++; s.Verdict == crawlcheck.Broken || s.Verdict == crawlcheck.NotShown {
				problems = append(problems, []string{s.Station, string(s.Verdict), console.Printable(s.Why)})
			}
			if s.LeastGap != 0 && (least == 0 || s.LeastGap < least) {
				least = s.LeastGap
			}
		}
		if len(counts) == 1 && counts[crawlcheck.NotRun] > 0 { // nothing of it was run
			continue
		}
		rows = append(rows, []string{group, dash(counts[crawlcheck.Holds]), dash(counts[crawlcheck.Broken]),
			dash(counts[crawlcheck.NotShown]), leastGap(least)})
	}
	console.WriteTable(b, rows)
	console.WriteTable(b, problems)
	broken := judged.Counts[crawlcheck.Broken]
	fmt.Fprintf(b, "\nOf the rules of good manners, %d hold and %d are broken. report.html has each of them.\n",
		judged.Counts[crawlcheck.Holds], broken)
	if broken > 0 {
		return console.Exit(console.ExitProblem, fmt.Errorf("the crawler broke %s, see above",
			console.Plural(broken, "rule")))
	}
	return nil
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// leastGap writes a gap. Rounded up it might look long enough.
func leastGap(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return time.Duration(seconds * float64(time.Second)).Truncate(100 * time.Microsecond).String()
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
		{"xdg-open " + filepath.Join(r.dir, "report.html"), "each rule, with the requests that show it"},
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
	for _, closed := range r.lab.Closed() {
		u, err := weburl.Parse(closed)
		if err != nil {
			return nil, err
		}
		if listed[u.Host()] || len(rows) == maxDenied {
			continue
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
		listed[u.Host()] = true
		rows = append(rows, []string{u.Host() + u.RequestURI(), line})
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
