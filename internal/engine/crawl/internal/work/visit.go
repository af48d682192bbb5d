package work

import (
	"cmp"
	"context"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/visiting"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/storage"
)

// visit serves a Visited lease: one request, which only its watcher learns of.
func (w *Worker) visit(ctx context.Context, res *Result) {
	l, x := &res.Lease, res.Lease.Robots.Visit.Watcher.(*visiting.Visit)
	if res.Robots.End = w.o.Now(); !x.Begin() {
		return
	}
	if _, x.Usage = w.RefusesUse(l); x.Usage {
		return
	}
	resp, failure, report := w.request(ctx, res, fetch.Request{URL: l.URL, Address: l.Address, AnyType: true})
	defer closePartial(failure)
	res.Robots.Report, x.Request = report, res.Request
	x.Page = archive.Page{URL: l.URL.String(), Attempts: 1}
	if failure != nil {
		x.Failure, x.Page.FetchedAt = failure, failure.Start
		x.Page.Reason, x.Page.Error = failure.Kind.String(), failure.Error()
		return
	}
	describe(&x.Page, resp)
	x.Header, x.Proto, x.Page.Note = resp.Header, resp.Proto, refusalNote(resp)
	if resp.Status/100 == 2 {
		if sum, err := res.digestOf(resp.Body); err == nil {
			res.body, x.Page.Digest = sum, sum.String()
		}
	}
	w.readVisit(ctx, res, x, resp)
	res.Robots.Wall = res.Page.Wall
}

// readVisit reads a response as a crawl would.
func (rd *reading) readVisit(ctx context.Context, res *Result, x *visiting.Visit, resp *fetch.Response) {
	if rd.judgeWall(res, resp) {
		x.Page.Reason = inspect.ReasonName(storage.ReasonWall)
		x.Wall = cmp.Or(rd.marks.Name(res.Page.Wall.Mark.Wall), "unknown make")
		return
	}
	if httpfield.IsRedirect(resp.Status) {
		if target, err := x.URL.Resolve(resp.Header.Get("Location")); err == nil {
			x.Page.Redirect = target.String()
		}
		return
	}
	wishes, base := extract.HeaderDirectives(resp.Header, rd.o.Frontier.Tokens), x.URL
	if resp.Status/100 == 2 && extract.IsHTML(resp.Header.Get("Content-Type"), resp.Body.Head(sniffBytes)) {
		doc, err := rd.html(ctx, resp, x.URL, rd.o.Extract)
		if err != nil {
			x.Page.Error = err.Error()
			return
		}
		takeDocumentFacts(&x.Page, &doc, resp)
		x.Document, wishes, base = &doc, doc.Robots, doc.Base
	}
	res.Page.End = resp.End
	note(res, &x.Page, &wishes)
	rd.noteUsage(res, resp.Header, &x.Page, &wishes, base)
}
