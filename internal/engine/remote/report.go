//go:build !core

package remote

import (
	"net/http"
	"time"

	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Bounds of reports. One that exceeds them is Invalid.
const (
	MaxReportHeader = 64 << 10 // bytes of all fields
	MaxReportLinks  = 20_000
	MaxReportBody   = 64 << 20 // bytes
)

// Report is the result of a remote lease. Everything in it is taken as hostile: what is out of
// bounds is refused or bounded to the polite side.
type Report struct {
	Fetcher string
	ID      ID // empty: the lease of URL, whichever it is
	URL     weburl.URL

	// NotDone gives the lease back: the URL goes to the head of its queue. If Sent is false, nothing
	// left the fetcher, and the host is not charged.
	NotDone bool
	Sent    bool

	// Took is how long the request took; 0, or longer than the lease is old: since that was given.
	// The request ends with the arrival of the report, so that no clock and no fetcher can make the
	// delay of the host begin too early.
	Took time.Duration

	Status int         // of the response; 0: there was none, and Failure says why
	Header http.Header // of the response; only fields that amble uses are kept
	// Failure says why there was no response: fetch.Kind.String is its name in the API.
	Failure fetch.Kind

	// Body is the decoded body. At most Lease.MaxBody of its bytes count. Without it Links,
	// Title and Digest are what is known of the page.
	Body    []byte
	HasBody bool
	Links   []string // relative or absolute, as on the page
	Title   string
	Digest  digest.Digest // SHA-256 of the body; zero: not known, so that the page counts as changed

	// Captures are what went over the wire, for web archives: the page itself, and what it has caused.
	Captures []Capture

	// Next replaces amble's own plan for the URL: due again then; the zero time: never. nil: amble
	// decides by the outcome.
	Next *time.Time
}

// Result says what became of a report.
type Result uint8

// The results of reports. Only a report that was Accepted changed anything.
const (
	Accepted Result = iota // it is committed
	Late                   // the lease had run out, or a report had ended it
	Foreign                // the lease is another fetcher's
	Unknown                // there never was such a lease, or it ended long ago
	Invalid                // the report is out of bounds
)

// String returns the name of the result in the API.
func (r Result) String() string {
	return [...]string{"accepted", "late", "foreign", "unknown", "invalid"}[r]
}

// Judge decides about a report by a fetcher. held is the lease that it is for, nil if none is out; wasOut says that
// there was one not long ago.
func (f *Fetcher) Judge(r *Report, held *Held, wasOut bool) Result {
	switch {
	case f.CutOff:
		return Foreign
	case held == nil && wasOut, held != nil && held.claimed:
		return Late
	case held == nil:
		return Unknown
	case held.Fetcher != r.Fetcher:
		return Foreign
	}
	return Accepted
}

// IsValid reports whether a report is within its bounds.
func (r *Report) IsValid() bool {
	if !IsFetcherName(r.Fetcher) || r.ID == "" && r.URL.IsZero() || len(r.Body) > MaxReportBody ||
		len(r.Links) > MaxReportLinks || headerSize(r.Header) > MaxReportHeader || len(r.Captures) > MaxCaptures {
		return false
	}
	for i := range r.Captures {
		if !r.Captures[i].isValid() {
			return false
		}
	}
	switch {
	case r.NotDone:
		return true
	case r.Status != 0:
		return r.Status >= 200 && r.Status <= 599 // an informational status is no response
	}
	return r.Failure.IsKnown()
}

// Capture is a request that a fetcher made for a lease, with its response, for web archives: that for the page, or one
// that the page has caused.
type Capture struct {
	URL     weburl.URL
	Request http.Header // as sent
	Status  int
	Header  http.Header // of the response, as received
	Body    []byte      // decoded
	// OfReport means that Status, Header and Body are those of the report.
	OfReport bool
}

// MaxCaptures bounds the captures of a report.
const MaxCaptures = 256

// headerSize returns the bytes of a header.
func headerSize(header http.Header) (size int) {
	for name, values := range header {
		for _, value := range values {
			size += len(name) + len(value) + 4
		}
	}
	return size
}

// isValid reports whether a capture is within its bounds.
func (c *Capture) isValid() bool {
	return !c.URL.IsZero() && headerSize(c.Request) <= MaxReportHeader && headerSize(c.Header) <= MaxReportHeader &&
		(c.OfReport || c.Status >= 200 && c.Status <= 599)
}
