package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/storage"
)

// story is a list of labelled lines.
type story struct {
	strings.Builder
	now time.Time
}

func (s *story) line(label, format string, args ...any) {
	s.WriteString(strings.TrimRight(pad(label, 14)+fmt.Sprintf(format, args...), " ") + "\n")
}

// at is an instant for people, and how far it is away.
func (s *story) at(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	if away := t.Sub(s.now); away > 0 {
		return instantText(t, s.now) + " (in " + span(away) + ")"
	}
	return instantText(t, s.now) + " (" + span(s.now.Sub(t)) + " ago)"
}

func printHostStory(w io.Writer, h *inspect.HostStory, now time.Time) error {
	s := &story{now: now}
	state := h.State
	if h.Place != "" && h.Place != h.State {
		state += ", " + h.Place + " in the frontier"
	}
	s.line("host", "%s", h.Host.Host)
	s.line("state", "%s", state)
	s.line("next", "%s", strings.TrimSuffix(nextText(&h.Host, now)+"; "+whyHost(&h.Host), "; "))
	s.politeness(&h.Politeness)
	if h.InFlight > 0 {
		s.line("in flight", "%s", plural(h.InFlight, "request"))
	}
	if h.Address != "" {
		s.line("address", "%s", h.Address)
	}
	s.line("URLs", "%s known, %s waiting", grouped(uint64(h.Known)), grouped(uint64(h.Waiting)))
	for state := storage.Queued; state <= storage.Retrying; state++ {
		if n := h.URLs[state]; n > 0 {
			s.line("  "+state.String(), "%s", grouped(uint64(n)))
		}
	}
	s.line("requests", "%s, %s received", grouped(uint64(h.Requests)), size(h.Bytes))
	for _, name := range slices.Sorted(maps.Keys(h.Errors)) {
		s.line("  "+name, "%s", grouped(uint64(h.Errors[name])))
	}
	if h.Waiting > 0 {
		s.line("left", "about %s at this delay", span(secondsOf(h.Finish)))
	}
	for i := range h.Origins {
		s.origin(&h.Origins[i])
	}
	for _, t := range h.Traps {
		s.line("refused", "%s (%s)", plural(int(t.Refused), "URL"), t.Reason)
		for _, sample := range t.Samples {
			s.line("", "such as %s", printable(sample))
		}
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func (s *story) politeness(p *inspect.Politeness) {
	s.line("politeness", "%s", p.Text)
	for _, source := range []string{p.Source, p.DelaySource} {
		if source != "" {
			s.line("", "by %s", printable(source))
		}
		if p.DelaySource == p.Source {
			break
		}
	}
}

func (s *story) origin(o *inspect.Origin) {
	s.line("origin", "%s", o.Origin)
	due := ""
	if o.Due > 0 {
		due = fmt.Sprintf(", %s due, the first at %s", grouped(uint64(o.Due)), s.at(o.NextDue))
	}
	s.line("  queue", "%s queued%s; the cursor is at %s", grouped(uint64(o.Queued)), due, grouped(uint64(o.Cursor)))
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
		text += fmt.Sprintf(", group %s with %s", printable(r.Group), plural(r.Rules, "rule"))
	}
	if r.DisallowsAll {
		text += ", which disallow everything"
	}
	s.line("  robots.txt", "%s", text)
	if !r.Fetched.IsZero() {
		s.line("", "fetched %s, in force until %s", s.at(r.Fetched), s.at(r.Expires))
	}
	if r.Failures > 0 {
		s.line("", "%s in a row since %s; asked for again %s", plural(r.Failures, "failure"), s.at(r.FirstUnreachable), s.at(r.Refresh))
	}
	if r.CrawlDelay != nil {
		s.line("", "line %d: %s (%s)", r.CrawlDelayLine, printable(r.CrawlDelayText), secondsOf(*r.CrawlDelay))
	}
	s.line("", "now: %s", standingText(r))
}

// standingText says what a robots.txt means for pages at the moment.
func standingText(r *inspect.Robots) string {
	switch r.Standing {
	case "ask":
		return "its rules decide about each URL"
	case "hold":
		return "nothing of this origin may be asked"
	}
	return "it is asked for before the next page"
}
