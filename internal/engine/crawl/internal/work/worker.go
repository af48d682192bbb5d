// Package work does the work of leases: it makes their requests, and takes from each answer what the crawl has of it:
// the outcome of the URL, discoveries, output.
package work

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/bodies"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/crashes"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/domains"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/stamp"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/tally"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/rules/expensive"
	"github.com/amble-crawler/amble/internal/rules/maze"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Result is a lease on its way through a worker, with what that adds to it.
type Result struct {
	Lease    frontier.Lease
	Offset   uint64 // in the start ledger
	Progress fetch.Progress
	Ctx      context.Context         // of the request and of all that is done with its response
	End      context.CancelCauseFunc // of that context
	findings
	Request      requestlog.Request
	response     *fetch.Response // while it is worked on
	Remote       *RemoteResult   // of a request that a fetcher made; nil: a worker did
	RequestEnded bool            // the dispatcher has had the end of the request
	Committed    chan<- error    // told when the result is on disk; nil: nobody waits
}

// Observer is told of each request that has ended. Any goroutine may call it.
type Observer interface{ Requested(requestlog.Request) }

// Options say how leases are worked on. They are immutable.
type Options struct {
	Now         func() time.Time
	URLs        weburl.Rules
	Traps       frontier.TrapOptions
	Frontier    frontier.Options
	Fetch       fetch.Options
	Extract     extract.Options
	Archive     archive.Options
	Sitemaps    SitemapOptions
	Requisites  RequisiteOptions
	NoFollow    bool
	TDMFiles    bool
	Terms       bool
	SimilarBits int // 0: the texts of pages are not compared
	Owns        func(host string) bool
	// FetchRobots makes a request that is for another shard to make; nil: there are none.
	FetchRobots func(context.Context, RobotsQuery) (robots.Outcome, error)
}

// Tools are what a worker works with. Nil where it says so, and else set.
type Tools struct {
	Log      *slog.Logger
	Client   Fetcher
	Observer Observer                                                     // nil: nobody
	Begin    func(context.Context, *frontier.GateRequest) (Permit, error) // nil: no request needs a permit
	Store    Store
	Tally    *tally.Tally
	Encoder  *archive.Encoder
	Recent   *bodies.Recent
	Crashes  *crashes.Files
	Scope    func() *frontier.Scope
	Consent  func() consent.Policy
	Walls    *wall.Marks
	Seen     *bodies.Seen
	Sessions *frontier.Sessions
	Hosts    *domains.Hosts // nil: there is no limit
	Mazes    *maze.Branches
	Stamps   *stamp.Maker // nil: every page is read at each visit
	Parsers  Parsers
	Room     *hostsort.Workspace // of long lists
	Recrawls bool                // there is a recrawl plan

	Stalls chan<- error // why there is no room for output
	// EndRequest ends the request of a page that is still being read.
	EndRequest func(*Result, frontier.RequestEnd)
	Add        func(context.Context, lists.Rows) (lists.Added, error) // the URLs of long lists
}

// findings are what the work of a lease brings, unless it panics.
type findings struct {
	Robots     frontier.RobotsReport
	Page       frontier.PageReport
	Match      frontier.MatchReport
	simhash    uint64             // of the text of a page; 0: none
	stamp      uint32             // of what was read out of a page; 0: none
	products   expensive.Products // that made the page
	Found      []storage.Found
	requisites archive.Facts // which the page names
	Refused    []storage.Refused
	Passed     marks.Passed
	Mazes      string            // of the host of a page that has shown one; empty: none
	seed       *seeds.Member     // of a page; nil: it has none
	ScopeSeeds []seeds.Seed      // where a seed led that is a part of it
	visit      archive.Visit     // on its way into item
	usage      consent.Effective // what all sources say about the use of a page
	keptUsage  string            // the same, for the store
	Item       *archive.Item     // of the output; nil: none
	body       digest.Digest     // of the decoded body; zero: not computed
	// behindWall: the response is that of a wall which was known before. Nothing of it is kept.
	behindWall bool
	Payload    *storage.Payload // that the item brings; nil: none
	History    *storage.Policy  // the earlier versions of a robots.txt; nil: as they were
	unarchived bool             // no web archive is to have the page
	Declared   *declared        // of the TDM file of an origin, or of terms; nil: none
	Others     []storage.Done   // outcomes of other URLs: those that are put back into their queues, or given up
}

// Store is what workers read.
type Store interface {
	Fingerprint(weburl.URL) uint64
	Payload(storage.HostID, uint64) (storage.Payload, bool, error)
	URL(storage.HostID, uint32) (weburl.URL, error)
	URLs(host storage.HostID, from uint32, most int, f func(storage.Head)) (next uint32, err error)
	Policy(weburl.Origin) ([]byte, error)
	RobotsHistory(weburl.Origin) ([]byte, error)
	Mark(name string) ([]byte, error)
	Lookup(weburl.URL) (storage.Head, storage.Host, error)
}

// Worker does the work of leases. All goroutines that work, and the lookups of names, share one: it is immutable, or
// safe for concurrent use. It consists of layers that use those below them:
//
//	archiving  makes the output of a response, and knows of earlier ones
//	judging    says what a response permits, and whether it is that of a wall
//	reading    takes links and lists out of a response
type Worker struct {
	reading
	client   Fetcher
	observer Observer                                                     // nil: nobody
	begin    func(context.Context, *frontier.GateRequest) (Permit, error) // nil: no request needs a permit
}

// archiving makes the output.
type archiving struct {
	o         *Options
	log       *slog.Logger
	store     Store
	tally     *tally.Tally
	encoder   *archive.Encoder
	pageTexts *pageTexts
	recent    *bodies.Recent
	stalls    chan<- error
	crashes   *crashes.Files
}

// judging says what a response is.
type judging struct {
	archiving
	scope      func() *frontier.Scope
	consent    func() consent.Policy
	marks      *wall.Marks
	seen       *bodies.Seen
	tdmFiles   *declaredFiles[weburl.Origin, consent.TDMFile]
	terms      *declaredFiles[weburl.URL, consent.Terms]
	directives consent.Directives // that state a preference
}

// reading takes what a response leads to.
type reading struct {
	judging
	sessions     *frontier.Sessions
	hosts        *domains.Hosts // nil: there is no limit
	products     *hostProducts
	mazes        *maze.Branches
	recrawls     bool         // there is a recrawl plan
	stamps       *stamp.Maker // nil: every page is read at each visit
	parsers      Parsers
	endRequestOf func(*Result, frontier.RequestEnd)                     // of a page that is still being read
	room         *hostsort.Workspace                                    // of long lists
	add          func(context.Context, lists.Rows) (lists.Added, error) // for the URLs of long lists
}

// Fetcher is what a worker needs of a fetch.Client.
type Fetcher interface {
	Do(context.Context, fetch.Request) (*fetch.Response, error)
	Resolve(ctx context.Context, host string, every bool) (fetch.Resolution, error)
	PlainHeader(r fetch.Request) http.Header
}

// New returns a worker.
func New(o *Options, t *Tools) *Worker {
	j := judging{
		archiving: archiving{
			o: o, log: t.Log, store: t.Store, tally: t.Tally, encoder: t.Encoder, pageTexts: new(pageTexts),
			recent: t.Recent, stalls: t.Stalls, crashes: t.Crashes,
		},
		scope: t.Scope, consent: t.Consent, marks: t.Walls, seen: t.Seen,
		tdmFiles:   new(declaredFiles[weburl.Origin, consent.TDMFile]),
		terms:      new(declaredFiles[weburl.URL, consent.Terms]),
		directives: consent.KnownDirectives(),
	}
	return &Worker{client: t.Client, observer: t.Observer, begin: t.Begin, reading: reading{
		judging: j, sessions: t.Sessions, hosts: t.Hosts, products: new(hostProducts), mazes: t.Mazes,
		recrawls: t.Recrawls, stamps: t.Stamps, parsers: t.Parsers, room: t.Room,
		endRequestOf: t.EndRequest, add: t.Add,
	}}
}

// Serve does the work of a lease. Whatever a server sends costs its own URL at most: a panic
// becomes the result of the lease.
func (w *Worker) Serve(res *Result) {
	defer res.closeResponse()
	defer func() {
		if cause := recover(); cause != nil {
			w.crashed(res.Ctx, res, cause, debug.Stack())
		}
	}()
	switch l := &res.Lease; l.Kind {
	case frontier.Robots:
		w.fetchRobots(res.Ctx, res)
	case frontier.Page:
		w.fetchPage(res.Ctx, res)
	case frontier.Visited:
		w.visit(res.Ctx, res)
	case frontier.Match:
		res.Match = frontier.MatchReport{Verdict: l.Rules.Match(l.Head.RequestURI), End: w.o.Now()}
	}
}

// closeResponse gives back the memory or the file of the response.
func (res *Result) closeResponse() {
	if res.response != nil {
		_ = res.response.Close() // there is no remedy for a file that cannot be closed
		res.response = nil
	}
}

// request makes the request of a lease and returns what politeness has to know. The response is closed with the lease.
func (w *Worker) request(
	ctx context.Context, res *Result, req fetch.Request,
) (resp *fetch.Response, failure *fetch.Error, report frontier.Report) {
	req.Progress = &res.Progress
	resp, err := w.do(ctx, &res.Lease, req)
	return w.ended(res, req.URL, resp, err)
}

// ended takes the end of a request, and returns what request returns.
func (w *Worker) ended(
	res *Result, u weburl.URL, resp *fetch.Response, err error,
) (_ *fetch.Response, failure *fetch.Error, report frontier.Report) {
	if err == nil {
		res.response = resp
		q := &res.Request
		*q = RecordOf(&res.Lease, resp.Start, resp.End)
		q.Sent, q.Status, q.RetryAfter = true, resp.Status, retryAfter(resp.Header, resp.End)
		q.Bytes, q.BodyBytes = uint64(resp.WireBytes), resp.Body.Size()
		q.Connected, q.FirstByte = resp.Connected, resp.FirstByte
		w.observe(q, nil)
		return resp, nil, frontier.Report{
			Sent: true, End: resp.End, Duration: resp.End.Sub(resp.Start) - resp.Throttled,
			Signal: signalOf(resp.Status), Cause: storage.StatusCause(resp.Status),
			RetryAfter: q.RetryAfter, RetryAfterText: resp.Header.Get("Retry-After"),
			RateLimit: politeness.ParseRateLimit(resp.Header, resp.End),
			Bytes:     uint64(resp.Body.Size()),
		}
	}
	if !errors.As(err, &failure) {
		now := w.o.Now()
		failure = &fetch.Error{Op: "request", URL: u.String(), Start: now, End: now, Err: err}
	}
	q := &res.Request
	*q = failureRecord(&res.Lease, failure)
	w.observe(q, failure)
	return nil, failure, frontier.Report{
		Sent:   failure.Sent || failure.Kind != fetch.KindCanceled,
		Broken: failure.Kind.Repeats(),
		End:    failure.End, Duration: failure.End.Sub(failure.Start) - failure.Throttled,
		Signal: failureSignal(failure.Kind), Cause: storage.ReasonCause(reasonOf(failure.Kind)),
		RetryAfter: q.RetryAfter, RetryAfterText: failure.Header.Get("Retry-After"),
		RateLimit: politeness.ParseRateLimit(failure.Header, failure.End),
	}
}

// observe counts a request and tells the observer of it. The first error of each kind is logged.
func (w *Worker) observe(q *requestlog.Request, failure error) {
	if w.tally.Request(q) {
		w.log.Info("a request failed, the first of this run that fails so", "url", q.URL.String(), "status", q.Status,
			"error", failure)
	}
	if w.observer != nil {
		w.observer.Requested(*q)
	}
}

// failureRecord returns the record of a request without a response, as far as a worker knows it.
func failureRecord(l *frontier.Lease, failure *fetch.Error) requestlog.Request {
	q := RecordOf(l, failure.Start, failure.End)
	q.Sent, q.Failure, q.RetryAfter = failure.Sent, failure.Kind, retryAfter(failure.Header, failure.End)
	return q
}

// RecordOf returns the record of a request, as far as its lease knows it.
func RecordOf(l *frontier.Lease, start, end time.Time) requestlog.Request {
	q := requestlog.Request{
		URL: l.URL, Address: l.Address, Start: start, End: end, Decided: l.At,
		Delay: l.Delay, DelayReason: l.DelayReason, Reason: l.Reason, Gap: -1,
	}
	if l.Kind == frontier.Robots {
		q.Kind = requestlog.Robots
	}
	if !l.LastEnd.IsZero() {
		q.Gap = max(start.Sub(l.LastEnd), 0)
	}
	if !l.Ready.IsZero() {
		q.Late = max(start.Sub(l.Ready), 0)
	}
	return q
}

// signalOf returns what a status says about the host.
func signalOf(status int) politeness.Signal {
	switch {
	case status == 429 || status == 503:
		return politeness.SignalThrottled
	case status >= 500:
		return politeness.SignalServerError
	}
	return politeness.SignalOK
}

// failureSignal returns what a failure says about the host; amble's own failures say nothing.
func failureSignal(k fetch.Kind) politeness.Signal {
	switch k {
	case fetch.KindCanceled, fetch.KindLocal, fetch.KindBlockedAddress, fetch.KindUnsupported, fetch.KindLostOnReuse,
		fetch.KindSignatureAsked:
		return politeness.SignalAborted
	case fetch.KindHeaderTooLarge, fetch.KindBadResponse, fetch.KindBadEncoding, fetch.KindTypeNotWanted:
		return politeness.SignalOK
	}
	return politeness.SignalUnreachable
}

// retryAfter reads Retry-After. RFC 9110, section 10.2.3, gives it a meaning with 429, 503 and
// redirects, but a server that sends it with another status wants to be left alone just the same.
func retryAfter(h http.Header, end time.Time) time.Duration {
	d, _ := politeness.ParseRetryAfter(h.Get("Retry-After"), end)
	return d
}

// do makes a request with a permit. A request without one is not made, and fails as one that was canceled.
func (w *Worker) do(ctx context.Context, l *frontier.Lease, req fetch.Request) (*fetch.Response, error) {
	if w.begin == nil {
		return w.client.Do(ctx, req)
	}
	permit, err := w.begin(ctx, l.Gate)
	if err != nil {
		now := w.o.Now()
		return nil, &fetch.Error{
			Kind: fetch.KindCanceled, Op: "begin", URL: req.URL.String(), Start: now, End: now, Err: err,
		}
	}
	defer permit.End()
	req.Permit = permit.Check
	return w.client.Do(permit.Context(), req)
}

// Permit is that of one request.
type Permit interface {
	// Context returns a child of the context that was given to Begin. It ends when the request has to be broken off.
	Context() context.Context
	// Check returns nil if the request may be written now. It does not block.
	Check() error
	// End ends the request, whether it was made or not.
	End()
}
