package accesslog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
)

// Options say which lines and requests are compared.
type Options struct {
	Host    string        // of the site: only requests to it count
	Product string        // lines are the crawler's if their User-Agent has it
	Skew    time.Duration // by which the clock of the site may differ
}

// Difference is a line or a request without a counterpart.
type Difference struct {
	Line   int       `json:"line,omitempty"` // of the access log; 0: it is a request of the request log
	At     time.Time `json:"at"`
	Target string    `json:"target"`
	Status int       `json:"status,omitempty"`
}

// Report is the result of a comparison.
type Report struct {
	Lines     int          `json:"lines"`     // of the access log
	Unread    int          `json:"unread"`    // that are in neither format, or no GET
	Begin     time.Time    `json:"begin"`     // of the access log
	End       time.Time    `json:"end"`       //
	Matched   int          `json:"matched"`   // lines and requests that belong together
	Unknown   []Difference `json:"unknown"`   // lines of the crawler that the request log lacks
	Missing   []Difference `json:"missing"`   // requests that the access log lacks
	Uncertain int          `json:"uncertain"` // requests that a crash cut off: the site may have seen them
}

// Bounds of an access log.
const (
	maxLine  = 64 << 10
	maxLines = 10_000_000
)

// Matcher compares an access log with requests, which come in the order of their ends.
type Matcher struct {
	o       Options
	report  Report
	entries map[string][]*entry // by target, in the order of time
	used    map[*entry]bool
}

// Read reads an access log.
func Read(r io.Reader, o Options) (*Matcher, error) {
	m := &Matcher{o: o, entries: make(map[string][]*entry), used: make(map[*entry]bool)}
	product := strings.ToLower(o.Product)
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		text, err := lines.ReadSlice('\n')
		if len(text) == 0 && err == io.EOF {
			break
		}
		if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, fmt.Errorf("read the access log: %w", err)
		}
		if m.report.Lines++; m.report.Lines > maxLines {
			return nil, fmt.Errorf("the access log has more than %d lines: give a part of it", maxLines)
		}
		whole := !errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) { // a longer line is of no crawler
			_, err = lines.ReadSlice('\n')
		}
		e, ok := parse(string(text))
		if !ok || !whole {
			m.report.Unread++
			continue
		}
		e.number = m.report.Lines
		if m.report.Begin.IsZero() || e.at.Before(m.report.Begin) {
			m.report.Begin = e.at
		}
		if e.at.After(m.report.End) {
			m.report.End = e.at
		}
		if e.agent == "" || strings.Contains(strings.ToLower(e.agent), product) {
			m.entries[e.target] = append(m.entries[e.target], &e)
		}
	}
	for _, list := range m.entries {
		slices.SortStableFunc(list, func(a, b *entry) int { return a.at.Compare(b.at) })
	}
	return m, nil
}

// Add takes a request of the request log.
func (m *Matcher) Add(q *requestlog.Request) {
	if q.URL.Host() != m.o.Host || !q.Sent && !q.End.IsZero() {
		return
	}
	// A line has whole seconds, and the time of the begin or of the end.
	from, to := q.Start.Add(-m.o.Skew-time.Second), q.End.Add(m.o.Skew)
	if q.End.IsZero() {
		to = q.Start.Add(m.o.Skew + time.Hour)
	}
	target, status := q.URL.RequestURI(), q.Status
	for _, e := range m.entries[target] {
		if m.used[e] || e.at.Before(from) || e.at.After(to) || status != 0 && status != e.status {
			continue
		}
		m.used[e] = true
		m.report.Matched++
		return
	}
	switch {
	case q.End.IsZero() || status == 0:
		m.report.Uncertain++
	case q.Start.After(m.report.Begin.Add(m.o.Skew)) && q.End.Before(m.report.End.Add(-m.o.Skew)):
		m.report.Missing = append(m.report.Missing, Difference{At: q.Start, Target: target, Status: status})
	}
}

// Report returns the result, when all requests were added. Requests near the begin and the end of the access log are
// not missed.
func (m *Matcher) Report() *Report {
	for _, list := range m.entries {
		for _, e := range list {
			if !m.used[e] && e.agent != "" {
				m.report.Unknown = append(m.report.Unknown,
					Difference{Line: e.number, At: e.at, Target: e.target, Status: e.status})
			}
		}
	}
	slices.SortFunc(m.report.Unknown, func(a, b Difference) int { return a.Line - b.Line })
	return &m.report
}
