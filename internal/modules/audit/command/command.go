//go:build !core

// Package command is amble audit on the command line.
package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/console/arguments"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/modules/audit"
	"github.com/amble-crawler/amble/internal/modules/audit/auditapi"
	"github.com/amble-crawler/amble/internal/modules/audit/auditreport"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Program is what the command needs of the program.
type Program struct {
	Crawl    func() (*access.Crawl, error) // that of the settings
	KeysDir  string                        // the keys of the identity, in the data directory
	Complete cobra.CompletionFunc          // names of hosts
	Now      func() time.Time
}

// auditCommand is the command with its flags.
type auditCommand struct {
	Program
	host, url, since        string
	limit                   int
	requests, asJSON, lines bool
	proofs                  proofs
}

// New returns amble audit.
func New(p Program) *cobra.Command {
	f := auditCommand{Program: p}
	command := &cobra.Command{
		Use:   "audit [DIR...]",
		Short: "Prove from the request log how polite the crawl was",
		Long: `Read the log of all requests in data_dir and check each of them against what was in force: the
delay since the previous request to the host, Retry-After, and the rules of robots.txt, which are matched
again. Print for each host the smallest gap, the robots.txt versions that allowed its pages, and every
violation.

--host reports one host only. --url answers "why did you fetch this, and how fast?": each request for the URL
with the line of the robots.txt that allowed it. --requests lists the requests themselves. --since takes a
duration (24h: the last day), a date, or a time such as 2026-11-20T13:00:00Z.

--verify proves that the log is as the hourly receipts say that were signed with the key of the identity, and names
what was changed, dropped or added. --against compares the log with the access log of the site --host, in the common
or combined format, and lists what one of them has alone.

It works with or without a running crawl. On a node of a cluster it reads the requests of this node, for all
shards that it has ever had. To judge those of all nodes together, name the data_dir of each, or a copy of its
request logs (shards/*/requests): then the time between the requests of two nodes to a host is judged too, by
the clocks of their machines. docs/AUDIT.md says what it proves and what it cannot.

Exit code 0: no violation. 1: there are violations, there is no log, or a part of it cannot be read. 2: wrong
usage or settings.`,
		Example: `  amble audit
  amble audit --host www.example.com --since 24h
  amble audit --url https://www.example.com/page
  amble audit --host www.example.com --requests --jsonl
  amble audit --host www.example.com --against access.log
  amble audit --verify
  amble audit /copies/machine1 /copies/machine2 /copies/machine3`,
		RunE: func(command *cobra.Command, dirs []string) error {
			o, err := f.options(p.Now())
			if err != nil {
				return console.Usagef("%w", err)
			}
			c, err := p.Crawl()
			if err != nil {
				return err
			}
			if f.proofs.wanted() {
				return f.prove(command.OutOrStdout(), c, dirs)
			}
			return f.run(command, c, dirs, o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.host, "host", "", "only requests to this `host`")
	flags.StringVar(&f.url, "url", "", "explain each request for this `URL`")
	flags.StringVar(&f.since, "since", "", "only requests since this `time`, or within the last duration")
	flags.IntVar(&f.limit, "limit", 50, "list at most this many hosts; 0: all")
	flags.BoolVar(&f.requests, "requests", false, "list the requests")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	flags.BoolVar(&f.lines, "jsonl", false, "print the requests, one JSON object a line")
	command.MarkFlagsMutuallyExclusive("json", "jsonl")
	command.MarkFlagsMutuallyExclusive("json", "requests")
	command.MarkFlagsMutuallyExclusive("json", "url")
	command.MarkFlagsMutuallyExclusive("host", "url")
	f.proofs.addFlags(command)
	console.Complete(command, "host", p.Complete)
	return command
}

// options parses the flags.
func (f *auditCommand) options(now time.Time) (o audit.Options, err error) {
	if f.limit < 0 {
		return o, fmt.Errorf("the limit is %d, should be 0 or more", f.limit)
	}
	if o.Since, err = arguments.ParseSince(f.since, now); err != nil {
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

func (f *auditCommand) run(command *cobra.Command, c *access.Crawl, dirs []string, o audit.Options) error {
	ofNode := len(dirs) == 0 && c.InCluster()
	if len(dirs) == 0 {
		dirs = []string{c.DataDir}
	}
	logs, err := audit.Logs(dirs)
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	out := bufio.NewWriter(command.OutOrStdout())
	end := f.list(out, &o)
	o.Robots = c.RobotsOptions()
	list, err := c.OptOuts(command.Context())
	if o.OptOuts = auditapi.List(list); err != nil {
		command.PrintErrf("warning: the requests are not checked against opt-outs: %v\n", err)
	}
	report, err := audit.Run(command.Context(), logs, o)
	if err = errors.Join(err, end()); err != nil {
		return errors.Join(err, out.Flush())
	}
	switch {
	case report.Requests == 0 && len(report.Damaged) == 0:
		err = auditreport.NoRequests(c.Config, dirs, o)
	case f.lines:
	case f.asJSON:
		err = report.WriteJSON(out)
	default:
		err = f.print(out, report)
	}
	if err = errors.Join(err, out.Flush()); err == nil {
		err = auditreport.Problem(report)
	}
	if ofNode {
		command.PrintErrln("these are the requests of this node; amble audit with the data directories of all nodes " +
			"judges them together")
	}
	return err
}

// list makes the audit print the selected requests. The returned function completes the list.
func (f *auditCommand) list(out io.Writer, o *audit.Options) (end func() error) {
	end = func() error { return nil }
	if !f.requests && !f.lines && f.url == "" {
		return end
	}
	lines := inspect.NewLines(out)
	write := func(l *audit.Line) error { return lines.Write(l) }
	switch {
	case f.lines:
	case f.requests:
		t := console.NewTable(out, "TIME", "KIND", "ANSWER", "GAP", "DELAY", "WHY", "ALLOWED BY", "URL")
		write = func(l *audit.Line) error { return t.Row(auditreport.RequestCells(l)...) }
		end = t.Flush
	default:
		write = func(l *audit.Line) error { return printRequest(out, l) }
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

// print writes the report as text.
func (f *auditCommand) print(w io.Writer, r *audit.Report) error {
	hosts := r.Hosts()
	if f.host != "" || f.url != "" {
		for _, h := range hosts {
			if _, err := io.WriteString(w, hostAudit(h)); err != nil {
				return err
			}
		}
	} else if err := f.printHosts(w, hosts); err != nil {
		return err
	}
	_, err := io.WriteString(w, auditreport.Violations(r)+auditreport.Conclusion(r, len(hosts)))
	return err
}

func (f *auditCommand) printHosts(w io.Writer, hosts []*audit.Host) error {
	t := console.NewTable(w, "HOST", "REQUESTS", "PAGES", "SMALLEST GAP", "DELAY", "ROBOTS.TXT", "VIOLATIONS")
	shown := len(hosts)
	if f.limit > 0 {
		shown = min(shown, f.limit)
	}
	for _, h := range hosts[:shown] {
		gap, delay := "-", "-"
		if g := h.Smallest; g != nil {
			gap, delay = auditreport.GapText(g.Seconds), auditreport.GapText(g.Delay)+" "+g.Reason
		}
		err := t.Row(h.Host, console.Grouped(h.Requests), console.Grouped(h.Pages), gap, delay,
			console.Plural(len(h.Versions)+h.Older, "version"), console.Grouped(h.Counts.Violations))
		if err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil || shown == len(hosts) {
		return err
	}
	_, err := fmt.Fprintf(w, "%s of %s hosts; --limit 0 shows all\n", console.Grouped(shown),
		console.Grouped(len(hosts)))
	return err
}
