package main

import (
	"fmt"
	"io"
	"time"

	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/storage"
)

func printURLStory(w io.Writer, u *inspect.URLStory, now time.Time) error {
	s := &story{now: now}
	s.line("URL", "%s", u.URL.URL)
	s.line("state", "%s", urlState(u))
	if u.Known {
		s.found(u)
	}
	if u.Scope != nil {
		s.line("scope", "%s", u.Scope.Reason)
	}
	if u.Attempts > 0 {
		s.line("attempts", "%d failed in a row", u.Attempts)
	}
	if !u.LastFetched.IsZero() {
		s.line("last fetched", "%s, %s", s.at(u.LastFetched), size(u.Bytes))
	}
	if !u.Judged.IsZero() {
		s.line("settled", "%s, without a request", s.at(u.Judged))
	}
	if !u.Due.IsZero() {
		s.line("due", "%s", s.at(u.Due))
	}
	s.text("digest", u.Digest)
	s.text("etag", u.ETag)
	s.text("modified", u.LastModified)
	s.line("robots.txt", "%s", verdictText(&u.Robots))
	s.line("", "%s", standingText(&u.Robots.Record))
	if u.Host.State == inspect.StateUnknown {
		s.line("host", "%s: not known", u.Host.Host)
		_, err := io.WriteString(w, s.String())
		return err
	}
	s.line("host", "%s: %s, next %s", u.Host.Host, u.Host.State, nextText(&u.Host, now))
	_, err := io.WriteString(w, s.String())
	return err
}

// text is a line with a stranger's text; none where there is nothing to say.
func (s *story) text(label, text string) {
	if text != "" {
		s.line(label, "%s", printable(text))
	}
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

// found says how the URL came into the frontier.
func (s *story) found(u *inspect.URLStory) {
	s.line("first seen", "%s", s.at(u.FirstSeen))
	text := fmt.Sprintf("%d", u.Depth)
	if u.Redirects > 0 {
		text += ", behind " + plural(u.Redirects, "redirect")
	}
	switch {
	case u.Seed:
		text += ", a seed"
	case u.Via != "":
		text += ", found on " + u.Via
	}
	s.line("depth", "%s", text)
	for _, step := range u.Chain[min(len(u.Chain), 1):] {
		s.line("", "which was found on %s", step.URL)
	}
	if u.Priority != 0 {
		s.line("priority", "%d", u.Priority)
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
		return fmt.Sprintf("%s by line %d: %s", text, v.Line, printable(v.Rule))
	}
	return text + ": " + v.Reason
}
