//go:build !core

package audit

import (
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/robots"
)

// Finding is the result of an audit for one request.
type Finding struct {
	HasGap bool          // there is an earlier request to the host
	Gap    time.Duration // since that request ended; negative: both were in flight
	Exact  bool          // Gap was measured by a clock that nobody can set

	Verdict   robots.Verdict // by the robots package of now; for pages whose robots.txt is known
	Rule      string         // the line of the robots.txt that decides, as written; "": none does
	DelayLine int            // the line of the robots.txt with the longest delay; 0: none
	DelayText string         // as written
	Unproven  bool           // the robots.txt that allowed the page is not in the log

	Violations []Violation

	class  string         // of the robots record
	visits []robots.Visit // the hours of the robots.txt
}

// Kind is the kind of a violation.
type Kind string

// The kinds of violations.
const (
	ShortGap    Kind = "gap"          // less than the delay in force since the last request
	EarlyReturn Kind = "retry-after"  // before the time that the host's Retry-After or RateLimit named
	NoVerdict   Kind = "no-verdict"   // a page without a robots.txt that allows it
	Disallowed  Kind = "disallowed"   // a page that its robots.txt disallows
	NotInForce  Kind = "not-in-force" // a page allowed by a robots.txt that had to be fetched again first, or confirmed
	SlowDelay   Kind = "crawl-delay"  // the delay in force was less than the robots.txt demands
	WrongHour   Kind = "visit-time"   // outside of the hours of the robots.txt
	BehindWall  Kind = "wall"         // within the backoff after a probe of a wall that failed
	OptedOut    Kind = "opt-out"      // after an opt-out that covers it
)

// Violation is a request that broke a rule.
type Violation struct {
	Kind Kind      `json:"kind"`
	Host string    `json:"host"`
	URL  string    `json:"url"`
	At   time.Time `json:"at"` // when the request began
	Text string    `json:"text"`
}

// optOutGrace is the time in which an opt-out comes into force.
const optOutGrace = time.Second

// optOut checks a request against the opt-outs.
func (f *Finding) optOut(q *requestlog.Request, list *optout.List) {
	e, covered := list.URL(q.URL, q.Start)
	if !covered {
		e, covered = list.Addr(q.Address, q.Start)
	}
	if covered && q.Start.After(e.At.Add(optOutGrace)) {
		f.violated(OptedOut, "an opt-out covers it: "+e.String())
	}
}

func (f *Finding) violated(k Kind, text string) {
	f.Violations = append(f.Violations, Violation{Kind: k, Text: text})
}
