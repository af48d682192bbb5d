package crawl

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/extract"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/httpfield"
	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// sniffBytes is how much of a body is looked at for what it is (WHATWG MIME
// Sniffing, section 5.2, reads as far).
const sniffBytes = 1445

// fetchPage serves a Page lease: one request, its links, its line of output.
func (r *run) fetchPage(ctx context.Context, res *result) {
	l := &res.lease
	etag, modified := r.validators(l)
	resp, failure, report := r.request(ctx, res, fetch.Request{
		URL: l.URL, Address: l.Address, ETag: etag, LastModified: modified, MaxBody: r.maxBody(&l.Head), AnyType: l.Head.Sitemap,
	})
	defer closePartial(failure)
	res.page.Report = report
	if !report.Sent || report.Broken {
		return
	}
	if last := l.Head.Last.State; last != storage.Queued && last != storage.Retrying {
		r.tally.recrawls.Add(1)
	}
	page := archive.Page{URL: l.URL.String(), Depth: int(l.Head.Depth), Attempts: int(l.Head.Last.Attempts) + 1}
	if failure != nil {
		res.page.Outcome = failed(failure)
		page.FetchedAt, page.Duration = failure.Start, report.Duration
		page.Reason, page.Error = failure.Kind.String(), failure.Error()
	} else {
		describe(&page, resp)
		r.judge(ctx, res, resp, &page)
		if res.page.Broken {
			return
		}
	}
	if resp != nil && resp.Status/100 == 2 {
		r.tally.pages.Add(1)
	}
	r.output(ctx, res, &page, resp, failure)
}

// closePartial gives back what a failed request has left.
func closePartial(failure *fetch.Error) {
	if failure != nil {
		_ = failure.Partial.Close() // a file that cannot be closed: nothing is to be done about it
	}
}

// failed is the outcome of a request without an answer.
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

// judge makes an outcome of an answer, and takes the links of a page and the
// target of a redirect.
func (r *run) judge(ctx context.Context, res *result, resp *fetch.Response, page *archive.Page) {
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
				res.page.Outcome = r.unreadable(page, err)
				return
			}
			o.Digest, page.Digest = binary.BigEndian.Uint64(sum[:]), sum.String()
			res.body = sum
		}
		if err := r.read(ctx, res, resp, page); err != nil {
			res.page.Outcome = r.unreadable(page, err)
			return
		}
		o.Simhash = res.simhash
		r.compare(res, &o, resp.Header)
	case httpfield.IsRedirect(resp.Status):
		o.State, o.Reason = r.redirect(res, resp, page)
		if o.State == storage.Redirected && r.plan != nil {
			o.Digest = targetDigest(page.Redirect)
			r.compare(res, &o, resp.Header)
		}
	case retriedStatus(resp.Status):
		o.State = storage.Retrying
	default:
		o.State = storage.Failed
	}
	res.page.Outcome = o
}

// retriedStatus reports whether the same request may bring another answer later.
func retriedStatus(status int) bool {
	return status >= 500 || status == 429 || status == 408 || status == 425
}

// unreadable is the outcome of a page whose body could not be read back from its
// file: the page is asked for again.
func (r *run) unreadable(page *archive.Page, err error) storage.Outcome {
	r.log.Error("cannot read back a body", "url", page.URL, "error", err)
	page.Reason, page.Error = fetch.KindLocal.String(), err.Error()
	return storage.Outcome{State: storage.Retrying, Reason: reasonOf(fetch.KindLocal)}
}

// redirect makes a discovery of a redirect's target: a URL like any other, with
// the politeness and the rules of its own host.
func (r *run) redirect(res *result, resp *fetch.Response, page *archive.Page) (storage.State, storage.Reason) {
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
	if l.Head.Redirects >= r.o.Frontier.MaxRedirects {
		page.Reason = "too many redirects"
		return storage.Failed, storage.ReasonRedirects
	}
	inScope := r.scope.Load().Check
	if l.Head.Sitemap {
		inScope = r.scope.Load().CheckSitemap
	}
	verdict := inScope(target)
	if verdict == frontier.OutOfSeeds && l.Head.Seed {
		res.join, verdict = target, frontier.InScope
	}
	if verdict != frontier.InScope {
		page.Reason = "target " + verdict.String()
		r.tally.outside.Add(1)
		return storage.Redirected, storage.ReasonScope
	}
	if trap := r.trap(res, target); trap != storage.NoTrap {
		page.Reason = "target leads into a trap: " + trap.String()
		return storage.Redirected, storage.ReasonNone
	}
	f := r.discovery(res, target, l.Head.Depth)
	f.Redirects, f.Seed = l.Head.Redirects+1, l.Head.Seed
	if l.Head.Sitemap {
		f.Sitemap, f.Priority = true, l.Head.Priority
	}
	res.found = append(res.found, f)
	return storage.Redirected, storage.ReasonNone
}

// takeLinks extracts the links of an HTML page that belong to the crawl. Its
// error is one of reading the body back.
func (r *run) takeLinks(ctx context.Context, res *result, resp *fetch.Response, page *archive.Page) error {
	l := &res.lease
	contentType := resp.Header.Get("Content-Type")
	if !extract.IsHTML(contentType, resp.Body.Head(sniffBytes)) {
		return nil
	}
	doc, err := r.html(ctx, resp.Body, resp.Header, l.URL)
	var unread *spool.Error
	switch {
	case errors.As(err, &unread):
		return err
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // it is asked for again
		res.page.Broken = true
		return nil
	}
	if err != nil {
		r.log.Debug("cannot extract", "url", page.URL, "error", err)
		page.Error = err.Error()
		return nil
	}
	page.Title, page.Language, page.Outlinks, page.Canonical = doc.Title, doc.Language, len(doc.Links), doc.Canonical.String()
	switch {
	case doc.Truncated || resp.Body.Size() > maxParse:
		page.Extracted = archive.ExtractedPart
	case doc.Flat:
		page.Extracted = archive.ExtractedFlat
	}
	page.Fields = doc.Fields
	r.keepWords(res, &doc)
	r.sum(res, &doc)
	note(res, page, &doc.Robots)
	if r.forbidsLinks(&doc.Robots) || r.o.Frontier.MaxDepth > 0 && l.Head.Depth >= r.o.Frontier.MaxDepth || l.Head.Depth == math.MaxUint16 {
		return nil
	}
	scope := r.scope.Load()
	res.found = slices.Grow(res.found, len(doc.Links))
	for i := range doc.Links {
		link := &doc.Links[i]
		u, ok := r.admit(scope, link.URL)
		switch {
		case link.NoFollow && r.o.NoFollow:
		case link.Kind == extract.Sitemap:
			if r.o.Sitemaps.Follow {
				r.findSitemap(res, r.discovery(res, link.URL, 0))
			}
		case !ok:
			r.tally.outside.Add(1)
		case r.trap(res, u) != storage.NoTrap:
		default:
			f := r.discovery(res, u, l.Head.Depth+1)
			r.stripSession(&f)
			res.found = append(res.found, f)
		}
	}
	return nil
}

func (r *run) discovery(res *result, u weburl.URL, depth uint16) storage.Found {
	l := &res.lease
	return storage.Found{
		URL: u, Fingerprint: r.store.Fingerprint(u), Depth: depth,
		ViaHost: l.Host, ViaOrdinal: l.Head.Ordinal, At: res.page.End,
	}
}
