package main

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// urlsFlags are those of amble urls.
type urlsFlags struct {
	query               inspect.URLQuery
	state, reason, from string
	asJSON, lines       bool
}

func newURLsCommand(settings *settingsFlags) *cobra.Command {
	f := urlsFlags{}
	command := &cobra.Command{
		Use:   "urls [URL]",
		Short: "List the URLs, or tell all about one",
		Long: `List the URLs that are known, host by host in the order in which they were found; or tell the whole story of one, and what its robots.txt
says about it now. A running crawl is asked over its API; otherwise the database is opened for reading only.

Where the limit ends the list, the position to go on from is printed last; with --jsonl it goes to standard error. The fields of
a line are described in docs/OUTPUT.md.

States: queued, fetched, redirected, failed, denied, excluded, retrying.
Reasons: ` + wrapped(inspect.ReasonNames(), 120) + `.

Exit code 0: done. 1: the URL or the host is not known, there is no database, or it cannot be used. 2: wrong usage or settings.
3: another process has the database and no API answers.`,
		Example: `  amble urls --state failed --reason connect_timeout
  amble urls --host www.example.com --limit 20
  amble urls --from 12.340
  amble urls --state denied --limit 0 --jsonl
  amble urls https://www.example.com/page`,
		Args: atMostOne("URL"),
		RunE: func(command *cobra.Command, urls []string) error {
			if err := f.parse(); err != nil {
				return usagef("%w", err)
			}
			if len(urls) == 1 {
				return f.one(command, settings, urls[0])
			}
			return withInspector(command.Context(), settings, func(i inspector) error { return f.list(command, i) })
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.query.Host, "host", "", "only URLs of this `host`")
	flags.StringVar(&f.state, "state", "", "only URLs in this `state`")
	flags.StringVar(&f.reason, "reason", "", "only URLs that are in their state for this `reason`")
	flags.StringVar(&f.from, "from", "", "go on from this `position`")
	flags.IntVar(&f.query.Limit, "limit", 100, "at most so many; 0: all")
	flags.BoolVar(&f.asJSON, "json", false, "print the story of one URL as a JSON object")
	flags.BoolVar(&f.lines, "jsonl", false, "print one JSON object a line")
	offer(command, "state", stateNames())
	offer(command, "reason", inspect.ReasonNames())
	offerHosts(command, settings)
	return command
}

func stateNames() (names []string) {
	for s := storage.Queued; s <= storage.Retrying; s++ {
		names = append(names, s.String())
	}
	return names
}

// wrapped joins words with commas, in lines of a width.
func wrapped(words []string, width int) string {
	text, line := "", 0
	for i, w := range words {
		if i > 0 {
			text += ","
			if line += len(w) + 2; line > width {
				text, line = text+"\n", 0
			} else {
				text += " "
			}
		}
		text += w
	}
	return text
}

func (f *urlsFlags) parse() (err error) {
	if f.query.Limit < 0 {
		return fmt.Errorf("the limit is %d, should be 0 or more", f.query.Limit)
	}
	if f.query.From, err = storage.ParsePosition(f.from); err != nil {
		return err
	}
	return f.query.Filter(f.state, f.reason)
}

func (f *urlsFlags) one(command *cobra.Command, settings *settingsFlags, text string) error {
	u, err := weburl.Parse(text)
	if err != nil {
		return usagef("%w", err)
	}
	return withInspector(command.Context(), settings, func(i inspector) error {
		s, err := i.URL(command.Context(), u)
		if err != nil {
			return unknown(err)
		}
		if f.asJSON || f.lines {
			err = writeJSON(command.OutOrStdout(), s)
		} else {
			err = printURLStory(command.OutOrStdout(), &s, time.Now())
		}
		if err == nil && !s.Known {
			return unknown(fmt.Errorf("%s: %w", u, inspect.ErrUnknown))
		}
		return err
	})
}

func (f *urlsFlags) list(command *cobra.Command, i inspector) error {
	if f.asJSON {
		return usagef("a list of URLs is printed as JSON lines: take --jsonl")
	}
	out := bufio.NewWriter(command.OutOrStdout())
	write, end := f.printer(out)
	next, err := i.URLs(command.Context(), f.query, write)
	if err = errors.Join(err, end(), out.Flush()); err != nil {
		return unknown(err)
	}
	if next == nil {
		return nil
	}
	to := command.OutOrStdout()
	if f.lines {
		to = command.ErrOrStderr()
	}
	_, err = fmt.Fprintf(to, "There are more: go on with --from %s\n", next)
	return err
}

// printer is how a list is printed, and what ends it.
func (f *urlsFlags) printer(out *bufio.Writer) (write func(*inspect.URL) error, end func() error) {
	if f.lines {
		lines := inspect.NewLines(out)
		return func(u *inspect.URL) error { return lines.Write(u) }, func() error { return nil }
	}
	t := newTable(out, "STATE", "WHY", "DEPTH", "URL")
	return func(u *inspect.URL) error { return t.row(u.State, whyText(u), strconv.Itoa(u.Depth), u.URL) }, t.flush
}

// whyText says in a word or two why a URL is in its state.
func whyText(u *inspect.URL) string {
	switch {
	case u.RobotsLine > 0:
		return "robots line " + strconv.Itoa(u.RobotsLine)
	case u.Reason != "" && u.Reason != "status":
		return strings.TrimSpace(u.Reason + " " + statusText(u))
	}
	if text := statusText(u); text != "" {
		return text
	}
	return "-"
}

func statusText(u *inspect.URL) string {
	if u.Status == 0 {
		return ""
	}
	return strconv.Itoa(u.Status)
}
