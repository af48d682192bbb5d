package crawl

import (
	"context"
	"encoding/binary"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/httpfield"
	"github.com/amble-crawler/amble/storage"
)

// fetchPage serves a Page lease: one request, its links, its line of output.
func (w *worker) fetchPage(ctx context.Context, res *result) {
	l := &res.lease
	etag, modified := w.validators(l)
	resp, failure, report := w.request(ctx, res, fetch.Request{
		URL: l.URL, Address: l.Address, ETag: etag, LastModified: modified,
		MaxBody: w.maxBody(&l.Head), AnyType: l.Head.Sitemap,
	})
	defer closePartial(failure)
	res.page.Report = report
	if !report.Sent || report.Broken {
		return
	}
	if last := l.Head.Last.State; last != storage.Queued && last != storage.Retrying {
		w.tally.recrawls.Add(1)
	}
	page := archive.Page{URL: l.URL.String(), Depth: int(l.Head.Depth), Attempts: int(l.Head.Last.Attempts) + 1}
	if failure != nil {
		res.page.Outcome = failed(failure)
		page.FetchedAt, page.Duration = failure.Start, report.Duration
		page.Reason, page.Error = failure.Kind.String(), failure.Error()
	} else {
		describe(&page, resp)
		w.judge(ctx, res, resp, &page)
		if res.page.Broken {
			return
		}
	}
	if resp != nil && resp.Status/100 == 2 {
		w.tally.pages.Add(1)
	}
	w.output(ctx, res, &page, resp, failure)
}

// closePartial gives back what a failed request has left.
func closePartial(failure *fetch.Error) {
	if failure != nil {
		_ = failure.Partial.Close() // nothing can be done about a file that cannot be closed
	}
}

// failed returns the outcome of a request without a response.
func failed(failure *fetch.Error) storage.Outcome {
	o := storage.Outcome{State: storage.Failed, Reason: reasonOf(failure.Kind)}
	if failure.Kind.Temporary() {
		o.State = storage.Retrying
	}
	return o
}

func describe(page *archive.Page, resp *fetch.Response) {
	page.Status, page.FetchedAt = resp.Status, resp.Start
	page.FirstByte, page.Duration = resp.FirstByte.Sub(resp.Start), resp.End.Sub(resp.Start)
	page.ContentType = resp.Header.Get("Content-Type")
	page.Bytes, page.Truncated = resp.Body.Size(), resp.Truncated
}

// judge makes an outcome of a response, and takes the links of a page and the target of a redirect.
func (w *worker) judge(ctx context.Context, res *result, resp *fetch.Response, page *archive.Page) {
	o := storage.Outcome{Status: uint16(resp.Status), Reason: storage.ReasonStatus, Bytes: uint64(resp.Body.Size())}
	switch {
	case resp.Status/100 == 2, resp.Status == 304:
		o.State, o.Reason = storage.Fetched, storage.ReasonNone
		o.ETag, o.Modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
		if resp.Status == 304 {
			o.Digest = res.lease.Head.Last.Digest
		} else {
			sum, err := digest(resp.Body)
			if err != nil {
				res.page.Outcome = w.unreadable(page, err)
				return
			}
			o.Digest, page.Digest = binary.BigEndian.Uint64(sum[:]), sum.String()
			res.body = sum
		}
		if err := w.read(ctx, res, resp, page); err != nil {
			res.page.Outcome = w.unreadable(page, err)
			return
		}
		o.Simhash = res.simhash
		w.compare(res, &o, resp.Header)
	case httpfield.IsRedirect(resp.Status):
		o.State, o.Reason = w.redirect(res, resp, page)
		if o.State == storage.Redirected && w.recrawls {
			o.Digest = targetDigest(page.Redirect)
			w.compare(res, &o, resp.Header)
		}
	case retriedStatus(resp.Status):
		o.State = storage.Retrying
	default:
		o.State = storage.Failed
	}
	res.page.Outcome = o
}

// retriedStatus reports whether the same request may get another response later.
func retriedStatus(status int) bool {
	return status >= 500 || status == 429 || status == 408 || status == 425
}

// unreadable returns the outcome of a page whose body could not be read back from its file: the
// page is fetched again.
func (w *worker) unreadable(page *archive.Page, err error) storage.Outcome {
	w.log.Error("cannot read back a body", "url", page.URL, "error", err)
	page.Reason, page.Error = fetch.KindLocal.String(), err.Error()
	return storage.Outcome{State: storage.Retrying, Reason: reasonOf(fetch.KindLocal)}
}

// redirect makes a discovery of a redirect's target: a URL like any other, with the politeness and
// the rules of its own host.
func (w *worker) redirect(res *result, resp *fetch.Response, page *archive.Page) (storage.State, storage.Reason) {
	l := &res.lease
	target, err := l.URL.Resolve(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		page.Reason = "redirect without a usable target"
		return storage.Failed, storage.ReasonLocation
	}
	page.Redirect = target.String()
	if target == l.URL {
		page.Reason = "redirect to itself"
		if resp.NewCookies { // which it may have been for
			return storage.Retrying, storage.ReasonLoop
		}
		return storage.Failed, storage.ReasonLoop
	}
	if l.Head.Redirects >= w.o.Frontier.MaxRedirects {
		page.Reason = "too many redirects"
		return storage.Failed, storage.ReasonRedirects
	}
	inScope := w.scope().Check
	if l.Head.Sitemap {
		inScope = w.scope().CheckSitemap
	}
	verdict := inScope(target)
	if verdict == frontier.OutOfSeeds && l.Head.Seed {
		res.scopeSeed, verdict = target, frontier.InScope
	}
	if verdict != frontier.InScope {
		page.Reason = "target " + verdict.String()
		w.tally.outside.Add(1)
		return storage.Redirected, storage.ReasonScope
	}
	if trap := w.trap(res, target); trap != storage.NoTrap {
		page.Reason = "target leads into a trap: " + trap.String()
		return storage.Redirected, storage.ReasonNone
	}
	f := w.discovery(res, target, l.Head.Depth)
	f.Redirects, f.Seed = l.Head.Redirects+1, l.Head.Seed
	if l.Head.Sitemap {
		f.Sitemap, f.Priority = true, l.Head.Priority
	}
	res.found = append(res.found, f)
	return storage.Redirected, storage.ReasonNone
}
