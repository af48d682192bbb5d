package remote

import (
	"errors"
	"net/http"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/internal/web/spool"
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

// Response makes a response of a report, or the failure that there was instead, for the request of a lease that took
// from start to end. At most so many bytes of the body count. check returns an error for a type that is not wanted.
func (r *Report) Response(l *frontier.Lease, start, end time.Time, most int64,
	check func(status int, header http.Header) error) (*fetch.Response, error) {
	failure := &fetch.Error{
		Kind: r.Failure, Op: "request", URL: l.URL.String(), Sent: true, Start: start, End: end,
		Header: reportedHeader(r.Header, end), Err: errors.New("reported by the fetcher"),
	}
	last := &l.Head.Last
	switch {
	case r.Status == 0:
		return nil, failure
	case r.Status == http.StatusNotModified && last.ETag == "" && last.Modified == "":
		failure.Kind = fetch.KindBadResponse
		return nil, failure
	}
	if err := check(r.Status, failure.Header); err != nil && !l.Head.Sitemap {
		failure.Kind, failure.Err = fetch.KindTypeNotWanted, err
		return nil, failure
	}
	body := r.Body[:min(int64(len(r.Body)), most)]
	return &fetch.Response{
		Status: r.Status, Header: failure.Header, Body: spool.Of(body), Truncated: len(body) < len(r.Body),
		Start: start, Connected: start, FirstByte: start, End: end, WireBytes: int64(len(r.Body)),
	}, nil
}

// reportedHeader returns the fields of a reported header that a server can have sent. The body comes
// without encodings.
func reportedHeader(reported http.Header, end time.Time) http.Header {
	header := sent(reported)
	for _, name := range []string{"Content-Encoding", "Content-Length", "Transfer-Encoding", "Set-Cookie"} {
		header.Del(name)
	}
	httpfield.Settle(header, end)
	return header
}
