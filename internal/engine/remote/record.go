//go:build !core

// Package remote has the page leases of fetchers outside of the process: what a fetcher requests and reports, which
// leases are out, until when and who has them, and what is stored of them over a restart. The engine gives them
// (internal/engine/crawl), the API and the service of URLFrontier pass them on.
package remote

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// Record is a lent URL: who has it, until when, and by which robots.txt. It is kept over a restart in a
// line of the start ledger, and later in a mark. Its ID names it everywhere, in the request log too.
type Record struct {
	ID       string        `json:"id"`
	Fetcher  string        `json:"fetcher"`
	Key      string        `json:"key,omitempty"` // of the queue that the client has put its host in; empty: none
	URL      string        `json:"url"`
	Address  string        `json:"address,omitempty"`
	Given    time.Time     `json:"given"`
	Deadline time.Time     `json:"deadline"`
	Delay    time.Duration `json:"delay"`
	Line     int           `json:"line,omitempty"`
	Version  string        `json:"version,omitempty"` // of the robots.txt that allowed it
	Offset   uint64        `json:"offset"`            // of its last line in the start ledger
	// Again says that the last outcome of the URL is of the second in which it was given. The store
	// keeps seconds, so the outcome alone would not tell whether it came before the lease or ended it.
	Again bool `json:"again,omitempty"`
}

// Mark begins the names of the marks of leases; the id follows.
const Mark = "lease/"

// Left is for how long a lease is still out. A clock that was set back does not prolong it.
func (r *Record) Left(now time.Time) time.Duration {
	return min(r.Deadline.Sub(now), r.Deadline.Sub(r.Given))
}

// Encode returns the value of the mark of a lease.
func (r *Record) Encode() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and times can be encoded
	}
	return text
}

// Decode is the inverse of Encode. The error is storage.ErrCorrupt, with the name of the mark.
func Decode(mark string, value []byte) (r Record, err error) {
	if err := json.Unmarshal(value, &r); err != nil || Mark+r.ID != mark {
		return r, fmt.Errorf("mark %s: %w", mark, storage.ErrCorrupt)
	}
	return r, nil
}

// The kinds of notes of a lease in the start ledger: it was given or its deadline moved; the same, with
// Again; its request has ended, and its report is worked on: a process may die of that as of a response; it
// has ended without a report, and the request log has its request if there was one.
const NoteLease, NoteAgain, NoteReport, NoteEnd = "lease", "again", "report", "end"

// Note returns the note of a lease in the start ledger: that of other requests, with what names the lease
// before the URL. The ledger itself counts milliseconds only.
func (r *Record) Note(kind string) string {
	b := make([]byte, 0, 160+len(r.URL)+len(r.Key))
	b = append(strconv.AppendInt(append(append(b, kind...), ','), int64(r.Line), 10), ',')
	b = append(append(append(append(append(b, r.Version...), ','), r.ID...), '/'), r.Fetcher...)
	for _, n := range []int64{r.Deadline.UnixNano(), r.Given.UnixNano(), int64(r.Delay)} {
		b = strconv.AppendInt(append(b, '/'), n, 10)
	}
	b = append(append(append(b, '/'), url.QueryEscape(r.Key)...), ',')
	return string(append(b, r.URL...))
}

// Parse makes a record of a line of the start ledger; kind is that of its note, and empty if it is none of a
// lease. Earlier versions wrote the deadline alone, in milliseconds.
func Parse(s starts.Start, offset uint64) (kind string, r Record) {
	parts := strings.SplitN(s.Note, ",", 5)
	if len(parts) != 5 || !slices.Contains([]string{NoteLease, NoteAgain, NoteReport, NoteEnd}, parts[0]) {
		return "", r
	}
	line, err := strconv.Atoi(parts[1])
	of := strings.Split(parts[3], "/")
	if err != nil || len(of) != 3 && len(of) != 6 {
		return "", r
	}
	r = Record{
		ID: of[0], Fetcher: of[1], URL: parts[4], Address: s.Address, Given: s.At, Delay: s.Delay, Line: line,
		Version: parts[2], Offset: offset, Again: parts[0] == NoteAgain,
	}
	times := make([]int64, min(len(of)-2, 3))
	for i := range times {
		if times[i], err = strconv.ParseInt(of[2+i], 10, 64); err != nil {
			return "", r
		}
	}
	if len(times) == 1 {
		r.Deadline = time.UnixMilli(times[0])
		return parts[0], r
	}
	r.Deadline, r.Given, r.Delay = time.Unix(0, times[0]), time.Unix(0, times[1]), time.Duration(times[2])
	if r.Key, err = url.QueryUnescape(of[5]); err != nil {
		return "", r
	}
	return parts[0], r
}

// Request is the request of a lease, as far as it is known; false: its URL is none.
func (r *Record) Request() (q requestlog.Request, ok bool) {
	u, err := weburl.Parse(r.URL)
	if err != nil {
		return q, false
	}
	q = requestlog.Request{URL: u, Sent: true, Start: r.Given, Decided: r.Given, Delay: r.Delay, Line: r.Line,
		Allowed: true, LedgerOffset: r.Offset, Fetcher: r.Fetcher, Lease: r.ID}
	if v, err := robots.ParseVersion(r.Version); err == nil {
		q.Policy = &requestlog.Policy{Version: v}
	}
	q.Address, _ = netip.ParseAddr(r.Address) // invalid: none is known
	return q, true
}
