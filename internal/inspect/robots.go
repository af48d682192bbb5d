package inspect

import (
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
)

// Robots is what is known of one origin's robots.txt.
type Robots struct {
	Class            string    `json:"class"`             // what the last fetch came to; "never fetched"
	Status           int       `json:"status,omitempty"`  // of the last attempt
	Failure          string    `json:"failure,omitempty"` // of the last attempt
	Fetched          time.Time `json:"fetched,omitzero"`
	Expires          time.Time `json:"expires,omitzero"`
	Refresh          time.Time `json:"refresh,omitzero"` // when it is asked for again
	FirstUnreachable time.Time `json:"first_unreachable,omitzero"`
	Failures         int       `json:"failures,omitempty"` // in a row
	FinalURL         string    `json:"final_url,omitempty"`
	Group            string    `json:"group,omitempty"` // that applies
	Rules            int       `json:"rules"`
	CrawlDelay       *float64  `json:"crawl_delay_seconds"` // null: none is asked for
	CrawlDelayLine   int       `json:"crawl_delay_line,omitempty"`
	CrawlDelayText   string    `json:"crawl_delay_text,omitempty"`
	DisallowsAll     bool      `json:"disallows_all,omitempty"`
	Standing         string    `json:"standing"` // what it means for pages now: fetch, ask, hold
	Until            time.Time `json:"until,omitzero"`
}

// policy is a stored robots record, read.
type policy struct {
	known    bool
	record   robots.Record
	rules    *robots.Rules
	standing robots.Standing
}

// policy reads what is stored for an origin. One that cannot be read counts as never fetched, as it does for the crawl.
func (v *View) policy(o weburl.Origin) (policy, error) {
	var p policy
	encoded, err := v.store.Policy(o)
	if err != nil {
		return p, err
	}
	if len(encoded) > 0 {
		if record, err := robots.DecodeRecord(encoded); err == nil {
			p.record, p.known = record, true
		}
	}
	p.rules = p.record.Rules(v.o.Tokens...)
	p.standing = v.o.Robots.Standing(p.record, 0, v.o.Now())
	return p, nil
}

// closes reports whether nothing of the origin may be asked.
func (p *policy) closes() bool {
	return p.known && (p.standing.Kind == robots.StandingHold || p.standing.Kind == robots.StandingAsk && p.rules.DisallowsAll())
}

// why names what closes the origin.
func (p *policy) why() string {
	if p.standing.Kind == robots.StandingHold {
		return p.standing.Reason.String()
	}
	return robots.ReasonRule.String()
}

func (p *policy) describe() Robots {
	r := Robots{
		Class: p.record.Class.String(), Status: p.record.Status, Fetched: p.record.Fetched.UTC(), Expires: p.record.Expires.UTC(),
		Refresh: p.record.Refresh.UTC(), FirstUnreachable: p.record.FirstUnreachable.UTC(), Failures: p.record.Failures,
		FinalURL: p.record.FinalURL, Group: p.rules.Group(), Rules: p.rules.Len(),
		Standing: p.standing.Kind.String(), Until: p.standing.Until.UTC(),
	}
	if p.record.Failure != robots.FailureNone {
		r.Failure = p.record.Failure.String()
	}
	if !p.known {
		return r
	}
	r.DisallowsAll = p.rules.DisallowsAll()
	if delay, ok := p.rules.CrawlDelay(); ok {
		seconds := delay.Seconds()
		r.CrawlDelay = &seconds
		r.CrawlDelayLine = p.rules.Pace().Line
		r.CrawlDelayText = robots.LineText(p.record.Body, r.CrawlDelayLine)
	}
	return r
}
