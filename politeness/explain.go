package politeness

import (
	"fmt"
	"strings"
	"time"
)

// ParkedAfter is the length of a hold beyond which a host counts as parked, and is worth reporting.
const ParkedAfter = 7 * 24 * time.Hour

// Explanation says why a host may not be asked before an instant.
type Explanation struct {
	Reason       Reason        // the sign that decides
	Since        time.Time     // when its wait began; zero: there is none
	Until        time.Time     // Host.Ready
	Delay        time.Duration // the delay in force between requests
	DelayReason  Reason        // the sign that asks for Delay
	Backoff      int           // the back-off level; 0: none
	TroubleSince time.Time     // end of the first request that failed; zero: all is well
	Parked       bool          // the wait is a hold of more than ParkedAfter
}

// Explain says which sign decides [Host.Ready], and all that an operator would ask next.
func (h *Host) Explain() Explanation {
	w := h.wait()
	delay, delayReason := h.delay()
	return Explanation{
		Reason:       w.reason,
		Since:        w.since,
		Until:        w.until,
		Delay:        delay,
		DelayReason:  delayReason,
		Backoff:      int(h.trouble.level),
		TroubleSince: h.trouble.since,
		Parked:       w.until.Equal(h.hold.until) && h.hold.length > ParkedAfter,
	}
}

var reasonTexts = [...]string{
	ReasonNone:       "nothing asks for a wait",
	ReasonDelay:      "the configured delay",
	ReasonCrawlDelay: "the Crawl-delay or Request-rate of its robots.txt",
	ReasonAdaptive:   "the time its last answer took",
	ReasonErrors:     "a longer delay after errors",
	ReasonRetryAfter: "its Retry-After header",
	ReasonBackoff:    "a back-off after errors",
	ReasonRestart:    "requests that may have reached it before the crawler restarted",
}

// text is the reason as a noun phrase.
func (r Reason) text() string {
	if int(r) < len(reasonTexts) {
		return reasonTexts[r]
	}
	return r.String()
}

// String is the explanation in one line of English, its instants in UTC.
func (e Explanation) String() string {
	var b strings.Builder
	if e.Since.IsZero() {
		b.WriteString("may be asked at any time")
	} else {
		fmt.Fprintf(&b, "not before %s, since %s: %s", stamp(e.Until), stamp(e.Since), e.Reason.text())
	}
	if e.Delay > 0 {
		fmt.Fprintf(&b, "; %v between requests", e.Delay)
		if e.DelayReason != e.Reason {
			fmt.Fprintf(&b, " (%s)", e.DelayReason.text())
		}
	}
	if e.Backoff > 0 {
		fmt.Fprintf(&b, "; back-off level %d of %d", e.Backoff, maxLevel)
	}
	if !e.TroubleSince.IsZero() {
		fmt.Fprintf(&b, "; in trouble since %s", stamp(e.TroubleSince))
	}
	if e.Parked {
		b.WriteString("; parked")
	}
	return b.String()
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") }
