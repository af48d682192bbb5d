package crawl

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// serve does the work of a lease. Whatever a server sends costs its own URL at most: a panic
// becomes the result of the lease.
func (r *run) serve(res *result) {
	defer res.closeResponse()
	defer func() {
		if cause := recover(); cause != nil {
			r.crashed(res.ctx, res, cause, debug.Stack())
		}
	}()
	switch l := &res.lease; l.Kind {
	case frontier.Resolve:
		r.lookUp(res.ctx, res)
	case frontier.Robots:
		r.fetchRobots(res.ctx, res)
	case frontier.Page:
		r.fetchPage(res.ctx, res)
	case frontier.Match:
		res.match = frontier.MatchReport{Verdict: l.Rules.Match(l.Head.RequestURI), End: r.now()}
	}
}

// crashed makes the result of a lease whose work ended in a panic. Links found so far are dropped;
// what the request says about the host counts.
func (r *run) crashed(ctx context.Context, res *result, cause any, stack []byte) {
	l := &res.lease
	r.tally.answers.crash()
	r.keepCrash(res, cause, stack)
	if res.item != nil {
		if err := res.item.Close(); err != nil {
			r.log.Debug("cannot close what was not written", "error", err)
		}
	}
	before := res.findings
	res.findings = findings{}
	switch l.Kind {
	case frontier.Resolve:
		res.resolve = frontier.ResolveReport{End: r.now(), Reason: storage.ReasonCrash}
	case frontier.Robots:
		res.robots.Report = r.crashReport(res, before.robots.Report)
		r.holdRobots(res)
	case frontier.Match:
		res.match = frontier.MatchReport{Crashed: true, End: r.now()}
	case frontier.Page:
		res.page.Report = r.crashReport(res, before.page.Report)
		r.endCrashed(ctx, res, cause)
	}
}

// crashReport returns the report of a request whose work ended in a panic. If the fetcher itself
// panicked, the report assumes the worst: the request was sent and the server broke it off.
func (r *run) crashReport(res *result, known frontier.Report) frontier.Report {
	if known.Sent {
		return known
	}
	now, began := r.now(), res.lease.At
	res.noteRequest(nil, &fetch.Error{Kind: fetch.KindUnknown, Sent: true, Start: began, End: now}, 0)
	r.tally.failed(fetch.KindUnknown, true)
	return frontier.Report{Sent: true, End: now, Duration: now.Sub(began), Signal: politeness.SignalAborted}
}

// holdRobots holds the origin of a robots.txt that cannot be read without a panic: it counts as
// unreachable.
func (r *run) holdRobots(res *result) {
	job := &res.lease.Robots
	res.robots.Record = r.crashedRobots(&job.Previous, res.lease.URL, res.robots.End)
	res.robots.Rules = res.robots.Record.Rules(r.o.Frontier.Tokens...)
}

// crashedRobots returns the record of a robots.txt whose work ended in a panic. The copy from
// before is dropped, because it may be the cause.
func (e *Engine) crashedRobots(before *robots.Record, u weburl.URL, now time.Time) robots.Record {
	record, _ := e.o.Frontier.Robots.Next(
		robots.Record{FirstUnreachable: before.FirstUnreachable, Failures: before.Failures},
		robots.Outcome{URL: u.String(), Failure: robots.FailureCrash, Jitter: e.o.Frontier.Jitter()}, now)
	return record
}

// endCrashed ends the URL of a page. The response is archived unless the archive is what panics.
func (r *run) endCrashed(ctx context.Context, res *result, cause any) {
	l := &res.lease
	res.page.Outcome = storage.Outcome{State: storage.Failed, Reason: storage.ReasonCrash}
	page := archive.Page{
		URL: l.URL.String(), Depth: int(l.Head.Depth),
		Attempts: int(l.Head.Last.Attempts) + 1, FetchedAt: res.request.Start,
		Duration: res.page.Duration, Reason: inspect.ReasonName(storage.ReasonCrash),
		Error: fmt.Sprintf("amble failed: %v", cause),
	}
	if res.response != nil {
		page.Status, res.page.Outcome.Status = res.response.Status, uint16(res.response.Status)
	}
	if !r.outputCrash(ctx, res, page, res.response) {
		r.outputCrash(ctx, res, page, nil)
	}
}

// outputCrash encodes the output of a crashed page; false if that panics.
func (r *run) outputCrash(ctx context.Context, res *result, page archive.Page, resp *fetch.Response) (done bool) {
	defer func() {
		if cause := recover(); cause != nil {
			r.log.Debug("cannot encode the output of a crashed URL", "url", page.URL, "panic", fmt.Sprint(cause))
			res.visit, res.item, res.payload = archive.Visit{}, nil, nil
		}
	}()
	r.output(ctx, res, &page, resp, nil)
	return true
}

// closeResponse gives back the memory or the file of the response.
func (res *result) closeResponse() {
	if res.response != nil {
		_ = res.response.Close() // there is no remedy for a file that cannot be closed
		res.response = nil
	}
}
