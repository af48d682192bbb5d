package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/audit"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/internal/weburl"
)

// auditFlags are those of amble audit.
type auditFlags struct {
	host, url, since        string
	limit                   int
	requests, asJSON, lines bool
}

func newAuditCommand(settings *settingsFlags) *cobra.Command {
	f := auditFlags{}
	command := &cobra.Command{
		Use:   "audit",
		Short: "Prove from the request log how polite the crawl was",
		Long: `Read the log of all requests in data_dir and hold each of them against what was in force: the delay since the request to the
host before, Retry-After, and the robots.txt, whose rules are asked again. Print for each host the smallest gap, the robots.txt versions
that allowed its pages, and every violation.

--host tells about one host only. --url answers "why did you fetch this, and how fast?": each request for the URL with the line of the
robots.txt that allowed it. --requests lists the requests themselves. --since takes a duration (24h: of the last day), a date, or a time such as
2026-11-20T13:00:00Z.

It works beside the running crawl and without it. docs/AUDIT.md says what it proves and what it cannot.

Exit code 0: no violation. 1: there is one, or there is no log, or a part of it cannot be read. 2: wrong usage or
settings.`,
		Example: `  amble audit
  amble audit --host www.example.com --since 24h
  amble audit --url https://www.example.com/page
  amble audit --host www.example.com --requests --jsonl`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			o, err := f.options(time.Now())
			if err != nil {
				return usagef("%w", err)
			}
			c, err := settings.load()
			if err != nil {
				return err
			}
			return f.run(command, c, o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.host, "host", "", "only this `host`")
	flags.StringVar(&f.url, "url", "", "the story of each request for this `URL`")
	flags.StringVar(&f.since, "since", "", "only requests since this `time`, or of the last duration")
	flags.IntVar(&f.limit, "limit", 50, "list at most so many hosts; 0: all")
	flags.BoolVar(&f.requests, "requests", false, "list the requests")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	flags.BoolVar(&f.lines, "jsonl", false, "print the requests, one JSON object a line")
	command.MarkFlagsMutuallyExclusive("json", "jsonl")
	command.MarkFlagsMutuallyExclusive("json", "requests")
	command.MarkFlagsMutuallyExclusive("json", "url")
	command.MarkFlagsMutuallyExclusive("host", "url")
	offerHosts(command, settings)
	return command
}

// options reads the flags.
func (f *auditFlags) options(now time.Time) (o audit.Options, err error) {
	if f.limit < 0 {
		return o, fmt.Errorf("the limit is %d, should be 0 or more", f.limit)
	}
	if o.Since, err = parseSince(f.since, now); err != nil {
		return o, err
	}
	o.Host = f.host
	if f.url != "" {
		u, err := weburl.Parse(f.url)
		if err != nil {
			return o, err
		}
		f.url, o.Host = u.String(), u.Host()
	}
	return o, nil
}

// parseSince reads a duration before now, a day, or a time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--since %q is neither a duration such as 24h, nor a date such as 2026-11-20, nor a time such as 2026-11-20T13:00:00Z", text)
}

func (f *auditFlags) run(command *cobra.Command, c *config.Config, o audit.Options) error {
	dir := filepath.Join(c.DataDir, requestlog.DirName)
	out := bufio.NewWriter(command.OutOrStdout())
	end := f.list(out, &o)
	o.Robots = c.RobotsOptions()
	report, err := audit.Run(command.Context(), dir, o)
	if err = errors.Join(err, end()); err != nil {
		return errors.Join(err, out.Flush())
	}
	switch {
	case report.Requests == 0 && len(report.Damaged) == 0:
		err = noRequests(dir, c, o)
	case f.lines:
	case f.asJSON:
		err = printAuditJSON(out, report)
	default:
		err = f.print(out, report)
	}
	if err = errors.Join(err, out.Flush()); err == nil {
		err = auditProblem(report)
	}
	return err
}

// auditProblem is the error of an audit that proves less than that the crawl was polite; nil: it
// proves that.
func auditProblem(r *audit.Report) error {
	var problems []string
	if n := r.Counts.Violations; n > 0 {
		problems = append(problems, plural(n, "violation"))
	}
	if n := len(r.Damaged); n > 0 {
		text := "part of the request log cannot be read, and nothing is proven about it: " + damageText(&r.Damaged[0])
		if n > 1 {
			text += fmt.Sprintf("; and %s", plural(n-1, "other part"))
		}
		problems = append(problems, text)
	}
	if problems == nil {
		return nil
	}
	return exit(exitProblem, errors.New(strings.Join(problems, "; ")))
}

// list makes the audit print the requests that are asked for, and returns what ends that.
func (f *auditFlags) list(out io.Writer, o *audit.Options) (end func() error) {
	end = func() error { return nil }
	if !f.requests && !f.lines && f.url == "" {
		return end
	}
	lines := inspect.NewLines(out)
	write := func(l *audit.Line) error { return lines.Write(l) }
	switch {
	case f.lines:
	case f.requests:
		t := newTable(out, "TIME", "KIND", "ANSWER", "GAP", "DELAY", "WHY", "ALLOWED BY", "URL")
		write = func(l *audit.Line) error { return t.row(requestCells(l)...) }
		end = t.flush
	default:
		now := time.Now()
		write = func(l *audit.Line) error { return printRequest(out, l, now) }
	}
	o.Each = func(q *requestlog.Request, found *audit.Finding) error {
		if f.url != "" && q.URL.String() != f.url {
			return nil
		}
		l := audit.NewLine(q, found)
		return write(&l)
	}
	return end
}

// noRequests says why there is nothing to audit.
func noRequests(dir string, c *config.Config, o audit.Options) error {
	switch {
	case c.Audit.MaxSize == 0:
		return exit(exitProblem, fmt.Errorf("no log is kept: audit.max_size is 0 (%s)", c.Source("audit.max_size")))
	case o.Host != "" || !o.Since.IsZero():
		return exit(exitProblem, fmt.Errorf("the request log in %s has no such request", dir))
	}
	return exit(exitProblem, fmt.Errorf("there is no request in %s: nothing was crawled with this data_dir yet", dir))
}

// printAuditJSON writes one object and holds one host.
func printAuditJSON(w io.Writer, r *audit.Report) error {
	report, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `%s,"hosts":[`, report[:len(report)-1]); err != nil {
		return err
	}
	lines := inspect.NewLines(w)
	for i, h := range r.Hosts() {
		if i > 0 {
			if _, err := io.WriteString(w, ","); err != nil {
				return err
			}
		}
		if err := lines.Write(h); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}
