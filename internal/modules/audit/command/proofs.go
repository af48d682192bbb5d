//go:build !core

package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/modules/audit"
	"github.com/amble-crawler/amble/internal/modules/audit/accesslog"
	"github.com/amble-crawler/amble/internal/modules/audit/receipts"
)

// proofs are the flags of what amble audit does besides judging the requests.
type proofs struct {
	verify         bool
	keys, receipts string
	against        string
	skew           time.Duration
}

// defaultSkew is by how much the clock of a site may differ.
const defaultSkew = 5 * time.Second

// addFlags adds the flags to amble audit.
func (p *proofs) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&p.against, "against", "", "compare with this access log of the site --host: a `file`")
	flags.DurationVar(&p.skew, "skew", defaultSkew, "with --against: by which `time` its clock may differ")
	flags.BoolVar(&p.verify, "verify", false, "verify the receipts of the log")
	flags.StringVar(&p.keys, "keys", "", "with --verify: `file` or directory of public keys")
	flags.StringVar(&p.receipts, "receipts", "", "with --verify: `file` with receipts that a site has kept")
	command.MarkFlagsMutuallyExclusive("verify", "against")
	command.MarkFlagsMutuallyExclusive("verify", "host")
	for _, other := range []string{"url", "requests", "json", "jsonl", "since"} {
		command.MarkFlagsMutuallyExclusive("verify", other)
		command.MarkFlagsMutuallyExclusive("against", other)
	}
}

// wanted reports whether one of the flags is set.
func (p *proofs) wanted() bool { return p.verify || p.against != "" }

// prove does what the flags of the proofs say.
func (f *auditCommand) prove(w io.Writer, c *access.Crawl, dirs []string) error {
	if len(dirs) == 0 {
		dirs = []string{c.DataDir}
	}
	p := &f.proofs
	switch {
	case p.verify:
		return verify(w, dirs, cmp.Or(p.keys, filepath.Join(c.DataDir, f.KeysDir)), p.receipts, f.Now())
	case f.host == "":
		return console.Usagef("--against needs --host: the name of the site whose access log it is")
	}
	return against(w, dirs, p.against,
		accesslog.Options{Host: f.host, Product: c.Robots.ProductToken, Skew: p.skew})
}

// verify verifies the receipts of all request logs below data directories, and prints what they prove. keys is a file
// or directory with public keys; saved a file with heads that somebody has kept, or empty.
func verify(w io.Writer, dirs []string, keys, saved string, now time.Time) error {
	logs, err := audit.Logs(dirs)
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	public, err := receipts.ReadKeys(keys)
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	if len(public) == 0 {
		return console.Exit(console.ExitProblem, fmt.Errorf("there is no public key in %s: name the key directory of "+
			"the crawler with --keys", keys))
	}
	problems := 0
	for _, group := range logs {
		for _, dir := range group {
			r, err := receipts.Verify(dir, public, saved, now)
			if err != nil {
				return console.Exit(console.ExitProblem, err)
			}
			if r.Heads == 0 {
				r.Findings = append(r.Findings, receipts.Finding{Text: "no receipt was ever signed in " + dir})
			}
			problems += len(r.Findings)
			if err := printReceipts(w, dir, r); err != nil {
				return err
			}
		}
	}
	if problems > 0 {
		return console.Exit(console.ExitProblem, fmt.Errorf("%s: the request log is not what was signed",
			console.Plural(problems, "finding")))
	}
	return nil
}

func printReceipts(w io.Writer, dir string, r *receipts.Report) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s\n", console.Printable(f.Text))
	}
	if r.Heads > 0 {
		fmt.Fprintf(&b, "%s: %s from %s to %s; %s as signed, %s not signed yet, %s deleted by audit.keep or "+
			"audit.max_size\n", console.Printable(dir), console.Plural(r.Heads, "receipt"),
			r.First.Format(time.RFC3339), r.Last.Format(time.RFC3339), console.Size(uint64(r.Bytes)),
			console.Size(uint64(r.Unsigned)), console.Plural(r.Deleted, "file"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shownDifferences bounds the differences that are printed.
const shownDifferences = 100

// against compares an access log with the request logs below data directories, and prints the differences.
func against(w io.Writer, dirs []string, name string, o accesslog.Options) error {
	logs, err := audit.Logs(dirs)
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	f, err := os.Open(name)
	if err != nil {
		return console.Exit(console.ExitProblem, fmt.Errorf("the access log: %w", err))
	}
	defer f.Close()
	m, err := accesslog.Read(f, o)
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	for _, group := range logs {
		_, err := requestlog.ReadMerged(group, requestlog.Query{}, func(_ int, q *requestlog.Request) error {
			m.Add(q)
			return nil
		})
		if err != nil {
			return console.Exit(console.ExitProblem, err)
		}
	}
	return printDifferences(w, m.Report())
}

func printDifferences(w io.Writer, r *accesslog.Report) error {
	var b strings.Builder
	for i, d := range r.Unknown {
		if i < shownDifferences {
			fmt.Fprintf(&b, "line %d, %s, %d %s: the request log has no such request\n", d.Line,
				d.At.Format(time.RFC3339), d.Status, console.Printable(d.Target))
		}
	}
	for i, d := range r.Missing {
		if i < shownDifferences {
			fmt.Fprintf(&b, "request of %s, %d %s: the access log has no such line\n", d.At.Format(time.RFC3339),
				d.Status, console.Printable(d.Target))
		}
	}
	fmt.Fprintf(&b, "%s of the access log, %s not understood; %s belong together, %s only in the access log, %s only "+
		"in the request log, %s that a crash cut off or that failed\n", console.Plural(r.Lines, "line"),
		console.Grouped(r.Unread), console.Plural(r.Matched, "request"), console.Grouped(len(r.Unknown)),
		console.Grouped(len(r.Missing)), console.Grouped(r.Uncertain))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if n := len(r.Unknown) + len(r.Missing); n > 0 {
		return console.Exit(console.ExitProblem, fmt.Errorf("%s between the logs", console.Plural(n, "difference")))
	}
	return nil
}
