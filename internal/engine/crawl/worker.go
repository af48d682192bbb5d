package crawl

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
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// result is a lease on its way through a worker, with what that adds to it. Those for names are lookups.
type result struct {
	lease frontier.Lease
	flight
	findings
	request  requestlog.Request
	response *fetch.Response // while it is worked on
	remote   *remoteResult   // of a request that a fetcher made; nil: a worker did
	// requestEnded: the dispatcher has had the end of the request.
	requestEnded bool
}

// findings are what the work of a lease brings, unless it panics.
type findings struct {
	robots     frontier.RobotsReport
	page       frontier.PageReport
	match      frontier.MatchReport
	simhash    uint64             // of the text of a page; 0: none
	stamp      uint32             // of what was read out of a page; 0: none
	products   expensive.Products // that made the page
	found      []storage.Found
	requisites archive.Facts // which the page names
	refused    []storage.Refused
	passed     marks.Passed
	mazes      string            // of the host of a page that has shown one; empty: none
	seed       *seeds.Member     // of a page; nil: it has none
	scopeSeeds []Seed            // where a seed led that is a part of it
	visit      archive.Visit     // on its way into item
	usage      consent.Effective // what all sources say about the use of a page
	keptUsage  string            // the same, for the store
	item       *archive.Item     // of the output; nil: none
	body       digest.Digest     // of the decoded body; zero: not computed
	// behindWall: the response is that of a wall which was known before. Nothing of it is kept.
	behindWall bool
	payload    *storage.Payload // that the item brings; nil: none
	history    *storage.Policy  // the earlier versions of a robots.txt; nil: as they were
	unarchived bool             // no web archive is to have the page
	declared   *declared        // of the TDM file of an origin, or of terms; nil: none
	again      []storage.Done   // URLs that are put back into their queues
}

// workerStore is what workers read.
type workerStore interface {
	Fingerprint(weburl.URL) uint64
	Payload(storage.HostID, uint64) (storage.Payload, bool, error)
	URL(storage.HostID, uint32) (weburl.URL, error)
	URLs(host storage.HostID, from uint32, most int, f func(storage.Head)) (next uint32, err error)
	RobotsHistory(weburl.Origin) ([]byte, error)
	Mark(name string) ([]byte, error)
	MetadataOf([]storage.Position) ([]storage.Metadata, error)
	Lookup(weburl.URL) (storage.Head, storage.Host, error)
}

// Observer is told what a crawl does while it does it: for metrics, and for people who watch. Workers and the
// committer call it at the same time, so its methods have to be safe for that, and must not wait for anything.
type Observer interface {
	// Requested is called for each request that left, once it has ended. The log has not numbered
	// it yet, and knows more of it: Place, Again, For, Policy and the verdict are not set.
	Requested(requestlog.Request)
	// Committed is called for each commit: how long it took, and how many outcomes and discoveries it held.
	Committed(took time.Duration, items int)
}

// Observers are called one after the other.
type Observers []Observer

// Requested is part of Observer.
func (o Observers) Requested(q requestlog.Request) {
	for _, each := range o {
		each.Requested(q)
	}
}

// Committed is part of Observer.
func (o Observers) Committed(took time.Duration, items int) {
	for _, each := range o {
		each.Committed(took, items)
	}
}

// Observe sets the observer from the next Run on; nil: none.
func (e *Engine) Observe(o Observer) { e.observer = o }

// worker does the work of leases. All goroutines that work, and the lookups of names, share one: it is immutable, or
// safe for concurrent use. It consists of layers that use those below them:
//
//	archiving  makes the output of a response, and knows of earlier ones
//	judging    says what a response permits, and whether it is that of a wall
//	reading    takes links and lists out of a response
type worker struct {
	reading
	client   fetcher
	observer Observer // nil: nobody
	leases   <-chan *result
}

// archiving makes the output.
type archiving struct {
	o         *Options
	log       *slog.Logger
	store     workerStore
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
	live       func() *inForce
	marks      *wall.Marks
	seen       *bodies.Seen
	tdmFiles   *declaredFiles[weburl.Origin, consent.TDMFile]
	terms      *declaredFiles[weburl.URL, consent.Terms]
	directives consent.Directives // that state a preference
}

// reading takes what a response leads to.
type reading struct {
	judging
	sessions *frontier.Sessions
	hosts    *domains.Hosts // nil: there is no limit
	products *hostProducts
	mazes    *maze.Branches
	recrawls bool         // there is a recrawl plan
	stamps   *stamp.Maker // nil: every page is read at each visit
	parsers  parsers
	results  chan<- ending
	room     *hostsort.Room                                         // of long lists
	add      func(context.Context, lists.Rows) (lists.Added, error) // for the URLs of long lists
}

// fetcher is what a worker needs of a fetch.Client.
type fetcher interface {
	Do(context.Context, fetch.Request) (*fetch.Response, error)
	Resolve(ctx context.Context, host string, every bool) (fetch.Resolution, error)
	PlainHeader(r fetch.Request) http.Header
}

// newWorker returns a worker without channels.
func (e *Engine) newWorker() *worker {
	j := judging{
		archiving: archiving{
			o: &e.o, log: e.log, store: e.store, tally: &e.tally, encoder: e.encoder, pageTexts: new(pageTexts),
			recent: e.bodies, crashes: e.crashes,
		},
		scope: e.scope.Load, live: e.live.Load, marks: e.shared.marks, seen: e.newSeen(),
		tdmFiles:   new(declaredFiles[weburl.Origin, consent.TDMFile]),
		terms:      new(declaredFiles[weburl.URL, consent.Terms]),
		directives: consent.KnownDirectives(),
	}
	return &worker{client: e.client, observer: e.observer, reading: reading{
		judging: j, sessions: frontier.NewSessions(e.o.SessionNames), hosts: e.domainHosts,
		products: new(hostProducts), mazes: e.mazes, recrawls: e.plan != nil, stamps: e.o.stamps(),
		parsers: e.shared.parsers,
		room:    e.shared.room,
	}}
}

// newSeen returns a memory of the bodies of all responses from now on: all of the crawl, if it has had none yet.
func (e *Engine) newSeen() *bodies.Seen {
	if e.store.Counters().Requests == 0 {
		return bodies.NewSeen(time.Time{})
	}
	return bodies.NewSeen(e.o.Now())
}

// run does the work of one lease after the other until there are no more.
func (w *worker) run() {
	for res := range w.leases {
		w.serve(res)
		w.results <- res
	}
}

// serve does the work of a lease. Whatever a server sends costs its own URL at most: a panic
// becomes the result of the lease.
func (w *worker) serve(res *result) {
	defer res.closeResponse()
	defer func() {
		if cause := recover(); cause != nil {
			w.crashed(res.ctx, res, cause, debug.Stack())
		}
	}()
	switch l := &res.lease; l.Kind {
	case frontier.Robots:
		w.fetchRobots(res.ctx, res)
	case frontier.Page:
		w.fetchPage(res.ctx, res)
	case frontier.Visited:
		w.visit(res.ctx, res)
	case frontier.Match:
		res.match = frontier.MatchReport{Verdict: l.Rules.Match(l.Head.RequestURI), End: w.o.Now()}
	}
}

// closeResponse gives back the memory or the file of the response.
func (res *result) closeResponse() {
	if res.response != nil {
		_ = res.response.Close() // there is no remedy for a file that cannot be closed
		res.response = nil
	}
}

// request makes the request of a lease and returns what politeness has to know. The response is closed with the lease.
func (w *worker) request(
	ctx context.Context, res *result, req fetch.Request,
) (resp *fetch.Response, failure *fetch.Error, report frontier.Report) {
	req.Progress = &res.progress
	resp, err := w.do(ctx, &res.lease, req)
	return w.ended(res, req.URL, resp, err)
}

// ended takes the end of a request, and returns what request returns.
func (w *worker) ended(
	res *result, u weburl.URL, resp *fetch.Response, err error,
) (_ *fetch.Response, failure *fetch.Error, report frontier.Report) {
	if err == nil {
		res.response = resp
		q := responseRecord(&res.lease, resp)
		w.observe(&q, nil)
		res.request = q
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
	q := failureRecord(&res.lease, failure)
	w.observe(&q, failure)
	res.request = q
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
func (w *worker) observe(q *requestlog.Request, failure error) {
	if w.tally.Request(q) {
		w.log.Info("a request failed, the first of this run that fails so", "url", q.URL.String(), "status", q.Status,
			"error", failure)
	}
	if w.observer != nil {
		w.observer.Requested(*q)
	}
}

// responseRecord returns the record of a request with a response, as far as a worker knows it.
func responseRecord(l *frontier.Lease, resp *fetch.Response) requestlog.Request {
	q := recordOf(l, resp.Start, resp.End)
	q.Sent, q.Status, q.RetryAfter = true, resp.Status, retryAfter(resp.Header, resp.End)
	q.Bytes, q.BodyBytes = uint64(resp.WireBytes), resp.Body.Size()
	q.Connected, q.FirstByte = resp.Connected, resp.FirstByte
	return q
}

// failureRecord returns the record of a request without a response, as far as a worker knows it.
func failureRecord(l *frontier.Lease, failure *fetch.Error) requestlog.Request {
	q := recordOf(l, failure.Start, failure.End)
	q.Sent, q.Failure, q.RetryAfter = failure.Sent, failure.Kind, retryAfter(failure.Header, failure.End)
	return q
}

func recordOf(l *frontier.Lease, start, end time.Time) requestlog.Request {
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

// reasonOf returns the name that the store has for a kind of failure.
func reasonOf(k fetch.Kind) storage.Reason { return storage.ReasonFetch + storage.Reason(k) }
