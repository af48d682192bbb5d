package crawl

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/warc"
	"github.com/amble-crawler/amble/internal/weburl"
)

// A remote lease is a page lease that leaves the process: a fetcher elsewhere makes the request and
// reports its result. It is a lease of the one frontier like any other. Its line is in the start
// ledger before it leaves, and its host has a request in flight until the fetcher reports or the
// deadline passes. Lookups of names, fetches of robots.txt and long matches stay with the workers.

// LeaseID names a remote lease. It cannot be guessed, and no other lease has it, also after a
// restart.
type LeaseID string

// Bounds of remote leases.
const (
	// MaxLeaseCount is the most leases that one request may ask for.
	MaxLeaseCount = 10_000
	// DefaultVisibility is how long a lease lasts if the request does not say.
	DefaultVisibility = time.Minute
	// MaxVisibility is the longest that a lease may last before it is extended.
	MaxVisibility = 24 * time.Hour
	// MaxLeaseLife is the longest that a lease may last with all of its extensions.
	MaxLeaseLife = 7 * 24 * time.Hour
	// MaxFetcherName is the longest name of a fetcher, in bytes.
	MaxFetcherName = 64
)

// LeaseRequest says what a fetcher wants.
type LeaseRequest struct {
	Fetcher    string        // its name: 1 to MaxFetcherName letters, digits, dots, dashes and underscores
	N          int           // the most leases wanted, 1 to MaxLeaseCount
	Visibility time.Duration // until the deadline; 0: DefaultVisibility; at most MaxVisibility
	// Host is the only host whose URLs are wanted; empty: any.
	Host string
	// PerHost is how many requests to one host may be in flight, those of this request and all
	// others together; 0: one. It never exceeds what politeness allows: one where a delay is in
	// force, else politeness.per_host.
	PerHost int
	// Hosts is the most hosts whose URLs are wanted; 0: any number.
	Hosts int
}

// RemoteLease is the permission for one request by a fetcher, until its deadline. The request is a
// GET without a fragment, follows no redirect, and ends before the deadline.
type RemoteLease struct {
	ID       LeaseID
	URL      weburl.URL
	Host     string
	Address  netip.Addr  // the only one to dial, if the fetcher can choose; invalid: none is known
	Header   http.Header // to send: User-Agent, and the validators of a page to recrawl
	Depth    uint16
	Delay    time.Duration // in force, from the end of this request to the start of the next
	MaxBody  int64         // bytes of the decoded body that are of use
	Given    time.Time
	Deadline time.Time
}

// LeaseReport is the result of a remote lease. Everything in it is taken as hostile: what is out of
// bounds is refused or bounded to the polite side.
type LeaseReport struct {
	Fetcher string
	ID      LeaseID // empty: the lease of URL, whichever it is
	URL     weburl.URL

	// NotDone gives the lease back: the URL goes to the head of its queue. If Sent is false, nothing
	// left the fetcher, and the host is not charged.
	NotDone bool
	Sent    bool

	// Start and End of the request, by this process's clock. A zero End is the arrival of the
	// report, as is one in the future or before the lease was given.
	Start, End time.Time

	Status int         // of the response; 0: there was none, and Failure says why
	Header http.Header // of the response; only fields that amble uses are kept
	// Failure says why there was no response: fetch.Kind.String is its name in the API.
	Failure fetch.Kind

	// Body is the decoded body, at most RemoteLease.MaxBody bytes of which count. Without it Links,
	// Title and Digest are what is known of the page.
	Body    []byte
	HasBody bool
	Links   []string    // relative or absolute, as on the page
	Title   string
	Digest  warc.Digest // SHA-256 of the body; zero: not known, so that the page counts as changed

	// Next replaces amble's own plan for the URL: due again then; the zero time: never. nil: amble
	// decides by the outcome.
	Next *time.Time
}

// ReportResult says what became of a report.
type ReportResult uint8

// The results of reports. Only a report that was Accepted changed anything.
const (
	Accepted ReportResult = iota // it is committed
	Late                         // the lease had run out, or a report had ended it
	Foreign                      // the lease is another fetcher's
	Unknown                      // there never was such a lease, or it ended long ago
	Invalid                      // the report is out of bounds
)

// String returns the name of the result in the API.
func (r ReportResult) String() string {
	return [...]string{"accepted", "late", "foreign", "unknown", "invalid"}[r]
}

// Fetcher is what is known of a remote fetcher.
type Fetcher struct {
	Name     string    `json:"name"`
	Leases   int       `json:"leases"`   // that it holds now
	Taken    uint64    `json:"taken"`    // leases in this run
	Reported uint64    `json:"reported"` // accepted reports in this run
	RanOut   uint64    `json:"ran_out"`  // leases of this run whose deadline passed
	NotDone  uint64    `json:"not_done"` // leases of this run that it gave back
	Refused  uint64    `json:"refused"`  // reports of this run that changed nothing
	LastSeen time.Time `json:"last_seen,omitzero"`
	CutOff   bool      `json:"cut_off,omitempty"`
}

// Errors of remote leases.
var (
	// ErrCutOff says that the operator has cut the fetcher off.
	ErrCutOff = errors.New("the operator has cut this fetcher off")
	// ErrLease says that a lease request or a name is out of bounds.
	ErrLease = errors.New("invalid lease request")
	// ErrTooManyLeases says that as many leases are out as may be.
	ErrTooManyLeases = errors.New("too many leases are out")
)

var errNotBuilt = errors.New("not built yet")

// Lease waits until at least one lease can be given, and returns as many as can be given then, up
// to r.N. A lease that it returns is in the start ledger. The error is that of ctx, whose leases
// are put back; ErrLease, ErrCutOff, ErrTooManyLeases or ErrNotRunning. A ctx that has ended makes
// it not wait: it returns what is due now, possibly nothing, and no error. Any goroutine may call it.
func (e *Engine) Lease(ctx context.Context, r LeaseRequest) ([]RemoteLease, error) {
	return nil, errNotBuilt
}

// Extend sets the deadline of leases of a fetcher to visibility from now. The new deadlines are in
// the start ledger when it returns; those of leases that are out no more are zero. Any goroutine
// may call it.
func (e *Engine) Extend(
	ctx context.Context, fetcher string, ids []LeaseID, visibility time.Duration,
) ([]time.Time, error) {
	return nil, errNotBuilt
}

// Report takes in the results of leases, and returns when those that were accepted are committed:
// one result for each report. Bodies are worked on in the caller's goroutine. Any goroutine may
// call it.
func (e *Engine) Report(ctx context.Context, reports []LeaseReport) ([]ReportResult, error) {
	return nil, errNotBuilt
}

// Fetchers returns the fetchers of this run and those that are cut off, by name. Any goroutine may
// call it.
func (e *Engine) Fetchers(ctx context.Context) ([]Fetcher, error) { return nil, errNotBuilt }

// CutOff refuses all further requests and reports of a fetcher, in this run and those to come. Its
// leases run out at their deadlines, since its requests may still be under way. It returns when
// that is on disk. Any goroutine may call it.
func (e *Engine) CutOff(ctx context.Context, fetcher string) error { return errNotBuilt }

// Admit ends a CutOff. It returns when that is on disk. Any goroutine may call it.
func (e *Engine) Admit(ctx context.Context, fetcher string) error { return errNotBuilt }
