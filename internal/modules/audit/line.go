//go:build !core

package audit

import (
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
)

// Line is one request with its finding, as it is printed and sent.
type Line struct {
	At         time.Time `json:"at"` // when it began
	Host       string    `json:"host"`
	Address    string    `json:"address"`
	Method     string    `json:"method"`
	URL        string    `json:"url"`
	Kind       string    `json:"kind"`                // page, robots
	For        string    `json:"for,omitempty"`       // the origin that the robots.txt is for, if it is another one
	Status     int       `json:"status,omitempty"`    // of the response; 0: there was none
	Failure    string    `json:"failure,omitempty"`   // why there was no response
	NoEnd      bool      `json:"no_end,omitempty"`    // its end is unknown: the process was killed
	Fetcher    string    `json:"fetcher,omitempty"`   // outside of amble, that made it
	Lease      string    `json:"lease,omitempty"`     // the id of its lease
	Again      bool      `json:"again,omitempty"`     // made again because a killed process could not commit it
	Seconds    float64   `json:"seconds"`             // duration
	Bytes      uint64    `json:"bytes"`               // received
	Agent      string    `json:"user_agent"`          // sent
	RetryAfter float64   `json:"retry_after_seconds"` // of the response; 0: none

	Gap        *float64 `json:"gap_seconds"`   // since the end of the last request to the host; null: there was none
	Exact      bool     `json:"gap_exact"`     // false: by the wall clock
	Delay      float64  `json:"delay_seconds"` // in force
	Reason     string   `json:"delay_reason"`  // the sign that decides it
	DelayLine  int      `json:"delay_line,omitempty"`
	DelayText  string   `json:"delay_text,omitempty"` // that line of the robots.txt
	WaitReason string   `json:"wait_reason"`          // the sign that the host waited for last

	Allowed  *bool  `json:"allowed,omitempty"` // by the robots.txt in force, judged now; null: a robots.txt, or unknown
	Verdict  string `json:"verdict,omitempty"` // why: rule, no rule, unavailable...
	Rule     string `json:"rule,omitempty"`    // the line that decides
	RuleLine int    `json:"rule_line,omitempty"`
	Version  string `json:"robots_version,omitempty"` // the start of the SHA-256 of the robots.txt

	Violations []Violation `json:"violations,omitempty"`
}

// NewLine describes a request.
func NewLine(q *requestlog.Request, f *Finding) Line {
	l := Line{
		At: q.Start, Host: q.URL.Host(), Address: q.Address.String(), Method: q.Method.String(), URL: q.URL.String(),
		Kind: q.Kind.String(),
		For:  q.For.String(), Status: q.Status, NoEnd: q.End.IsZero(), Again: q.Again, Fetcher: q.Fetcher,
		Lease: q.Lease, Bytes: q.Bytes,
		Agent:      q.Process.Agent,
		RetryAfter: q.RetryAfter.Seconds(), Exact: f.Exact, Delay: max(q.Delay, 0).Seconds(),
		Reason: q.DelayReason.String(), WaitReason: q.Reason.String(),
		DelayLine: f.DelayLine, DelayText: f.DelayText, Violations: f.Violations,
	}
	if !l.NoEnd {
		l.Seconds = q.End.Sub(q.Start).Seconds()
		if q.Status == 0 {
			l.Failure = q.Failure.String()
		}
	}
	if f.HasGap {
		gap := f.Gap.Seconds()
		l.Gap = &gap
	}
	if q.Kind == requestlog.Page && f.class != "" && !f.Unproven {
		l.Allowed, l.Verdict, l.Rule, l.RuleLine = &f.Verdict.Allowed, f.Verdict.Reason.String(), f.Rule, f.Verdict.Line
	}
	if q.Policy != nil && !q.Policy.Version.IsZero() {
		l.Version = q.Policy.Version.String()
	}
	return l
}
