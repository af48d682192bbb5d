package crawl

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/storage"
)

// remoteResult is what a result has besides if its request was made by a fetcher.
type remoteResult struct {
	lease     *remote.Held
	report    *remote.Report // nil: there is none
	start     time.Time      // of the request, with a report
	end       time.Time      // when the report came
	committed chan<- error   // told when the result is on disk; nil: nobody waits
}

// lend makes leases of what the dispatcher has given. Pages whose use is refused are not lent.
func (w *worker) lend(ctx context.Context, m *mailbox, given []*lentPage, bare bool) ([]remote.Lease, error) {
	at := make([]storage.Position, len(given))
	for i, page := range given {
		at[i] = page.remote.At
	}
	metadata, err := w.store.MetadataOf(at)
	if err != nil {
		return nil, errors.Join(err, w.putBack(ctx, m, given))
	}
	leases := make([]remote.Lease, 0, len(given))
	for i, page := range given {
		x := page.remote
		if refusal, refused := w.refusesUse(&page.lease); refused {
			res := &result{lease: page.lease, remote: &remoteResult{lease: x}}
			res.page = refusal
			err = errors.Join(err, m.call(ctx, func(d *dispatcher) {
				if d.remote.IsOut(x) { // else it has run out meanwhile
					d.complete(res)
				}
			}))
			continue
		}
		l := w.describe(&page.lease, x, bare)
		l.Metadata = metadata[i]
		leases = append(leases, l)
	}
	return leases, err
}

// putBack ends leases that nobody gets.
func (w *worker) putBack(ctx context.Context, m *mailbox, given []*lentPage) error {
	return m.call(context.WithoutCancel(ctx), func(d *dispatcher) {
		for _, page := range given {
			if x := page.remote; d.remote.IsOut(x) {
				now := d.o.Now()
				back := broken(&page.lease, x, now, now)
				back.page.Report = frontier.Report{End: now}
				d.complete(back)
			}
		}
	})
}

// describe returns what a fetcher is told of a lease.
func (w *worker) describe(l *frontier.Lease, x *remote.Held, bare bool) remote.Lease {
	most := cmp.Or(w.maxBody(&l.Head), w.o.Fetch.MaxBody)
	r := remote.Lease{
		ID: remote.ID(x.ID), URL: l.URL, Host: l.HostName, Key: cmp.Or(x.Key, l.HostName),
		Address: l.Address, Depth: l.Head.Depth, Delay: l.Delay,
		MaxBody: min(most, remote.MaxReportBody), Given: x.Given, Deadline: x.Deadline,
	}
	if !bare {
		r.Header = w.client.PlainHeader(w.requestOf(l))
	}
	return r
}

// serveReport does the work of a report: that of a page lease behind its request. Whatever is in it
// costs its own URL at most.
func (w *worker) serveReport(res *result, r *remote.Report) {
	defer res.end(nil)
	defer res.closeResponse()
	defer func() {
		if cause := recover(); cause != nil {
			w.crashed(res.ctx, res, cause, debug.Stack())
		}
	}()
	most := cmp.Or(w.maxBody(&res.lease.Head), w.o.Fetch.MaxBody)
	resp, err := r.Response(&res.lease, res.remote.start, res.remote.end, most, w.o.Fetch.CheckType)
	if resp != nil && w.o.capturesExchanges() {
		resp.Wire = r.Wire(res.lease.URL, resp)
		res.visit.Beside = w.captured(res, r)
	}
	resp, failure, report := w.ended(res, res.lease.URL, resp, err)
	if failure != nil && report.Broken {
		report.Broken = false // the fetcher has made its request, and says what came of it
	}
	if r.Took <= 0 { // for so long the fetcher had the URL, not the host the request
		report.Duration = 0
	}
	res.page.Report, res.page.Next = report, r.Next
	w.takePage(res.ctx, res, resp, failure)
}

// outputLost encodes the line of a page whose lease has run out, if that was its last attempt.
func (ar *archiving) outputLost(res *result) {
	l, o := &res.lease, &res.page.Outcome
	if _, again := ar.o.Frontier.Attempted(&l.Head, o.State); again || ar.o.Archive.IsNone() {
		return
	}
	item, err := ar.encoder.Encode(&archive.Visit{Page: &archive.Page{
		URL: l.URL.String(), Depth: int(l.Head.Depth), Via: ar.via(&l.Head), Attempts: int(l.Head.Last.Attempts) + 1,
		FetchedAt: res.request.Start, Reason: inspect.ReasonName(o.Reason), Note: o.Note,
		Error: "the lease of the fetcher " + o.Note + " ran out without a report",
	}})
	if err != nil {
		ar.log.Error("cannot encode for the output", "url", l.URL.String(), "error", err)
		return
	}
	res.item = item
}

// digestOf returns the digest of a body. Of a page whose body was not reported, the fetcher says it.
func (res *result) digestOf(body *spool.Content) (digest.Digest, error) {
	if res.hasBody() {
		return bodyDigest(body)
	}
	return res.remote.report.Digest, nil
}

// hasBody reports whether the body of a response is here.
func (res *result) hasBody() bool {
	return res.remote == nil || res.remote.report == nil || res.remote.report.HasBody
}

// takeReported takes the title and the links of a page whose body was not reported.
func (rd *reading) takeReported(res *result, page *archive.Page, directives *extract.Directives) {
	l, r := &res.lease, res.remote.report
	doc := extract.Page{Title: strings.ToValidUTF8(r.Title[:min(len(r.Title), maxReportTitle)], "")}
	for _, text := range r.Links {
		if u, err := l.URL.Resolve(text); err == nil {
			doc.Links = append(doc.Links, extract.Link{URL: u})
		}
	}
	page.Title, page.Outlinks = doc.Title, len(doc.Links)
	rd.keepText(res, &doc)
	rd.takeDocument(res, &doc, directives)
}

// maxReportTitle bounds a reported title, in bytes.
const maxReportTitle = 1000

// claims are reports on their way to their leases.
type claims struct {
	all  []claim
	err  error
	done chan struct{} // closed by the dispatcher when all have a result
}

// claim is one report.
type claim struct {
	report    *remote.Report
	at        storage.Position // of its URL, if it names no lease
	open      bool             // the dispatcher has not decided about it
	result    remote.Result
	res       *result    // whose work is left to do; nil: there is none
	committed chan error // holds one; nil: nothing is committed
}

// claim finds the leases of reports, or waits until all of their hosts are loaded.
func (ld *lender) claim(c *claims) {
	for i := range c.all {
		if x, _ := ld.remote.find(&c.all[i]); x != nil {
			if _, loaded := ld.f.LeaseOf(x.FrontierID); !loaded {
				ld.remote.parked = append(ld.remote.parked, c)
				return
			}
		}
	}
	defer close(c.done)
	now := ld.o.Now()
	ld.runOut(now)
	for i := range c.all {
		ld.claimOne(&c.all[i], now)
	}
}

// find returns the lease that a report is for; nil: none is out.
func (r *remoteLeases) find(c *claim) (x *remote.Held, wasOut bool) {
	switch {
	case !c.open:
		return nil, false
	case c.report.ID != "":
		return r.Find(string(c.report.ID))
	}
	return r.OfURL(c.at), false
}

// claimOne decides about one report.
func (ld *lender) claimOne(c *claim, now time.Time) {
	r := &ld.remote
	f := r.Fetcher(c.report.Fetcher, now)
	x, wasOut := r.find(c)
	if c.open {
		c.result = f.Judge(c.report, x, wasOut)
	}
	if c.open = false; c.result != remote.Accepted {
		f.Refused++
		return
	}
	l, _ := ld.f.LeaseOf(x.FrontierID)
	c.committed = make(chan error, 1)
	took := now.Sub(x.Began)
	if c.report.Took > 0 {
		took = min(took, c.report.Took)
	}
	if c.report.NotDone {
		f.NotDone++
		res := broken(l, x, now.Add(-took), now)
		if res.page.Duration = took; c.report.Took <= 0 {
			res.page.Duration = 0
		}
		if !c.report.Sent {
			res.page.Report = frontier.Report{End: now}
		}
		res.remote.committed = c.committed
		ld.complete(res)
		return
	}
	offset, err := ld.ledger.claim(l, x)
	switch {
	case err == nil:
		r.Reported(x, offset)
	case !errors.Is(err, storage.ErrNoSpace): // without room no death is counted
		ld.fail(err)
	}
	f.Reported++
	r.Claim(x)
	c.res = &result{lease: *l, remote: &remoteResult{
		lease: x, report: c.report, start: now.Add(-took), end: now, committed: c.committed,
	}}
	c.res.ctx, c.res.end = context.WithCancelCause(ld.flights.working)
}

// unpark claims again what has waited for hosts to be loaded.
func (ld *lender) unpark() {
	parked := ld.remote.parked
	ld.remote.parked = nil
	for _, c := range parked {
		ld.claim(c)
	}
	parkedPuts := ld.remote.parkedPuts
	ld.remote.parkedPuts = nil
	for _, g := range parkedPuts {
		ld.takePuts(g)
	}
}
