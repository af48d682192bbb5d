package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/crawl/internal/leasebook"
	"github.com/amble-crawler/amble/internal/digest"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
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
	// MaxLeaseCount is the most leases of one request.
	MaxLeaseCount = 1000
	// MinVisibility is the shortest that a lease may last.
	MinVisibility = time.Second
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
	Wait       time.Duration // for the first lease, until there is one; 0: it does not wait
	Visibility time.Duration // until the deadline; 0: DefaultVisibility
	// Host is the only host whose URLs are wanted; empty: any.
	Host string
	// PerHost is how many requests to one host may be in flight, those of this request and all
	// others together; 0: one. It never exceeds what politeness allows: one where a delay is in
	// force, else politeness.per_host.
	PerHost int
	// Hosts is the most hosts whose URLs are wanted; 0: any number.
	Hosts int
	// Bare leaves RemoteLease.Header out.
	Bare bool
}

// RemoteLease is the permission for one request by a fetcher, until its deadline. The request is a
// GET without a fragment, follows no redirect, and ends before the deadline.
type RemoteLease struct {
	ID       LeaseID
	URL      weburl.URL
	Host     string
	Key      string      // of the queue of the host: its name, or what a client has put it with
	Address  netip.Addr  // the only one to dial, if the fetcher can choose; invalid: none is known
	Header   http.Header // to send: User-Agent, and the validators of a page to recrawl; nil with LeaseRequest.Bare
	Depth    uint16
	Metadata storage.Metadata // of the URL; nil: it has none
	Delay    time.Duration    // in force, from the end of this request to the start of the next
	MaxBody  int64            // bytes of the decoded body that are of use
	Given    time.Time
	Deadline time.Time
}

// Bounds of reports. One that exceeds them is Invalid.
const (
	MaxReportHeader = 64 << 10 // bytes of all fields
	MaxReportLinks  = 20_000
	MaxReportBody   = 64 << 20 // bytes
)

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

	// Took is how long the request took; 0, or longer than the lease is old: since that was given.
	// The request ends with the arrival of the report, so that no clock and no fetcher can make the
	// delay of the host begin too early.
	Took time.Duration

	Status int         // of the response; 0: there was none, and Failure says why
	Header http.Header // of the response; only fields that amble uses are kept
	// Failure says why there was no response: fetch.Kind.String is its name in the API.
	Failure fetch.Kind

	// Body is the decoded body. At most RemoteLease.MaxBody of its bytes count. Without it Links,
	// Title and Digest are what is known of the page.
	Body    []byte
	HasBody bool
	Links   []string // relative or absolute, as on the page
	Title   string
	Digest  digest.Digest // SHA-256 of the body; zero: not known, so that the page counts as changed

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
type Fetcher = leasebook.Fetcher

// Errors of remote leases.
var (
	// ErrCutOff says that the operator has cut the fetcher off.
	ErrCutOff = errors.New("the operator has cut this fetcher off")
	// ErrLease says that a lease request or a name is out of bounds.
	ErrLease = errors.New("invalid lease request")
)

// isFetcherName reports whether a fetcher may have a name.
func isFetcherName(name string) bool {
	if len(name) == 0 || len(name) > MaxFetcherName {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// validate completes a request, and says what is wrong with it.
func (r *LeaseRequest) validate() error {
	if r.Visibility == 0 {
		r.Visibility = DefaultVisibility
	}
	switch {
	case !isFetcherName(r.Fetcher):
		return fmt.Errorf(
			"%w: the name of the fetcher is %q; use 1 to %d letters, digits, dots, dashes and underscores",
			ErrLease, r.Fetcher, MaxFetcherName)
	case r.N < 1 || r.N > MaxLeaseCount:
		return fmt.Errorf("%w: %d leases, should be 1 to %d", ErrLease, r.N, MaxLeaseCount)
	case r.PerHost < 0 || r.Hosts < 0 || r.Wait < 0:
		return fmt.Errorf("%w: PerHost, Hosts and Wait may not be negative", ErrLease)
	}
	return validateVisibility(r.Visibility)
}

func validateVisibility(d time.Duration) error {
	if d < MinVisibility || d > MaxVisibility {
		return fmt.Errorf("%w: a lease of %v, should be %v to %v", ErrLease, d, MinVisibility, MaxVisibility)
	}
	return nil
}

// Lease waits until at least one lease can be given, and returns as many as can be given then, up
// to r.N; none when r.Wait is over. A lease that it returns is in the start ledger. The error is
// that of ctx, and leases that were given are put back; ErrLease, ErrCutOff, ErrNotRunning, or
// inspect.ErrUnknown for an unknown host. Any goroutine may call it.
func (l *lendings) Lease(ctx context.Context, r LeaseRequest) ([]RemoteLease, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	m, w := l.mailbox.Load(), l.lender.Load()
	if !m.isOpen() || w == nil {
		return nil, ErrNotRunning
	}
	host := storage.NoHost
	if r.Host != "" {
		h, err := l.store.HostByName(r.Host)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, fmt.Errorf("host %s: %w", r.Host, inspect.ErrUnknown)
		}
		if err != nil {
			return nil, err
		}
		host = h.ID
	}
	waited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	for {
		wait := &leaseWait{request: r, host: host, done: make(chan struct{})}
		if err := wait.run(ctx, waited, m); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			putBack := make([]LeaseReport, len(wait.given))
			for i, given := range wait.given {
				putBack[i] = LeaseReport{Fetcher: r.Fetcher, ID: LeaseID(given.remote.ID), NotDone: true}
			}
			_, err := l.Report(context.WithoutCancel(ctx), putBack)
			return nil, errors.Join(ctx.Err(), err)
		}
		leases, err := w.lend(ctx, m, wait.given, r.Bare)
		if len(leases) > 0 || err != nil || waited.Err() != nil {
			return leases, err
		}
	}
}

// Extend sets the deadline of leases of a fetcher to visibility from now. The new deadlines are in
// the start ledger when it returns; those of leases that are out no more are zero. Any goroutine
// may call it.
func (l *lendings) Extend(
	ctx context.Context, fetcher string, ids []LeaseID, visibility time.Duration,
) (deadlines []time.Time, err error) {
	if err := validateVisibility(visibility); err != nil {
		return nil, err
	}
	deadlines = make([]time.Time, len(ids))
	callErr := l.mailbox.Load().call(ctx, func(d *dispatcher) {
		if err = d.remote.checkFetcher(fetcher, d.o.Now()); err != nil {
			return
		}
		for i, id := range ids {
			if deadlines[i], err = d.extend(fetcher, id, visibility); err != nil {
				return
			}
		}
	})
	return deadlines, errors.Join(callErr, err)
}

// Report takes in the results of leases, and returns when those that were accepted are committed:
// one result for each report. Bodies are worked on in the caller's goroutine. The error is
// ErrCutOff, ErrNotRunning, that of ctx, or why the commit failed; after it, reports may have been
// accepted. Any goroutine may call it.
func (l *lendings) Report(ctx context.Context, reports []LeaseReport) ([]ReportResult, error) {
	m, w := l.mailbox.Load(), l.lender.Load()
	if !m.isOpen() || w == nil {
		return nil, ErrNotRunning
	}
	c := &claims{all: make([]claim, len(reports)), done: make(chan struct{})}
	for i := range reports {
		c.all[i] = l.newClaim(&reports[i])
	}
	if err := m.call(ctx, func(d *dispatcher) { d.claim(c) }); err != nil {
		return nil, err
	}
	<-c.done
	results := make([]ReportResult, len(reports))
	for i := range c.all {
		results[i] = c.all[i].result
		if res := c.all[i].res; res != nil {
			w.serveReport(res, &reports[i])
			w.results <- res
		}
	}
	for i := range c.all {
		if c.all[i].committed == nil {
			continue
		}
		select {
		case err := <-c.all[i].committed:
			c.err = errors.Join(c.err, err)
		case <-ctx.Done():
			return results, ctx.Err()
		}
	}
	return results, c.err
}

// newClaim finds out which lease a report is for, as far as the store knows it.
func (l *lendings) newClaim(r *LeaseReport) claim {
	c := claim{report: r, result: Invalid, at: storage.Position{Host: storage.NoHost}}
	if !r.isValid() {
		return c
	}
	c.result = Unknown
	if r.ID == "" {
		head, host, err := l.store.Lookup(r.URL)
		if err != nil {
			return c
		}
		c.at = storage.Position{Host: host.ID, Ordinal: head.Ordinal}
	}
	c.open = true
	return c
}

// Fetchers returns the fetchers of this run and those that are cut off, by name. Any goroutine may
// call it.
func (l *lendings) Fetchers(ctx context.Context) (list []Fetcher, err error) {
	err = l.mailbox.Load().call(ctx, func(d *dispatcher) { list = d.remote.Fetchers() })
	return list, err
}

// CutOff refuses all further requests and reports of a fetcher, in this run and those to come. Its
// leases run out at their deadlines, since its requests may still be under way. It returns when
// that is on disk. Any goroutine may call it.
func (l *lendings) CutOff(ctx context.Context, fetcher string) error {
	return l.setCutOff(ctx, fetcher, true)
}

// Admit ends a CutOff. It returns when that is on disk. Any goroutine may call it.
func (l *lendings) Admit(ctx context.Context, fetcher string) error {
	return l.setCutOff(ctx, fetcher, false)
}

func (l *lendings) setCutOff(ctx context.Context, fetcher string, on bool) error {
	if !isFetcherName(fetcher) {
		return fmt.Errorf("fetcher %q: %w", fetcher, inspect.ErrUnknown)
	}
	return l.mailbox.Load().submit(ctx, func(d *dispatcher) error { return d.setCutOff(fetcher, on) })
}

// checkFetcher takes note of a fetcher that calls. The error is ErrCutOff.
func (r *remoteLeases) checkFetcher(name string, now time.Time) error {
	if r.Fetcher(name, now).CutOff {
		return fmt.Errorf("fetcher %s: %w", name, ErrCutOff)
	}
	return nil
}

// setCutOff cuts a fetcher off, or ends that.
func (ld *lender) setCutOff(name string, on bool) error {
	now := ld.o.Now()
	f := ld.remote.Fetcher(name, now)
	var mark []byte
	if f.CutOff = on; on {
		mark = []byte(now.UTC().Format(time.RFC3339))
		for _, w := range slices.Clone(ld.remote.waiters) {
			if w.request.Fetcher == name {
				w.err = fmt.Errorf("fetcher %s: %w", name, ErrCutOff)
				ld.remote.removeWaiter(w)
			}
		}
	}
	ld.pending.setMark(markCutOff+name, mark)
	ld.log.Info("the operator cuts a fetcher off or admits it", "fetcher", name, "cut_off", on)
	ld.report("running")
	return nil
}

// restoreCutOffs takes over which fetchers are cut off.
func (pm *permits) restoreCutOffs() error {
	marks, err := pm.store.Marks(markCutOff)
	for name := range marks {
		pm.remote.Fetcher(strings.TrimPrefix(name, markCutOff), time.Time{}).CutOff = true
	}
	return err
}
