package work

import (
	"context"
	"fmt"
	"runtime"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/crashes"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// crashed makes the result of a lease whose work ended in a panic. Links found so far are dropped;
// what the request says about the host counts.
func (w *Worker) crashed(ctx context.Context, res *Result, cause any, stack []byte) {
	l := &res.Lease
	w.tally.Crash()
	w.keepCrash(crashes.Crash{
		URL: l.URL.String(), Host: l.HostName, Response: res.response, Cause: cause, Stack: stack,
	})
	if res.Item != nil {
		if err := res.Item.Close(); err != nil {
			w.log.Debug("cannot close what was not written", "error", err)
		}
	}
	before := res.findings
	res.findings = findings{}
	switch l.Kind {
	case frontier.Robots:
		res.Robots.Report = w.crashReport(res, before.Robots.Report)
		w.holdRobots(res)
	case frontier.Visited:
		res.Robots.Report = w.crashReport(res, before.Robots.Report)
	case frontier.Match:
		res.Match = frontier.MatchReport{Crashed: true, End: w.o.Now()}
	case frontier.Page:
		res.Page.Report = w.crashReport(res, before.Page.Report)
		w.endCrashed(ctx, res, cause)
	}
}

// crashReport returns the report of a request whose work ended in a panic. If the fetcher itself
// panicked, the report assumes the worst: the request was sent and the server broke it off.
func (w *Worker) crashReport(res *Result, known frontier.Report) frontier.Report {
	if known.Sent {
		return known
	}
	now, began := w.o.Now(), res.Lease.At
	res.Request = failureRecord(&res.Lease, &fetch.Error{Kind: fetch.KindUnknown, Sent: true, Start: began, End: now})
	w.tally.LostRequest()
	return frontier.Report{Sent: true, End: now, Duration: now.Sub(began), Signal: politeness.SignalAborted}
}

// holdRobots holds the origin of a robots.txt that cannot be read without a panic: it counts as
// unreachable.
func (w *Worker) holdRobots(res *Result) {
	res.Robots.Record = crashes.Robots(&w.o.Frontier, &res.Lease.Robots.Previous, res.Lease.URL, res.Robots.End)
	res.Robots.Rules = res.Robots.Record.Rules(w.o.Frontier.Tokens...)
}

// endCrashed ends the URL of a page. The response is archived unless the archive is what panics.
func (w *Worker) endCrashed(ctx context.Context, res *Result, cause any) {
	l := &res.Lease
	res.Page.Outcome = storage.Outcome{State: storage.Failed, Reason: storage.ReasonCrash}
	page := archive.Page{
		URL: l.URL.String(), Depth: int(l.Head.Depth),
		Attempts: int(l.Head.Last.Attempts) + 1, FetchedAt: res.Request.Start,
		Duration: res.Page.Duration, Reason: inspect.ReasonName(storage.ReasonCrash),
		Error: fmt.Sprintf("amble failed: %v", cause),
	}
	if res.response != nil {
		page.Status, res.Page.Outcome.Status = res.response.Status, uint16(res.response.Status)
	}
	if !w.outputCrash(ctx, res, page, res.response) {
		w.outputCrash(ctx, res, page, nil)
	}
}

// outputCrash encodes the output of a crashed page; false if that panics.
func (w *Worker) outputCrash(ctx context.Context, res *Result, page archive.Page, resp *fetch.Response) (done bool) {
	defer func() {
		if cause := recover(); cause != nil {
			w.log.Debug("cannot encode the output of a crashed URL", "url", page.URL, "panic", fmt.Sprint(cause))
			res.visit, res.Item, res.Payload = archive.Visit{}, nil, nil
		}
	}()
	w.output(ctx, res, &page, resp, nil)
	return true
}

// keepCrash records a panic: its stack in the log, once for each code location that panics, and the
// response in a file.
func (ar *archiving) keepCrash(x crashes.Crash) {
	var at [16]uintptr
	runtime.Callers(4, at[:]) // skips this function, its caller, the function that recovers, and the runtime
	path, err := ar.crashes.Write(x, ar.o.Now())
	kept := path
	if err != nil {
		kept = "nothing: " + err.Error()
	}
	what := "amble failed at a URL"
	if !ar.crashes.IsNew(at) {
		ar.log.Debug(what, "url", x.URL, "host", x.Host, "panic", fmt.Sprint(x.Cause), "kept", kept)
		return
	}
	ar.log.Error(what+"; the crawl goes on without it. This is a bug: please report it with the file",
		"url", x.URL, "host", x.Host, "panic", fmt.Sprint(x.Cause), "kept", kept,
		"stack", string(x.Stack[:min(len(x.Stack), crashes.MaxStack)]))
}
