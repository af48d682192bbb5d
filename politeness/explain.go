package politeness

import (
	"fmt"
	"strings"
	"time"
)

// ParkedAfter is the length of a hold beyond which a host counts as parked.
const ParkedAfter = 7 * 24 * time.Hour

// Explanation says why no request to a host may start before an instant.
type Explanation struct {
	Reason       Reason        // the sign that decides
	Source       Source        // where Reason comes from
	Since        time.Time     // when the wait began; zero: there is none, or it is unknown
	Until        time.Time     // Host.Ready
	Unpaused     time.Time     // Host.ReadyUnpaused
	Delay        time.Duration // the delay in force between requests
	DelayReason  Reason        // the sign that decides Delay
	DelaySource  Source        // where DelayReason comes from
	Backoff      int           // the backoff level; 0: none
	FailingSince time.Time     // end of the first request that failed; zero: the host is not failing
	Cause        uint16        // why the last request failed, as Result.Cause; 0: not known
	Parked       bool          // the host demands more than ParkedAfter, or its wall has a backoff of a day
	Forever      bool          // the operator has paused the host until further notice
}

// Source says where a sign comes from. At most one of its fields is set.
type Source struct {
	Line   Line   // of a robots.txt
	Header string // the value of Retry-After, RateLimit or RateLimit-Policy
	Name   string // of a setting or a shared limit: "politeness.overrides, item 2", "address 192.0.2.1"
}

// String returns the source in a few words, or nothing for the zero Source.
func (s Source) String() string {
	switch {
	case s.Line.Number > 0:
		return fmt.Sprintf("line %d", s.Line.Number)
	case s.Header != "":
		return fmt.Sprintf("%q", s.Header)
	}
	return s.Name
}

// Explain returns the sign that decides [Host.Ready], with what an operator needs to judge it.
func (h *Host) Explain(now time.Time) Explanation {
	always := h.delay()
	w, d := h.wait(always, now), h.delayAt(always, now)
	unpaused := w.until
	if h.options.Paused || h.holds.has(ReasonPause) {
		unpaused = h.ReadyUnpaused(now)
	}
	return Explanation{
		Reason:       w.reason,
		Source:       h.source(w.reason, w.line, w.header),
		Since:        w.since,
		Until:        w.until,
		Unpaused:     unpaused,
		Delay:        d.delay,
		DelayReason:  d.reason,
		DelaySource:  h.source(d.reason, d.line, ""),
		Backoff:      int(h.health.level),
		FailingSince: h.health.since,
		Cause:        h.health.cause,
		Parked: w.length > ParkedAfter && w.reason != ReasonPause ||
			w.reason == ReasonWall && w.length >= backoffLast,
		Forever: w.length == Forever && w.reason == ReasonPause,
	}
}

// source returns where a sign comes from.
func (h *Host) source(r Reason, line Line, header string) Source {
	switch {
	case r == ReasonDelay, r == ReasonPause && h.options.Paused:
		return Source{Name: h.options.Setting}
	case r == ReasonWall:
		return Source{Name: header}
	case r == ReasonRetryAfter, r == ReasonRateLimit:
		return Source{Header: header}
	case r == ReasonHours:
		return Source{Name: header}
	case r == ReasonRatePolicy:
		return Source{Header: h.policy.String()}
	}
	return Source{Line: line}
}

var reasonTexts = [...]string{
	ReasonNone:       "no wait is required",
	ReasonDelay:      "the configured delay",
	ReasonCrawlDelay: "the Crawl-delay of its robots.txt",
	ReasonAdaptive:   "the duration of its last request",
	ReasonErrors:     "a longer delay after errors",
	ReasonRetryAfter: "its Retry-After header",
	ReasonBackoff:    "a backoff after errors",
	ReasonRestart:    "requests that may have reached it before the crawler restarted",

	ReasonRequestRate: "the Request-rate of its robots.txt",
	ReasonVisitTime:   "the Visit-time of its robots.txt",
	ReasonPause:       "paused by the operator",
	ReasonSetDelay:    "the delay set by the operator",
	ReasonStart:       "hosts are started one after the other",
	ReasonLimit:       "a limit that it shares with other hosts",
	ReasonWall:        "a wall",
	ReasonRateLimit:   "its RateLimit header: nothing is left of its quota",
	ReasonRatePolicy:  "its RateLimit-Policy header",
	ReasonHours:       "outside of the hours that the operator allows",
}

// text returns the reason as a noun phrase.
func (r Reason) text() string {
	if int(r) < len(reasonTexts) {
		return reasonTexts[r]
	}
	return r.String()
}

// sentence returns a reason with its source.
func sentence(r Reason, s Source) string {
	if source := s.String(); source != "" {
		return r.text() + " (" + source + ")"
	}
	return r.text()
}

// String returns the explanation in one line of English, with instants in UTC.
func (e Explanation) String() string {
	var b strings.Builder
	switch {
	case e.Reason == ReasonNone || e.Since.IsZero() && !e.Forever:
		b.WriteString("may be fetched from at any time")
	case e.Forever:
		b.WriteString("not until it is resumed")
	default:
		b.WriteString("not before " + stamp(e.Until))
	}
	if e.Reason != ReasonNone {
		if !e.Since.IsZero() {
			b.WriteString(", since " + stamp(e.Since))
		}
		b.WriteString(": " + sentence(e.Reason, e.Source))
	}
	if e.Delay > 0 {
		fmt.Fprintf(&b, "; %v between requests", e.Delay)
		if e.DelayReason != e.Reason {
			fmt.Fprintf(&b, " (%s)", sentence(e.DelayReason, e.DelaySource))
		}
	}
	if e.Backoff > 0 {
		fmt.Fprintf(&b, "; backoff level %d of %d", e.Backoff, maxLevel)
	}
	if !e.FailingSince.IsZero() {
		fmt.Fprintf(&b, "; failing since %s", stamp(e.FailingSince))
	}
	if e.Parked {
		b.WriteString("; parked")
	}
	return b.String()
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") }
