//go:build !core

package work

import (
	"cmp"
	"runtime/debug"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/web/extract"
)

// captured returns the exchanges of a report that its page has caused, as far as an archive may have them: opt-outs and
// preferences hold as for pages of a crawl. Each says who made it, for which page.
func (j *judging) captured(res *Result, r *remote.Report) (all []*archive.Exchange) {
	for i := range r.Captures {
		c := &r.Captures[i]
		if c.URL == res.Lease.URL || c.OfReport || !j.mayArchive(c) {
			continue
		}
		x := c.Exchange()
		x.At = res.Remote.Start
		x.Facts.Add("captured-with", res.Lease.URL.String())
		x.Facts.Add("fetcher", r.Fetcher)
		all = append(all, x)
	}
	return all
}

// mayArchive reports whether opt-outs, and what its response and its origin say about its use, permit that a capture is
// archived.
func (j *judging) mayArchive(c *remote.Capture) bool {
	if _, optedOut := j.scope().OptOuts().URL(c.URL, j.o.Now()); optedOut {
		return false
	}
	l := frontier.Lease{URL: c.URL, HostName: c.URL.Host()}
	l.Head.RequestURI = c.URL.RequestURI()
	d := extract.HeaderDirectives(c.Header, j.o.Frontier.Tokens)
	action, _ := j.consent().Action(consent.Combine(j.statementsOf(&l, c.Header, &d)))
	return action < consent.SkipArchiving
}

// ServeReport does the work of a report: that of a page lease behind its request. Whatever is in it
// costs its own URL at most.
func (w *Worker) ServeReport(res *Result, r *remote.Report) {
	defer res.End(nil)
	defer res.closeResponse()
	defer func() {
		if cause := recover(); cause != nil {
			w.crashed(res.Ctx, res, cause, debug.Stack())
		}
	}()
	most := cmp.Or(w.maxBody(&res.Lease.Head), w.o.Fetch.MaxBody)
	resp, err := r.Response(&res.Lease, res.Remote.Start, res.Remote.End, most, w.o.Fetch.CheckType)
	if resp != nil && w.o.Fetch.Capture {
		resp.Wire = r.Wire(res.Lease.URL, resp)
		res.visit.Beside = w.captured(res, r)
	}
	resp, failure, report := w.ended(res, res.Lease.URL, resp, err)
	if failure != nil && report.Broken {
		report.Broken = false // the fetcher has made its request, and says what came of it
	}
	if r.Took <= 0 { // for so long the fetcher had the URL, not the host the request
		report.Duration = 0
	}
	res.Page.Report, res.Page.Next = report, r.Next
	w.takePage(res.Ctx, res, resp, failure)
}
