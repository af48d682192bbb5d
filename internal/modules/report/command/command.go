//go:build !core

// Package command has the command amble report.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/modules/report"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/system"
)

// reportFlags are the flags of amble report.
type reportFlags struct {
	html, json, csv bool
	file, table     string
	limit           int
	referrers       int
	audit           bool
	now             func() time.Time
	parts           report.Parts
}

// New returns the command. load loads the crawl of the settings, and parts are what other modules add.
func New(load func() (*access.Crawl, error), now func() time.Time, parts report.Parts) *cobra.Command {
	f := reportFlags{now: now, parts: parts}
	command := &cobra.Command{
		Use:   "report",
		Short: "Say what the crawl came to: broken links, redirects, what was left out and why",
		Long: `Say what the crawl in data_dir came to, over all of its runs: what became of the seeds, the statuses,
types and bytes of the responses, broken links and redirects with the pages that link to them, what was left out of
which hosts and why, how many links the scope, the depth and the traps kept out, and what the request log proves of
politeness. Of a crawl with archive.requisites it says how many pages are complete: have all requisites stored, the
style sheets, scripts, images and fonts that they are made of; why the others are missing, and which pages miss most. A
running crawl answers over its API, a cluster for all of its nodes; otherwise the database is opened read-only.

The pages that link to a URL are in the output if output.format has links. Without it, the first page that had the
link is known. The text for a terminal shows the beginning of each list; --html, --json and --csv have --limit rows.
--csv writes one table: broken has a row for each link and page that has it. docs/REPORT.md describes the fields.

Tables: ` + strings.Join(report.Tables(), ", ") + `.

Exit code 0: done, whatever the report says. 1: there is no database, it cannot be used, or not all of a cluster
has answered: the report is that of the others. 2: wrong usage or settings. 3: another process has the database and no
API answers.`,
		Example: `  amble report
  amble report -o report.html
  amble report --csv > broken.csv
  amble report --table hosts -o left-out.csv
  amble report --json --referrers 0 --audit=false`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			format, err := f.format()
			if err != nil {
				return err
			}
			return f.run(command, load, format)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&f.html, "html", false, "write one HTML page, which needs nothing else")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.BoolVar(&f.csv, "csv", false, "print a table as CSV with a line of names")
	command.MarkFlagsMutuallyExclusive("html", "json", "csv")
	flags.StringVar(&f.table, "table", "", "the `table` for CSV; default: "+report.Tables()[0])
	flags.StringVarP(&f.file, "output", "o", "", "write to this `file`, as its name says: .html, .json, .csv or .txt; "+
		"default: standard output")
	flags.IntVar(&f.limit, "limit", 1000, "rows of each list, at most "+console.Grouped(report.MaxLimit))
	flags.IntVar(&f.referrers, "referrers", 100, "pages listed of each link; 0: the output is not read")
	flags.BoolVar(&f.audit, "audit", true, "check the request log, which takes time if it is long")
	console.Offer(command, "table", report.Tables())
	return command
}

// format returns the form to write, and checks the flags.
func (f *reportFlags) format() (string, error) {
	format := report.FormatText
	for flag, given := range map[string]bool{report.FormatHTML: f.html, report.FormatJSON: f.json,
		report.FormatCSV: f.csv} {
		if given {
			format = flag
		}
	}
	named, known := map[string]string{
		".html": report.FormatHTML, ".htm": report.FormatHTML, ".json": report.FormatJSON,
		".csv": report.FormatCSV, ".txt": report.FormatText,
	}[strings.ToLower(filepath.Ext(f.file))]
	isFile := f.file != "" && f.file != "-"
	switch {
	case isFile && known && format == report.FormatText:
		format = named
	case isFile && known && named != format:
		return "", console.Usagef("the name %s says another form than the flag: leave out the flag, or name "+
			"another file", f.file)
	case isFile && !known && format == report.FormatText:
		return "", console.Usagef("the name %s says no form: let it end in .html, .json, .csv or .txt", f.file)
	}
	if f.limit < 1 || f.limit > report.MaxLimit {
		return "", console.Usagef("--limit is %d, should be 1 to %d", f.limit, report.MaxLimit)
	}
	if f.referrers < 0 || f.referrers > report.MaxReferrers {
		return "", console.Usagef("--referrers is %d, should be 0 to %d", f.referrers, report.MaxReferrers)
	}
	if f.table != "" && format != report.FormatCSV {
		return "", console.Usagef("--table is for CSV: add --csv, or name a file that ends in .csv")
	}
	for _, name := range report.Tables() {
		if f.table == "" || f.table == name {
			f.table = name
			return format, nil
		}
	}
	return "", console.Usagef("%q is not a table (allowed: %s)", f.table, strings.Join(report.Tables(), ", "))
}

func (f *reportFlags) run(command *cobra.Command, load func() (*access.Crawl, error), format string) error {
	c, err := load()
	if err != nil {
		return err
	}
	var r *report.Summary
	err = c.Inspect(command.Context(), func(i access.Inspector) (err error) {
		if source, stored := i.(report.Source); stored {
			r, err = f.stored(command.Context(), c, source)
		} else {
			r, err = f.running(command.Context(), i.(*server.Client))
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := f.write(command, r, format); err != nil {
		return err
	}
	if r.Incomplete != nil {
		return console.Exit(console.ExitProblem, r.Incomplete)
	}
	return nil
}

// running has the running crawl report.
func (f *reportFlags) running(ctx context.Context, client *server.Client) (r *report.Summary, err error) {
	v := url.Values{"limit": {strconv.Itoa(f.limit)}, "referrers": {strconv.Itoa(f.referrers)},
		"audit": {strconv.FormatBool(f.audit)}}
	_, err = server.EachLine(ctx, client, server.BasePath+report.Path, v, func(got *report.Summary) error {
		r = got
		return nil
	})
	if err == nil && r == nil {
		err = errors.New("the running crawl has sent no report")
	}
	return r, err
}

// stored makes the report of a crawl that does not run.
func (f *reportFlags) stored(ctx context.Context, c *access.Crawl, source report.Source) (*report.Summary, error) {
	o := report.Options{Limit: f.limit, Referrers: f.referrers, HostPages: uint32(c.Limits.HostPages), Now: f.now()}
	r, err := report.Make(ctx, source, "not running", false, o)
	if err != nil {
		return nil, err
	}
	if f.referrers > 0 {
		options, err := c.CrawlOptions(c.Version)
		if err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
		same := report.NewSame(options.URLs, options.SessionNames)
		found, err := report.Scan(ctx, []string{c.OutputDir()}, r.Wants(o), same)
		if err != nil {
			return nil, err
		}
		r.Complete(o, found)
	}
	r.Parts, err = f.parts.Stored(ctx, c, f.audit)
	return r, err
}

// write writes the report to the file or to standard output. A file is complete, or it is not there.
func (f *reportFlags) write(command *cobra.Command, r *report.Summary, format string) error {
	if f.file == "" || f.file == "-" {
		return r.Write(rawUnlessText(command.OutOrStdout(), format), format, f.table)
	}
	var text bytes.Buffer
	err := r.Write(&text, format, f.table)
	if err == nil {
		err = system.ReplaceFile(f.file, text.Bytes(), 0o640, func() error { return nil })
	}
	if err != nil {
		return console.Exit(console.ExitProblem, fmt.Errorf("write the report to %s: %w", f.file, err))
	}
	_, err = fmt.Fprintf(command.ErrOrStderr(), "%s: %s, %s\n", f.file, console.Plural(r.Broken.Total, "broken link"),
		console.Plural(r.Redirects.Total, "redirect"))
	return err
}

// rawUnlessText returns the output as it is for a form that programs read.
func rawUnlessText(w io.Writer, format string) io.Writer {
	if format == report.FormatText {
		return w
	}
	return console.RawOutput(w)
}
