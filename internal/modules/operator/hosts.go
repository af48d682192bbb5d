//go:build !core

package operator

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/console/outcome"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/storage"
)

// hostsFlags are the flags of amble hosts.
type hostsFlags struct {
	console.Printer
	query inspect.HostQuery
}

func newHostsCommand(settings *Program) *cobra.Command {
	f := hostsFlags{}
	command := &cobra.Command{
		Use:   "hosts [HOST]",
		Short: "List the hosts, or explain one",
		Long: `List the hosts of the crawl in data_dir: how many of their URLs wait, the delay in force, and
when and why each is fetched from next. With a host, print everything known of it: its URLs by state, each
origin with its queue and its robots.txt, and what decides when it may be fetched from. A running crawl
answers over its API; otherwise the database is opened read-only.

States: idle (none of its URLs waits), ready (may be fetched from now), busy (has requests in flight), waiting
(for an instant), failing (waiting after failures), held (its robots.txt disallows everything), paused (by the
operator), walled (refusals or challenges stand in place of its pages). --state suspected lists the hosts with
evidence for a wall, in whatever state.
Orders (numbers: largest first): ` +
			strings.Join(inspect.HostSorts(), ", ") + `.
A sorted list has at most ` + console.Grouped(inspect.MaxSorted) + ` hosts; --sort found --limit 0 lists all.

Exit code 0: done. 1: the host is not known, there is no database, it cannot be used, or not all of a cluster
has answered: the hosts are those of the others. 2: wrong usage or settings. 3: another process has the database and no API answers.`,
		Example: `  amble hosts
  amble hosts --state failing --sort urls --limit 20
  amble hosts --state walled --limit 1000 -o walled.csv
  amble hosts --sort failures --contains shop
  amble hosts --sort found --limit 0 --jsonl
  amble hosts www.example.com`,
		Args:              console.AtMostOne("host"),
		ValidArgsFunction: settings.CompleteHostArgument(),
		RunE: func(command *cobra.Command, hosts []string) error {
			if err := f.query.Check(); err != nil {
				return console.Usagef("%w", err)
			}
			if err := f.Check(); err != nil {
				return err
			}
			return settings.Inspect(command.Context(), func(i access.Inspector) error {
				if len(hosts) == 1 {
					return f.one(command, i, hosts[0])
				}
				return f.list(command, i)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.query.State, "state", "", "only hosts in this `state`")
	flags.StringVar(&f.query.Contains, "contains", "", "only hosts with this `text` in their names")
	flags.StringVar(&f.query.Under, "under", "", "only this `domain` and the hosts below it")
	flags.StringVar(&f.query.Sort, "sort", inspect.HostSorts()[0], "the sort `order`")
	flags.IntVar(&f.query.Limit, "limit", 50, "at most this many; 0: all, with --sort found")
	f.ListFlags(command)
	console.Offer(command, "state", inspect.HostFilters())
	console.Offer(command, "sort", inspect.HostSorts())
	return command
}

func (f *hostsFlags) one(command *cobra.Command, i access.Inspector, name string) error {
	story, err := i.Host(command.Context(), name)
	if err != nil {
		return unknown(err)
	}
	return f.Object(command.OutOrStdout(), story, func(w io.Writer) error {
		return printHostStory(w, &story, time.Now())
	})
}

// unknown adds a hint to the error for an unknown host or URL.
func unknown(err error) error {
	if errors.Is(err, inspect.ErrUnknown) {
		return console.Exit(console.ExitProblem,
			fmt.Errorf("%w: amble hosts lists the hosts, and amble urls the URLs", err))
	}
	return err
}

// hostsTable is how a list of hosts is printed.
func hostsTable(now time.Time) console.Table[inspect.Host] {
	return console.Table[inspect.Host]{
		Name: "hosts", Noun: "host", Titles: []string{"HOST", "STATE", "WAITING", "KNOWN", "DELAY", "NEXT", "WHY"},
		Cells: func(h *inspect.Host) []string {
			return []string{h.Host, h.State, console.Grouped(uint64(h.Waiting)), console.Grouped(uint64(h.Known)),
				secondsOf(h.Delay).String(), nextText(h, now), whyHost(h)}
		},
	}
}

// hostsEnd is what a JSON object of hosts has besides them.
type hostsEnd struct {
	Matching   int                `json:"matching"`
	Incomplete *server.Incomplete `json:"incomplete,omitempty"`
}

func (f *hostsFlags) list(command *cobra.Command, i access.Inspector) error {
	list, err := console.NewList(&f.Printer, command, hostsTable(time.Now()))
	if err != nil {
		return err
	}
	var end hostsEnd
	end.Matching, err = i.Hosts(command.Context(), f.query, list.Row)
	errors.As(err, &end.Incomplete)
	note := ""
	if end.Matching > list.Rows {
		more := console.Grouped(end.Matching)
		if f.query.Sort == inspect.SortFound || f.query.Sort == "name" {
			more = "more"
		}
		note = fmt.Sprintf("%s of %s hosts; --limit shows others", console.Grouped(list.Rows), more)
	}
	return list.End(err, end, note)
}

func nextText(h *inspect.Host, now time.Time) string {
	switch {
	case h.State == inspect.HostPaused && h.Next.IsZero():
		return "when resumed"
	case h.Waiting == 0:
		return "-"
	case h.State == inspect.HostBusy && h.Reason == "lookup":
		return "after its lookup"
	case h.Next.IsZero():
		return "now"
	}
	return "in " + console.Span(h.Next.Sub(now)+time.Second/2)
}

// whyHost says why a host waits, or what is under way, and why the last request to it failed.
func whyHost(h *inspect.Host) string {
	why := console.PostponedReason(h.Reason)
	if h.WallKind != "" {
		why = strings.TrimPrefix(why+"; wall: "+wallText(h.WallKind, h.WallMaker), "; ")
	}
	if h.LastFailure == "" {
		return why
	}
	return strings.TrimPrefix(why+"; last failure: "+h.LastFailure, "; ")
}

// wallText names a wall: its kind, and its maker if that is known.
func wallText(kind, maker string) string {
	if maker == "" {
		return kind
	}
	return kind + " of " + maker
}

// secondsOf converts seconds to a duration. Large numbers are cut off.
func secondsOf(s float64) time.Duration {
	return outcome.Seconds(min(s, math.MaxInt64/1e9/2)).Round(time.Millisecond)
}

// story tells of a host or a URL.
type story struct {
	console.Story
	now time.Time
}

// at formats an instant and its distance from now.
func (s *story) at(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	if away := t.Sub(s.now); away > 0 {
		return console.InstantText(t, s.now) + " (in " + console.Span(away) + ")"
	}
	return console.InstantText(t, s.now) + " (" + console.Span(s.now.Sub(t)) + " ago)"
}

func printHostStory(w io.Writer, h *inspect.HostStory, now time.Time) error {
	s := &story{now: now}
	state := h.State
	if h.FrontierState != "" && h.FrontierState != h.State {
		state += ", " + h.FrontierState + " in the frontier"
	}
	s.Line("host", "%s", h.Host.Host)
	s.Line("state", "%s", state)
	s.Line("next", "%s", strings.TrimSuffix(nextText(&h.Host, now)+"; "+whyHost(&h.Host), "; "))
	s.text("opted out", h.OptOut)
	s.text("slower", h.Slowdown)
	s.politeness(&h.Politeness)
	s.wall(h.Wall)
	if h.InFlight > 0 {
		s.Line("in flight", "%s", console.Plural(h.InFlight, "request"))
	}
	if h.Address != "" {
		s.Line("address", "%s", h.Address)
	}
	if h.Group != "" {
		s.Line("group", "%s", h.Group)
	}
	s.Line("URLs", "%s known, %s waiting", console.Grouped(uint64(h.Known)), console.Grouped(uint64(h.Waiting)))
	for state := storage.Queued; state <= storage.Retrying; state++ {
		if n := h.URLs[state]; n > 0 {
			s.Line("  "+state.String(), "%s", console.Grouped(uint64(n)))
		}
	}
	s.Line("requests", "%s, %s received", console.Grouped(uint64(h.Requests)), console.Size(h.Bytes))
	if h.Yield.Recrawls > 0 {
		s.Line("recrawls", "%s", console.Unchanged(h.Yield))
	}
	for _, name := range slices.Sorted(maps.Keys(h.Errors)) {
		s.Line("  "+name, "%s", console.Grouped(uint64(h.Errors[name])))
	}
	if h.Waiting > 0 {
		s.Line("left", "about %s at this delay", console.Span(secondsOf(h.Finish)))
	}
	for i := range h.Origins {
		s.origin(&h.Origins[i])
	}
	for _, t := range h.Traps {
		s.Line("refused", "%s (%s)", console.Plural(int(t.Refused), "URL"), t.Reason)
		for _, sample := range t.Samples {
			s.Line("", "such as %s", console.Printable(sample))
		}
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func (s *story) politeness(p *inspect.Politeness) {
	s.Line("politeness", "%s", p.Text)
	for _, source := range []string{p.Source, p.DelaySource} {
		if source != "" {
			s.Line("", "by %s", console.Printable(source))
		}
		if p.DelaySource == p.Source {
			break
		}
	}
}

// wall writes what is known of a wall.
func (s *story) wall(w *inspect.Wall) {
	if w == nil {
		return
	}
	what := wallText(w.Kind, w.Maker)
	switch {
	case w.Suspected:
		s.Line("wall", "suspected: %s", what)
	case w.Parked:
		s.Line("wall", "%s; parked: it is probed once a day", what)
	default:
		s.Line("wall", "%s; it is probed once in each period of the backoff", what)
	}
	s.Line("", "%s", console.Printable(w.Evidence))
}

func (s *story) origin(o *inspect.Origin) {
	s.Line("origin", "%s", o.Origin)
	due := ""
	if o.Due > 0 {
		due = fmt.Sprintf(", %s due, the first at %s", console.Grouped(uint64(o.Due)), s.at(o.NextDue))
	}
	s.Line("  queue", "%s queued%s; the cursor is at %s", console.Grouped(uint64(o.Queued)), due,
		console.Grouped(uint64(o.Cursor)))
	s.robots(&o.Robots)
}

func (s *story) robots(r *inspect.Robots) {
	text := r.Class
	if r.Status != 0 {
		text += fmt.Sprintf(", status %d", r.Status)
	}
	if r.Failure != "" {
		text += ", " + r.Failure
	}
	if r.Group != "" {
		text += fmt.Sprintf(", group %s with %s", console.Printable(r.Group), console.Plural(r.Rules, "rule"))
	}
	if r.DisallowsAll {
		text += ", which disallow everything"
	}
	s.Line("  robots.txt", "%s", text)
	if !r.Fetched.IsZero() {
		s.Line("", "fetched %s, in force until %s", s.at(r.Fetched), s.at(r.Expires))
	}
	if r.Failures > 0 {
		s.Line("", "%s in a row since %s; fetched again %s", console.Plural(r.Failures, "failure"),
			s.at(r.FirstUnreachable),
			s.at(r.Refresh))
	}
	if r.CrawlDelay != nil {
		s.Line("", "line %d: %s (%s)", r.CrawlDelayLine, console.Printable(r.CrawlDelayText), secondsOf(*r.CrawlDelay))
	}
	s.Line("", "now: %s", decisionText(r))
}

// decisionText says what a robots.txt means for pages now.
func decisionText(r *inspect.Robots) string {
	switch r.Decision {
	case "ask":
		return "its rules are matched for each URL"
	case "hold":
		return "nothing of this origin may be fetched"
	}
	return "it is fetched before the next page"
}
