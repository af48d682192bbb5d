package inspect

import (
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// Robots is what is known of one origin's robots.txt.
type Robots struct {
	Class            string    `json:"class"`             // result of the last fetch; "never fetched"
	Status           int       `json:"status,omitempty"`  // of the last attempt
	Failure          string    `json:"failure,omitempty"` // of the last attempt
	Fetched          time.Time `json:"fetched,omitzero"`
	Expires          time.Time `json:"expires,omitzero"`
	Refresh          time.Time `json:"refresh,omitzero"` // when it is fetched again
	FirstUnreachable time.Time `json:"first_unreachable,omitzero"`
	Failures         int       `json:"failures,omitempty"` // in a row
	FinalURL         string    `json:"final_url,omitempty"`
	Group            string    `json:"group,omitempty"` // that applies
	Rules            int       `json:"rules"`
	CrawlDelay       *float64  `json:"crawl_delay_seconds"` // null: there is none
	CrawlDelayLine   int       `json:"crawl_delay_line,omitempty"`
	CrawlDelayText   string    `json:"crawl_delay_text,omitempty"`
	DisallowsAll     bool      `json:"disallows_all,omitempty"`
	Decision         string    `json:"standing"` // robots decision for pages now: fetch, ask (match the rules), hold
	Until            time.Time `json:"until,omitzero"`
}

// policy is a decoded robots record.
type policy struct {
	known    bool
	record   robots.Record
	rules    *robots.Rules
	hostView robots.Decision
}

// policy reads the robots record of an origin. A record that cannot be read counts as never
// fetched, as it does for the crawl.
func (v *records) policy(o weburl.Origin) (policy, error) {
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
	p.hostView = v.o.Robots.Decide(p.record, 0, v.o.Now())
	return p, nil
}

// closes reports whether no page of the origin may be fetched.
func (p *policy) closes() bool {
	return p.known && (p.hostView.Kind == robots.DecisionHold || p.hostView.Kind == robots.DecisionMatch &&
		p.rules.DisallowsAll())
}

// why names the reason for which the origin is closed.
func (p *policy) why() string {
	if p.hostView.Kind == robots.DecisionHold {
		return p.hostView.Reason.String()
	}
	return robots.ReasonRule.String()
}

func (p *policy) describe() Robots {
	r := Robots{
		Class: p.record.Class.String(), Status: p.record.Status, Fetched: p.record.Fetched.UTC(),
		Expires: p.record.Expires.UTC(),
		Refresh: p.record.Refresh.UTC(), FirstUnreachable: p.record.FirstUnreachable.UTC(), Failures: p.record.Failures,
		FinalURL: p.record.FinalURL, Group: p.rules.Group(), Rules: p.rules.Len(),
		Decision: p.hostView.Kind.String(), Until: p.hostView.Until.UTC(),
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

// RobotsText is the robots.txt of an origin in force, and its earlier versions.
type RobotsText struct {
	Origin  string          `json:"origin"`
	Robots  Robots          `json:"robots"`
	Version string          `json:"version,omitempty"` // of the file, by its content; absent: there is none
	Text    string          `json:"text"`              // the rules in force; invalid UTF-8 is replaced
	Earlier []EarlierRobots `json:"earlier"`           // newest first
}

// EarlierRobots is a version of a robots.txt that was in force before.
type EarlierRobots struct {
	Class     string    `json:"class"`             // what the response meant
	Version   string    `json:"version,omitempty"` // as above
	Bytes     int       `json:"bytes"`             // of the file
	Confirmed time.Time `json:"confirmed,omitzero"`
	Replaced  time.Time `json:"replaced"`           // when another response replaced it
	Text      string    `json:"text"`               // empty if it was too long to keep
	TooLong   bool      `json:"too_long,omitempty"` // it was
}

// RobotsText returns the stored robots.txt of an origin. A robots.txt that was never fetched has no
// text.
func (v *records) RobotsText(o weburl.Origin) (RobotsText, error) {
	p, err := v.policy(o)
	if err != nil {
		return RobotsText{}, err
	}
	t := RobotsText{Origin: o.String(), Robots: p.describe(), Version: versionName(p.rules.Version()),
		Text: plainText(p.record.Body)}
	t.Earlier, err = v.earlierRobots(o)
	return t, err
}

// earlierRobots returns the versions that were in force before. If they cannot be read there are
// none, as for the crawl.
func (v *records) earlierRobots(o weburl.Origin) ([]EarlierRobots, error) {
	list := []EarlierRobots{}
	encoded, err := v.store.RobotsHistory(o)
	if err != nil {
		return list, err
	}
	earlier, err := robots.DecodeHistory(encoded)
	if err != nil {
		return list, nil
	}
	for _, p := range earlier {
		list = append(list, EarlierRobots{
			Class: p.Class.String(), Version: versionName(p.Version), Bytes: p.Size, Confirmed: p.Confirmed.UTC(),
			Replaced: p.Replaced.UTC(),
			Text:     plainText(p.Body), TooLong: p.Size > len(p.Body),
		})
	}
	return list, nil
}

// versionName formats a version; it is empty if there is no file.
func versionName(v robots.Version) string {
	if v.IsZero() {
		return ""
	}
	return v.String()
}

func plainText(body []byte) string { return strings.ToValidUTF8(string(body), "\uFFFD") }

// Checked is the verdict of the stored robots.txt about a URL.
type Checked struct {
	URL string `json:"url"` // in its canonical form
	Verdict
}

// CheckRobots returns the verdicts of robots.txt about URLs, which may have several origins.
func (v *records) CheckRobots(urls []weburl.URL) ([]Checked, error) {
	policies := make(map[weburl.Origin]policy)
	list := make([]Checked, 0, len(urls))
	for _, u := range urls {
		p, read := policies[u.Origin()]
		if !read {
			var err error
			if p, err = v.policy(u.Origin()); err != nil {
				return nil, err
			}
			policies[u.Origin()] = p
		}
		list = append(list, Checked{URL: u.String(), Verdict: p.verdict(u)})
	}
	return list, nil
}
