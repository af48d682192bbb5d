// Package leasebook keeps the page leases that fetchers outside of the process have: which are out, until
// when, who has them, and what is stored of them over a restart.
package leasebook

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Record is what is kept of a lease over a restart: in a line of the start ledger, and later in a mark.
type Record struct {
	ID       string        `json:"id"`
	Fetcher  string        `json:"fetcher"`
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

// NoteLease begins the note of a lease in the start ledger, NoteAgain that of one with Again, and
// NoteReport that of the work on its report: a process may die of that as of a response.
const NoteLease, NoteAgain, NoteReport = "lease", "again", "report"

// Note returns the note of a lease in the start ledger: that of other requests, with the id, the fetcher
// and the deadline in Unix milliseconds before the URL.
func (r *Record) Note(kind string) string {
	return fmt.Sprintf("%s,%d,%s,%s/%s/%d,%s", kind, r.Line, r.Version, r.ID, r.Fetcher, r.Deadline.UnixMilli(), r.URL)
}

// Parse makes a record of a line of the start ledger; false: its note is not of that kind.
func Parse(kind string, s storage.Start, offset uint64) (r Record, ok bool) {
	parts := strings.SplitN(s.Note, ",", 5)
	if len(parts) != 5 || parts[0] != kind {
		return r, false
	}
	line, lineErr := strconv.Atoi(parts[1])
	of := strings.Split(parts[3], "/")
	if len(of) != 3 || lineErr != nil {
		return r, false
	}
	deadline, err := strconv.ParseInt(of[2], 10, 64)
	if err != nil {
		return r, false
	}
	return Record{
		ID: of[0], Fetcher: of[1], URL: parts[4], Address: s.Address, Given: s.At,
		Deadline: time.UnixMilli(deadline), Delay: s.Delay, Line: line, Version: parts[2], Offset: offset,
		Again: kind == NoteAgain,
	}, true
}

// Request is the request of a lease, as far as it is known; false: its URL is none.
func (r *Record) Request() (q requestlog.Request, ok bool) {
	u, err := weburl.Parse(r.URL)
	if err != nil {
		return q, false
	}
	q = requestlog.Request{URL: u, Sent: true, Start: r.Given, Decided: r.Given, Delay: r.Delay, Line: r.Line,
		Allowed: true, LedgerOffset: r.Offset, Fetcher: r.Fetcher}
	if v, err := robots.ParseVersion(r.Version); err == nil {
		q.Policy = &requestlog.Policy{Version: v}
	}
	q.Address, _ = netip.ParseAddr(r.Address) // invalid: none is known
	return q, true
}
