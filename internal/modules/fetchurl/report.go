//go:build !core

// Package fetchurl fetches a URL now, within the politeness of the crawl, and shows all that a crawl learns of it:
// amble fetch, and the operation of the API behind it. docs/FETCH.md describes it.
package fetchurl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// Outcome is what a fetch came to.
type Outcome string

// The outcomes.
const (
	Fetched    Outcome = "fetched"    // there is a response with a status below 300, or a 304
	Redirected Outcome = "redirected" // it leads to another URL, which was not fetched with it
	Refused    Outcome = "refused"    // there is a response with a status of 400 or more
	Wall       Outcome = "wall"       // there is a response, which is the challenge of a wall
	Failed     Outcome = "failed"     // there was a request, and no response
	Disallowed Outcome = "disallowed" // by robots.txt: no request was made
	Held       Outcome = "held"       // no robots.txt could be read: no request was made
	OptedOut   Outcome = "opted_out"  // no request was made
	Usage      Outcome = "usage"      // consent.* refuses the page for what its origin says: no request was made
	Waiting    Outcome = "waiting"    // its host may not be requested from yet: no request was made
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Fetched, Redirected, Refused, Wall, Failed, Disallowed, Held, OptedOut, Usage, Waiting}
}

// Schema implements huma.SchemaProvider.
func (Outcome) Schema(huma.Registry) *huma.Schema {
	all := make([]any, 0, len(Outcomes()))
	for _, o := range Outcomes() {
		all = append(all, string(o))
	}
	return &huma.Schema{Type: huma.TypeString, Enum: all}
}

// FetchedURL is all that is known of one fetch. It is the JSON of the API and of amble fetch --json.
type FetchedURL struct {
	URL      string       `json:"url"`
	Outcome  Outcome      `json:"outcome"`
	Reason   string       `json:"reason,omitempty" doc:"of the outcome, for people"`
	Until    time.Time    `json:"until,omitzero" doc:"of waiting and held: when it may go on"`
	Robots   *URLRobots   `json:"robots,omitempty" doc:"what robots.txt says; absent: it was not looked at"`
	Request  *URLRequest  `json:"request,omitempty" doc:"absent: none was made"`
	Response *URLResponse `json:"response,omitempty" doc:"absent: there was none"`
	// Page is the line that the output of a crawl would have.
	Page    json.RawMessage `json:"page,omitempty" doc:"the line that the output of a crawl would have"`
	Links   []URLLink       `json:"links,omitempty" doc:"of an HTML page"`
	Ignored int             `json:"refused_links,omitempty" doc:"references that are no http or https URL"`
}

// URLRobots is what robots.txt says about the URL.
type URLRobots struct {
	URL     string    `json:"url" doc:"where it came from"`
	Class   string    `json:"class" doc:"as in amble hosts"`
	Status  int       `json:"status,omitempty"`
	Failure string    `json:"failure,omitempty"`
	Fetched time.Time `json:"fetched,omitzero"`
	Verdict string    `json:"verdict" enum:"allowed,disallowed,none"`
	Line    int       `json:"line,omitempty" doc:"that gave the verdict; absent: none did"`
	Rule    string    `json:"rule,omitempty" doc:"the text of the line"`
	Why     string    `json:"why,omitempty" doc:"of a verdict without a line"`
	Group   string    `json:"group,omitempty" doc:"the product token of the group that applies"`
	Delay   float64   `json:"crawl_delay,omitempty" doc:"in seconds"`
}

// URLRequest is the request as it was made.
type URLRequest struct {
	At          time.Time `json:"at"`
	Address     string    `json:"address,omitempty"`
	Delay       float64   `json:"delay" doc:"between requests to the host, in seconds"`
	DelayReason string    `json:"delay_reason,omitempty"`
	Gap         float64   `json:"gap,omitempty" doc:"seconds since the last request to the host"`
}

// URLResponse is the response without its body.
type URLResponse struct {
	Status    int         `json:"status"`
	Protocol  string      `json:"protocol"`
	Header    http.Header `json:"header"`
	FirstByte float64     `json:"first_byte_ms"`
	Duration  float64     `json:"duration_ms"`
	Received  uint64      `json:"received" doc:"bytes"`
	Bytes     int64       `json:"bytes" doc:"of the decoded body"`
	Wall      string      `json:"wall,omitempty" doc:"the make of the wall whose challenge it is"`
}

// URLLink is a link of a page.
type URLLink struct {
	To       string `json:"to"`
	Kind     string `json:"kind"`
	NoFollow bool   `json:"nofollow,omitempty"`
}

// mostLinks bounds the links of a report.
const mostLinks = 10_000

// NewReport describes a visit that has ended.
func NewReport(x *crawl.Visit) (*FetchedURL, error) {
	r := &FetchedURL{URL: x.URL.String()}
	if r.Robots = robotsOf(x); x.OptOut != "" {
		r.Outcome, r.Reason, r.Robots = OptedOut, x.OptOut, nil
		return r, nil
	}
	switch {
	case x.Decided.Kind != robots.DecisionMatch:
		r.Outcome, r.Until = Held, x.Decided.Until
		r.Reason = "robots.txt cannot be read, so nothing of this origin is fetched"
		return r, nil
	case x.Usage:
		r.Outcome, r.Reason = Usage, "what the origin says about the use of its pages, and consent.*, exclude it"
		return r, nil
	case !x.Request.Sent && x.Failure == nil && !x.Verdict.Allowed:
		r.Outcome, r.Reason = Disallowed, "robots.txt disallows it"
		return r, nil
	}
	r.Request = requestOf(x)
	if err := r.describe(x); err != nil {
		return nil, err
	}
	switch status := x.Page.Status; {
	case x.Failure != nil || x.Header == nil:
		r.Outcome, r.Reason = Failed, x.Page.Error
	case x.Wall != "":
		r.Outcome, r.Reason = Wall, "the response is the challenge of a wall: "+x.Wall
	case x.Page.Redirect != "":
		r.Outcome, r.Reason = Redirected, "to "+x.Page.Redirect
	case status >= http.StatusBadRequest:
		r.Outcome, r.Reason = Refused, fmt.Sprintf("%d %s", status, http.StatusText(status))
	default:
		r.Outcome = Fetched
	}
	return r, nil
}

// Target returns where the response redirects to; an error: it is no URL that can be fetched.
func (r *FetchedURL) Target() (weburl.URL, error) {
	var p struct {
		Redirect string `json:"redirect"`
	}
	if err := json.Unmarshal(r.Page, &p); err != nil {
		return weburl.URL{}, fmt.Errorf("the line of %s: %w", r.URL, err)
	}
	return weburl.Parse(p.Redirect)
}

// describe takes what a response, or its failure, brought.
func (r *FetchedURL) describe(x *crawl.Visit) (err error) {
	if r.Page, err = x.Page.Encode(); err != nil || x.Header == nil {
		return err
	}
	r.Response = &URLResponse{
		Status: x.Page.Status, Protocol: x.Proto, Header: x.Header, FirstByte: milliseconds(x.Page.FirstByte),
		Duration: milliseconds(x.Page.Duration), Received: x.Request.Bytes, Bytes: x.Page.Bytes, Wall: x.Wall,
	}
	if x.Document == nil {
		return nil
	}
	r.Ignored, r.Links = x.Document.Refused, []URLLink{}
	for i := range x.Document.Links[:min(len(x.Document.Links), mostLinks)] {
		l := &x.Document.Links[i]
		r.Links = append(r.Links, URLLink{l.URL.String(), l.Kind.String(), l.NoFollow})
	}
	return nil
}

func robotsOf(x *crawl.Visit) *URLRobots {
	r := &URLRobots{
		URL: x.Robots.FinalURL, Class: x.Robots.Class.String(), Status: x.Robots.Status, Fetched: x.Robots.Fetched,
		Verdict: "none",
	}
	if r.URL == "" {
		r.URL = x.URL.Origin().URL("/robots.txt").String()
	}
	if x.Robots.Class == robots.ClassUnreachable {
		r.Failure = x.Robots.Failure.String()
	}
	if x.Rules == nil || x.Decided.Kind != robots.DecisionMatch {
		return r
	}
	r.Group, r.Delay = x.Rules.Group(), x.Rules.Pace().Delay.Seconds()
	if r.Verdict = "disallowed"; x.Verdict.Allowed {
		r.Verdict = "allowed"
	}
	if r.Line = x.Verdict.Line; r.Line > 0 {
		r.Rule = robots.LineText(x.Robots.Body, r.Line)
	} else {
		r.Why = x.Verdict.Reason.String()
	}
	return r
}

func requestOf(x *crawl.Visit) *URLRequest {
	q := &x.Request
	r := &URLRequest{At: q.Start, Delay: q.Delay.Seconds(), DelayReason: q.DelayReason.String()}
	if q.Address.IsValid() {
		r.Address = q.Address.String()
	}
	if q.Gap > 0 {
		r.Gap = q.Gap.Seconds()
	}
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
