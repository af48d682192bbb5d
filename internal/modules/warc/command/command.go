//go:build !core

// Package command is amble archive on the command line.
package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/completeness"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Program is what the commands need of the program.
type Program struct {
	Load    func() (*config.Config, error) // the settings
	CrawlOf func(*config.Config) *access.Crawl
	Version string
	Now     func() time.Time
}

// Commands returns the commands of amble archive.
func (p Program) Commands() []*cobra.Command {
	return []*cobra.Command{p.getCommand(), p.listCommand(), p.verifyCommand(), p.waczCommand(),
		p.mirrorCommand(), p.replayCommand(), p.manifestCommand()}
}

// Open opens the output directory of the settings.
func (p Program) Open() (*warcfiles.Collection, string, error) {
	c, err := p.Load()
	if err != nil {
		return nil, "", err
	}
	return p.open(c)
}

func (p Program) open(c *config.Config) (*warcfiles.Collection, string, error) {
	dir := c.OutputDir()
	collection, err := warcfiles.OpenCollection(dir, c.ArchiveOptions(p.Version).Known)
	if errors.Is(err, fs.ErrNotExist) {
		err = console.Exit(console.ExitProblem,
			fmt.Errorf("there is no output in %s yet; output.dir says where it is", dir))
	}
	return collection, dir, err
}

func (p Program) listCommand() *cobra.Command {
	var lines bool
	command := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the output files, or the stored responses of a site",
		Long: `List the output files with their sizes, and the number and time range of the responses in each
WARC file. With the beginning of a URL, list the responses stored for the URLs with that prefix, file by file.
A prefix without a scheme matches http and https.

Exit code 0: done. 1: there is no output, it cannot be read, or nothing is stored under the prefix. 2: wrong
usage or settings.`,
		Example: `  amble archive ls
  amble archive ls https://example.com/docs/
  amble archive ls example.com/ --jsonl`,
		Args: console.AtMostOne("prefix"),
		RunE: func(command *cobra.Command, prefixes []string) error {
			c, _, err := p.Open()
			if err != nil {
				return err
			}
			out := bufio.NewWriter(command.OutOrStdout())
			if len(prefixes) == 1 {
				err = listCaptures(command, c, prefixes[0], out, lines)
			} else {
				err = listFiles(c, out, lines)
			}
			if err = errors.Join(err, out.Flush()); err != nil {
				return console.Exit(console.ExitProblem, err)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&lines, "jsonl", false, "print one JSON object a line")
	return command
}

// fileLine is the JSON form of an output file.
type fileLine struct {
	Name     string    `json:"name"`
	Format   string    `json:"format"`
	Open     bool      `json:"open"`
	Size     int64     `json:"size"`
	Captures int       `json:"captures"`
	First    time.Time `json:"first,omitzero"`
	Last     time.Time `json:"last,omitzero"`
}

func listFiles(c *warcfiles.Collection, out io.Writer, lines bool) error {
	files, err := c.Files()
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	t := console.NewTable(out, "FILE", "FORMAT", "SIZE", "ANSWERS", "FROM", "TO")
	for _, f := range files {
		n, err := c.Contents(f)
		if err != nil {
			return err
		}
		if lines {
			err = encoder.Encode(fileLine{f.Name, f.Format, f.Open, f.Size, n.Captures, n.First, n.Last})
		} else {
			err = t.Row(fileCells(f, n)...)
		}
		if err != nil {
			return err
		}
	}
	if lines {
		return nil
	}
	return t.Flush()
}

func fileCells(f warcfiles.File, n warcfiles.Contents) []string {
	name := f.Name
	if f.Open {
		name += " (being written)"
	}
	if f.Format != warcfiles.Name {
		return []string{name, f.Format, console.Size(uint64(f.Size)), "-", "-", "-"}
	}
	return []string{name, f.Format, console.Size(uint64(f.Size)), console.Grouped(n.Captures), moment(n.First),
		moment(n.Last)}
}

// moment formats the time of a stored response, or a dash.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func listCaptures(command *cobra.Command, c *warcfiles.Collection, prefix string, out io.Writer, lines bool) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	t := console.NewTable(out, "TIME", "STATUS", "TYPE", "STORED", "URL")
	found := 0
	err := c.Captures(command.Context(), prefix, func(e *warc.Entry) error {
		found++
		if lines {
			return encoder.Encode(warcfiles.Capture(*e))
		}
		return t.Row(moment(e.Time), strconv.Itoa(e.Status), orDash(e.Mime), console.Size(uint64(e.Length)), e.URL)
	})
	if err == nil && found == 0 {
		err = errors.New("nothing is stored under " + prefix + ": amble archive ls lists the files")
	}
	if err != nil || lines {
		return err
	}
	return t.Flush()
}

// orDash returns text, or a dash if it is empty.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// getFlags are the flags of amble archive get.
type getFlags struct {
	at           string
	headers, raw bool
}

func (p Program) getCommand() *cobra.Command {
	f := getFlags{}
	command := &cobra.Command{
		Use:   "get URL",
		Short: "Print a stored page",
		Long: `Print the newest stored response for a URL, or with --at the newest at that time. The body is
printed decoded, without chunks and content encoding. If a response was not stored because its content was the
same as before, or because the server answered 304 Not Modified, the earlier content is printed.

This reads WARC files, so output.format must contain warc. A crawl may be running.

Exit code 0: done. 1: no response is stored for the URL, or it cannot be read. 2: wrong usage or settings.`,
		Example: `  amble archive get https://example.com/
  amble archive get https://example.com/ --at 2026-11-20
  amble archive get https://example.com/logo.png > logo.png
  amble archive get https://example.com/ --headers`,
		Args: console.Exactly(1, "one URL"),
		RunE: func(command *cobra.Command, urls []string) error {
			u, err := weburl.Parse(urls[0])
			if err != nil {
				return console.Usagef("%w", err)
			}
			at, err := warcfiles.ParseMoment(f.at)
			if err != nil {
				return console.Usagef("%w", err)
			}
			c, dir, err := p.Open()
			if err != nil {
				return err
			}
			return f.get(command, c, dir, u.String(), at)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.at, "at", "", "the newest response at this `time`: 2026-11-20, 2026-11-20T12:14:15Z or "+
		"20261120121415")
	flags.BoolVar(&f.headers, "headers", false, "print the response header before the body")
	flags.BoolVar(&f.raw, "raw", false, "print the body as stored, without decoding")
	return command
}

func (f *getFlags) get(command *cobra.Command, c *warcfiles.Collection, dir, url string, at time.Time) error {
	ctx := command.Context()
	e, err := c.Find(ctx, url, at)
	if errors.Is(err, warcfiles.ErrNoCapture) {
		return console.Exit(console.ExitProblem, notStored(ctx, c, dir, url, at))
	}
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	s, err := c.Open(ctx, e)
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	err = f.print(console.RawOutput(command.OutOrStdout()), s)
	if err = errors.Join(err, s.Close()); err != nil {
		return console.Exit(console.ExitProblem, fmt.Errorf("%s: %w", url, err))
	}
	switch s.Truncated {
	case "":
	case archive.TooLong:
		command.PrintErrln("amble: the stored body is incomplete: the response was longer than fetch.max_body")
	default:
		command.PrintErrf("amble: the stored body is incomplete: the response broke off (%s)\n",
			console.Printable(string(s.Truncated)))
	}
	return nil
}

// notStored explains why there is nothing to print, and names what is stored.
func notStored(ctx context.Context, c *warcfiles.Collection, dir, url string, at time.Time) error {
	if newest, err := c.Find(ctx, url, time.Time{}); err == nil {
		return fmt.Errorf("%s is not stored as of %s; the newest stored response is of %s", url,
			at.Format(time.RFC3339), newest.Time.Format(time.RFC3339))
	}
	return fmt.Errorf("%s is not stored in the WARC files of %s: amble archive ls lists what is", url, dir)
}

func (f *getFlags) print(w io.Writer, s *warcfiles.Stored) error {
	out := bufio.NewWriterSize(w, 64<<10)
	if f.headers {
		out.Write(s.Head) // Flush returns its error
	}
	body, release := s.Body, func() {}
	if !f.raw {
		var err error
		if body, release, err = s.Plain(); err != nil {
			return err
		}
	}
	defer release()
	_, err := io.Copy(out, body)
	if s.Truncated != "" && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the end of what was stored
	}
	return errors.Join(err, out.Flush())
}

func (p Program) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Verify all output files",
		Long: `Read all output files and report everything that is wrong. In WARC files it checks the lengths,
checksums and digests, the links between records, the originals of responses that were not stored twice, and
the index. In the other files it checks that each line is a JSON object. A crawl may be running: the last
record of an open file may be incomplete.

Of pages that name what they are made of (archive.requisites) it also says how many the archive has whole, and how
many requisites are missing for which reason: robots, wall, opt_out, usage, status 404, another failure, scope, budget
(archive.requisites_per_page), not taken (limits.host_urls, or a trap), not stored. What is missing is no problem of
the files. The reasons are in the database of the crawl in data_dir: a running crawl answers over its API, otherwise
the database is opened read-only. Without it the files alone say no more than: not stored, or a status. amble urls URL
lists what one page lacks.

Exit code 0: nothing is wrong. 1: there are problems, or there is no output. 2: wrong usage or settings.`,
		Example: `  amble archive verify
  amble archive verify --set output.dir=/srv/crawl/output`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			settings, err := p.Load()
			if err != nil {
				return err
			}
			c, dir, err := p.open(settings)
			if err != nil {
				return err
			}
			problems := 0
			out := command.OutOrStdout()
			v, err := c.Verify(command.Context(), func(p warcfiles.Problem) {
				problems++
				_, _ = fmt.Fprintln(out, p) // the exit code says it too
			})
			if err != nil {
				return console.Exit(console.ExitProblem, err)
			}
			if problems > 0 {
				return console.Exit(console.ExitProblem, errors.New(dir+": "+console.Plural(problems, "problem")))
			}
			_, err = fmt.Fprintf(out, "%s: no problems, %s in %s, %s, %s\n", dir,
				console.Plural(v.Records, "WARC record"),
				console.Plural(v.Files, "file"),
				console.Plural(v.Lines, "JSON line"), console.Size(uint64(v.Bytes)))
			if err != nil {
				return err
			}
			return printRequisites(command.Context(), out, c, p.CrawlOf(settings))
		},
	}
}

// printRequisites says how many pages have all that they are made of, if pages say what that is, and why the rest is
// missing.
func printRequisites(ctx context.Context, out io.Writer, c *warcfiles.Collection, crawl *access.Crawl) error {
	s, noCrawl, err := completeness.Check(ctx, c, crawl)
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	if s.Naming > 0 {
		_, err = fmt.Fprintln(out, s.Text())
	}
	if noCrawl != nil && len(s.Missing) > 0 && err == nil {
		_, err = fmt.Fprintf(out, "No database was asked for the reasons: %s\n", console.Printable(noCrawl.Error()))
	}
	return err
}
