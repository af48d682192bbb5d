package audit

import (
	"time"

	"github.com/amble-crawler/amble/robots"
)

// Finding is what an audit found out about one request.
type Finding struct {
	HasGap bool          // there is a request to the host before it
	Gap    time.Duration // since that one ended; negative: they were under way together
	Exact  bool          // Gap was measured by a clock that nobody can set

	Verdict   robots.Verdict // of the robots package, now; of pages whose robots.txt is known
	Rule      string         // the line of the robots.txt that decides, as it is written; "" where none does
	DelayLine int            // the line of the robots.txt that asks for the longest delay; 0: none does
	DelayText string         // as it is written
	Unproven  bool           // the robots.txt that allowed the page is not in the log

	Violations []Violation

	class  string         // what the fetch of the robots.txt came to
	visits []robots.Visit // the hours that it allows
}

// Kind says what should not have happened.
type Kind string

// The kinds of violations.
const (
	ShortGap    Kind = "gap"          // less than the delay in force since the request before
	EarlyReturn Kind = "retry-after"  // before the time at which the host asked to be asked again
	NoVerdict   Kind = "no-verdict"   // a page without a robots.txt that allows it
	Disallowed  Kind = "disallowed"   // a page that its robots.txt disallows
	NotInForce  Kind = "not-in-force" // a page allowed by a robots.txt that was to be asked for again first
	SlowDelay   Kind = "crawl-delay"  // the delay in force was less than the robots.txt asks for
	WrongHour   Kind = "visit-time"   // outside of the hours that the robots.txt allows
)

// Violation is something that should not have happened.
type Violation struct {
	Kind Kind      `json:"kind"`
	Host string    `json:"host"`
	URL  string    `json:"url"`
	At   time.Time `json:"at"` // when the request began
	Text string    `json:"text"`
}

func (f *Finding) violated(k Kind, text string) {
	f.Violations = append(f.Violations, Violation{Kind: k, Text: text})
}
