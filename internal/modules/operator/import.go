//go:build !core

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/output/urllist"
)

func newImportCommand(settings *Program) *cobra.Command {
	asJSON, again, format := false, false, ""
	command := &cobra.Command{
		Use:   "import FILE... | -",
		Short: "Add URLs to the frontier, from lists of any length",
		Long: `Add the URLs of one or more lists to the crawl in data_dir; - is standard input. A list has one
URL a line, or one JSON object a line with "url" and optionally "depth" (links from a seed) and "priority"
(-128 to 127, higher ones first), such as the lines of amble export. A # begins a comment. Lists compressed
with gzip or zstd are detected by their content.

A running crawl receives the URLs over its API. Otherwise they are added to the database, which is created if
there is none. Known URLs are left unchanged; with --again those that failed, were denied or excluded are put
back into their queues. URLs outside the scope of the seeds are counted and left out; scope.mode=any takes
all.

With --format urlfrontier the JSON lines are those that the client of URLFrontier writes with DumpURLs, of one
crawl. Creation dates and metadata are kept. A known URL is fetched at its date, or never again if it has none,
also if it was known here before. The keys of queues are not kept: a queue is that of a host. No crawl may run in
data_dir meanwhile.

When the command ends, all URLs counted as added are on disk. While a running crawl is stalled because there
is no room, the command waits and says so; Ctrl-C ends it with what was added until then.

Exit code 0: done. 1: some lines are bad, a list cannot be read to its end, or the database cannot be used. 2:
wrong usage or settings. 3: another process has the database and no API answers.`,
		Example: `  amble import urls.txt
  amble import --set scope.mode=any urls.jsonl.zst more.txt.gz
  sort -u urls.txt | amble import -
  amble import --again failed.txt
  amble import --format urlfrontier --set scope.mode=any dump.jsonl.gz`,
		Args: func(command *cobra.Command, files []string) error {
			if len(files) == 0 {
				return console.Usagef("name the lists to import, or - for standard input")
			}
			if again && format != "" {
				return console.Usagef(
					"--again has no meaning with --format: the date of a known URL says when it is fetched")
			}
			return settings.checkFormat(format)
		},
		RunE: func(command *cobra.Command, files []string) error {
			c, err := settings.Crawl()
			if err != nil {
				return err
			}
			for _, name := range files {
				if _, err := os.Stat(name); name != "-" && err != nil {
					return console.Exit(console.ExitUsage, err)
				}
			}
			ctx, stop := console.UntilInterrupted(command.Context())
			defer stop()
			to, err := c.Adder(ctx, again, format != "", newWaitNotice(command.ErrOrStderr()))
			if err != nil {
				return err
			}
			i := importing{command: command, ctx: ctx, to: to, again: again}
			if f, known := settings.formatOf(format); known {
				i.items = f.Read()
			}
			err = i.files(files)
			i.sum.Added = to.Sum()
			return errors.Join(i.ended(err, asJSON), to.Close())
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print the counts as one JSON object")
	command.Flags().BoolVar(&again, "again", false, "put known URLs that failed, were denied or excluded back into "+
		"their queues")
	command.Flags().StringVar(&format, "format", "", "the `format` of JSON lines: "+either(settings.formats())+
		"; default: amble's own")
	console.Offer(command, "format", settings.formats())
	return command
}

// newWaitNotice returns a function that reports why a running crawl adds nothing at the moment,
// once for each reason.
func newWaitNotice(w io.Writer) func(reason string) {
	reported := ""
	return func(reason string) {
		if reason != reported {
			reported = reason
			fmt.Fprintf(w, "waiting: the crawl is stalled, and adds URLs when there is room again: %s\n",
				console.Printable(reason))
		}
	}
}

// importing is an import under way.
type importing struct {
	command *cobra.Command
	ctx     context.Context
	to      access.Adder
	again   bool
	items   LineReader // reads the JSON lines; nil: they are amble's own
	refused bool       // the crawl or the database takes no more
	sum     imported
}

// imported are its counts.
type imported struct {
	Lines int `json:"lines"`
	crawl.Added
	Bad int `json:"bad"`
}

// maxBadShown is how many bad lines are printed.
const maxBadShown = 20

// files adds the lists. If one cannot be read on, what was read of it is added all the same.
func (i *importing) files(names []string) error {
	var err error
	for _, name := range names {
		if err = i.file(name); err != nil {
			break
		}
	}
	if i.refused {
		return err
	}
	return errors.Join(err, i.to.Finish())
}

func (i *importing) file(name string) error {
	if name == "-" {
		return i.list("standard input", console.NewUntilDone(i.ctx, i.command.InOrStdin()))
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(i.list(name, file), file.Close())
}

func (i *importing) list(name string, r io.Reader) error {
	list, err := urllist.NewReader(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer list.Close()
	if i.items != nil {
		list.Objects = i.items.Parse
	}
	before := i.sum.Lines
	for {
		if i.items != nil {
			i.items.Imported() // of a line that was bad
		}
		item, err := list.Next()
		i.sum.Lines = before + list.Lines()
		var bad *urllist.BadLine
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &bad):
			i.complain(name, bad)
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		a := crawl.Addition{URL: item.URL, Depth: item.Depth, Priority: item.Priority, Again: i.again}
		if i.items != nil {
			a.Put = i.items.Imported()
		}
		if err := i.to.Add(a); err != nil {
			i.refused = true
			return err
		}
	}
}

func (i *importing) complain(name string, bad *urllist.BadLine) {
	i.sum.Bad++
	if i.sum.Bad <= maxBadShown {
		i.command.PrintErrf("bad line: %s:%d: read %q; %s\n", name, bad.Line, bad.Text, bad.Reason)
	}
}

// ended prints the counts, also after an early end.
func (i *importing) ended(err error, asJSON bool) error {
	s := &i.sum
	if more := s.Bad - maxBadShown; more > 0 {
		i.command.PrintErrf("and %s\n", console.Plural(more, "more bad line"))
	}
	if s.Outside > 0 {
		i.command.PrintErrf("%s outside the scope and left out; add seeds of their sites, or set scope.mode to "+
			"domain or any\n", console.Are(s.Outside, "URL"))
	}
	if s.OptedOut > 0 {
		i.command.PrintErrf("%s covered by opt-outs and left out; amble optout list lists these\n",
			console.Are(s.OptedOut, "URL"))
	}
	out := i.command.OutOrStdout()
	if asJSON {
		err = errors.Join(err, console.WriteJSON(out, s))
	} else {
		back := ""
		if i.again {
			back = console.Grouped(s.Again) + " put back, "
		}
		_, printing := fmt.Fprintf(out, "%s: %s added, %s%s known, %s outside the scope, %s refused, %s bad\n",
			console.Plural(s.Lines, "line"), console.Grouped(s.Added.Added), back, console.Grouped(s.Known),
			console.Grouped(s.Outside),
			console.Grouped(s.Refused), console.Grouped(s.Bad))
		err = errors.Join(err, printing)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return console.Exit(console.ExitProblem,
			errors.New("the import was interrupted. What is counted as added is safe; more may "+
				"have been added, and the same lists may be imported again"))
	case err != nil:
		return console.Exit(console.ExitProblem,
			fmt.Errorf("the import ended early: %w. What is counted as added is safe, and the "+
				"same lists may be imported again", err))
	case s.Bad > 0:
		return console.Exit(console.ExitProblem, nil)
	}
	return nil
}
