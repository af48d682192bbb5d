//go:build !core

package operator

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// urlsFlags are the flags of amble urls.
type urlsFlags struct {
	console.Printer
	query                     inspect.URLQuery
	state, reason, from, seed string
}

func newURLsCommand(settings *Program) *cobra.Command {
	f := urlsFlags{}
	command := &cobra.Command{
		Use:   "urls [URL]",
		Short: "List the URLs, or explain one",
		Long: `List the known URLs, host by host in the order of discovery. With a URL, print everything known
of it, and what its robots.txt says about it now. A running crawl answers over its API; otherwise the database
is opened read-only.

Of a page of a crawl with archive.requisites it also says how complete it is: how many requisites, the style
sheets, scripts, images and fonts, it is made of, how many of them are stored and how many wait, and each
missing one with its reason. Besides those below, reasons are budget (archive.requisites_per_page) and not taken
(limits.host_urls, or a trap). docs/ARCHIVE.md describes them.

If the limit ends the list, the position to continue from is printed last, and on standard error beside JSON
lines and CSV. docs/OUTPUT.md describes the fields of a line.

States: queued, fetched, redirected, failed, denied, excluded, retrying.
Reasons: ` + wrapped(inspect.ReasonNames(), 100) + `.

Exit code 0: done. 1: the URL or the host is not known, there is no database, or it cannot be used. 2: wrong
usage or settings. 3: another process has the database and no API answers.`,
		Example: `  amble urls --state failed --reason connect_timeout
  amble urls --host www.example.com --limit 20
  amble urls --status 404 --contains /docs/ --limit 0 -o broken.csv
  amble urls --tag news --state failed
  amble urls --from 12.340
  amble urls --state denied --limit 0 --jsonl
  amble urls https://www.example.com/page`,
		Args: console.AtMostOne("URL"),
		RunE: func(command *cobra.Command, urls []string) error {
			if err := f.parse(); err != nil {
				return console.Usagef("%w", err)
			}
			if len(urls) == 1 {
				return f.one(command, settings, urls[0])
			}
			return settings.Inspect(command.Context(), func(i access.Inspector) error { return f.list(command, i) })
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.query.Host, "host", "", "only URLs of this `host`")
	flags.StringVar(&f.state, "state", "", "only URLs in this `state`")
	flags.StringVar(&f.reason, "reason", "", "only URLs that are in their state for this `reason`")
	flags.IntVar(&f.query.Status, "status", 0, "only URLs whose last response had this `status`")
	flags.StringVar(&f.query.Contains, "contains", "", "only URLs with this `text` in them")
	flags.StringVar(&f.seed, "seed", "", "only pages of this seed, by its `URL`")
	flags.StringVar(&f.query.Tag, "tag", "", "only pages of seeds with this `tag`")
	flags.StringVar(&f.from, "from", "", "continue from this `position`")
	flags.IntVar(&f.query.Limit, "limit", 100, "at most this many; 0: all")
	f.ListFlags(command)
	console.Offer(command, "state", stateNames())
	console.Offer(command, "reason", inspect.ReasonNames())
	settings.OfferHosts(command)
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
	return errors.Join(f.query.Filter(f.state, f.reason), f.query.OfSeed(f.seed, f.query.Tag), f.Check())
}

func (f *urlsFlags) one(command *cobra.Command, settings *Program, text string) error {
	u, err := weburl.Parse(text)
	if err != nil {
		return console.Usagef("%w", err)
	}
	return settings.Inspect(command.Context(), func(i access.Inspector) error {
		s, err := i.URL(command.Context(), u)
		if err != nil {
			return unknown(err)
		}
		lines, err := settings.moreOf(command.Context(), i, &s)
		if err != nil {
			return err
		}
		print := func(w io.Writer) error { return printURLStory(w, &s, lines, time.Now()) }
		err = f.Object(command.OutOrStdout(), s, print)
		if err == nil && !s.Known {
			return unknown(fmt.Errorf("%s: %w", u, inspect.ErrUnknown))
		}
		return err
	})
}

// urlsTable is how a list of URLs is printed.
func urlsTable() console.Table[inspect.URL] {
	return console.Table[inspect.URL]{
		Name: "urls", Noun: "URL", Titles: []string{"STATE", "WHY", "DEPTH", "URL"},
		Cells: func(u *inspect.URL) []string { return []string{u.State, whyText(u), strconv.Itoa(u.Depth), u.URL} },
	}
}

// urlsEnd is what a JSON object of URLs has besides them.
type urlsEnd struct {
	Next string `json:"next,omitempty"` // for --from
}

func (f *urlsFlags) list(command *cobra.Command, i access.Inspector) error {
	list, err := console.NewList(&f.Printer, command, urlsTable())
	if err != nil {
		return err
	}
	next, err := i.URLs(command.Context(), f.query, f.from, list.Row)
	note := ""
	if next != "" {
		note = "There are more: continue with --from " + next
	}
	return unknown(list.End(err, urlsEnd{next}, note))
}

// noteWidth is how much of a note a list of URLs shows.
const noteWidth = 48

// whyText says in a word or two why a URL is in its state.
func whyText(u *inspect.URL) string {
	switch {
	case u.RobotsLine > 0:
		return "robots line " + strconv.Itoa(u.RobotsLine)
	case u.Reason != "" && u.Note != "" && u.Status == 0:
		note := u.Note // printable ASCII
		if len(note) > noteWidth {
			note = note[:noteWidth-3] + "..."
		}
		return u.Reason + ": " + note
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

func printURLStory(w io.Writer, u *inspect.URLStory, more [][2]string, now time.Time) error {
	s := &story{now: now}
	s.Line("URL", "%s", u.URL.URL)
	s.Line("state", "%s", urlState(u))
	if u.Known {
		s.found(u)
	}
	if u.Scope != nil {
		s.Line("scope", "%s", u.Scope.Reason)
	}
	if e := u.Expensive; e != nil {
		s.Line("expensive", "%s", expensiveText(e))
	}
	if u.Attempts > 0 {
		s.Line("attempts", "%d failed in a row", u.Attempts)
	}
	if !u.LastFetched.IsZero() {
		s.Line("last fetched", "%s, %s", s.at(u.LastFetched), console.Size(u.Bytes))
	}
	if !u.Judged.IsZero() {
		s.Line("decided", "%s, without a request", s.at(u.Judged))
	}
	if !u.Due.IsZero() {
		s.Line("due", "%s", s.at(u.Due))
	}
	s.text("note", u.Note)
	label := "usage"
	for _, category := range slices.Sorted(maps.Keys(u.Usage)) {
		p := u.Usage[category]
		s.Line(label, "%s=%s, by %s", category, p.Preference, p.From)
		label = ""
	}
	for _, line := range more {
		s.Line(line[0], "%s", line[1])
	}
	s.text("digest", u.Digest)
	s.text("etag", u.ETag)
	s.text("modified", u.LastModified)
	s.Line("robots.txt", "%s", verdictText(&u.Robots))
	s.Line("", "%s", decisionText(&u.Robots.Record))
	if u.Host.State == inspect.StateUnknown {
		s.Line("host", "%s: not known", u.Host.Host)
		_, err := io.WriteString(w, s.String())
		return err
	}
	s.Line("host", "%s: %s, next %s", u.Host.Host, u.Host.State, nextText(&u.Host, now))
	_, err := io.WriteString(w, s.String())
	return err
}

// text is a line with foreign text. It prints nothing if the text is empty.
func (s *story) text(label, text string) {
	if text != "" {
		s.Line(label, "%s", console.Printable(text))
	}
}

// expensiveText says by which line of the list a URL is an expensive endpoint.
func expensiveText(e *inspect.Expensive) string {
	text := fmt.Sprintf("%s of %s, by line %d of the list (%s)", e.Class, e.Product, e.Line, e.Source)
	if e.OnPage {
		text += ", if it is linked on a page of that software"
	}
	return text + "; see traps.expensive"
}

func urlState(u *inspect.URLStory) string {
	text := u.State
	if state, err := storage.ParseState(u.State); err == nil {
		text += " (" + stateMeaning(state) + ")"
	}
	if why := whyText(&u.URL); why != "-" {
		text += ": " + why
	}
	return text
}

// found says how the URL was discovered.
func (s *story) found(u *inspect.URLStory) {
	if !u.FirstSeen.IsZero() {
		s.Line("first seen", "%s", s.at(u.FirstSeen))
	}
	text := fmt.Sprintf("%d", u.Depth)
	if u.Redirects > 0 {
		text += ", behind " + console.Plural(u.Redirects, "redirect")
	}
	switch {
	case u.Seed:
		text += ", a seed"
	case u.Via != "":
		text += ", found on " + u.Via
	}
	s.Line("depth", "%s", text)
	for _, step := range u.Chain[min(len(u.Chain), 1):] {
		s.Line("", "which was found on %s", step.URL)
	}
	if u.Priority != 0 {
		s.Line("priority", "%d", u.Priority)
	}
}

func verdictText(v *inspect.Verdict) string {
	if v.Record.Class == "never fetched" {
		return v.Reason
	}
	text := "disallowed"
	if v.Allowed {
		text = "allowed"
	}
	if v.Line > 0 {
		return fmt.Sprintf("%s by line %d: %s", text, v.Line, console.Printable(v.Rule))
	}
	return text + ": " + v.Reason
}
