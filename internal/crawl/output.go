package crawl

import (
	"context"
	"errors"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/extract"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/storage"
)

// keepText keeps of a document what the output has of it.
func (w *worker) keepText(res *result, doc *extract.Page) {
	if w.o.Archive.Has(archive.FormatText) {
		res.visit.Text = &archive.Text{Title: doc.Title, Language: doc.Language, Text: doc.Text}
	}
	if !w.o.Archive.Has(archive.FormatLinks) && !w.o.Archive.Outlinks {
		return
	}
	for i := range doc.Links {
		l := &doc.Links[i]
		res.visit.Links = append(res.visit.Links, archive.Link{To: l.URL.String(), Text: l.Text, Rel: l.Rel})
	}
}

// output encodes what a page lease came to: a response, or a failure.
func (w *worker) output(ctx context.Context, res *result, page *archive.Page, resp *fetch.Response, failure *fetch.Error) {
	if w.o.Archive.Has(archive.FormatNone) {
		return
	}
	l := &res.lease
	page.Via = w.via(&l.Head)
	if _, again := w.o.Frontier.Attempted(&l.Head, res.page.Outcome.State); !again {
		res.visit.Page = page
	}
	if x, answer := exchangeOf(l, resp, failure); x != nil {
		res.visit.Exchange = x
		if answer.Wire.Plain {
			x.Payload = res.body
		}
		x.Facts = pageFacts(l, page, answer)
		if failure == nil {
			x.Original = w.original(res, answer.Status)
		}
		if w.o.Archive.Outlinks {
			x.Facts = appendOutlinks(x.Facts, res.visit.Links)
		}
	}
	if !w.prepare(ctx, res) {
		res.page = frontier.PageReport{Report: brokenOff(res.page.Report)}
		res.found, res.refused = nil, nil
		return
	}
	o, whole := &res.page.Outcome, resp != nil && resp.Status == 200
	if whole && o.Digest != 0 && res.item != nil && res.item.Stored {
		res.payload = &storage.Payload{
			Host: l.Host, Digest: o.Digest, SHA256: res.item.Payload, Ordinal: l.Head.Ordinal, At: resp.Start,
		}
	}
}

// outputRobots encodes what a request for a robots.txt came to.
func (w *worker) outputRobots(ctx context.Context, res *result, resp *fetch.Response, failure *fetch.Error) {
	x, answer := exchangeOf(&res.lease, resp, failure)
	if x == nil {
		return
	}
	res.visit.Exchange = x
	x.Facts = robotsFacts(&res.lease, answer)
	if !w.prepare(ctx, res) {
		res.robots.Report = brokenOff(res.robots.Report)
	}
}

// brokenOff returns the report of a request whose response cannot be kept: it will be made again.
func brokenOff(report frontier.Report) frontier.Report {
	report.Broken = true
	return report
}

// prepare encodes a visit. While there is no space for that it waits, and reports it as the committer
// does; false: the crawl ended meanwhile.
func (w *worker) prepare(ctx context.Context, res *result) bool {
	visit := res.visit
	res.visit = archive.Visit{}
	for {
		item, err := w.encoder.Encode(&visit)
		var full *spool.Error
		switch {
		case err == nil && !item.Empty():
			res.item = item
			return true
		case err == nil:
			return true
		case !errors.As(err, &full):
			w.log.Error("cannot encode for the output", "url", res.lease.URL.String(), "error", err)
			return true
		}
		if !waitForSpace(ctx, w.stalls, outputError(err)) {
			return false
		}
	}
}

// original finds a stored response that a new one may equal: one of the same host with the same
// content.
func (w *worker) original(res *result, status int) *archive.Original {
	if status != 200 && status != 304 {
		return nil
	}
	return w.stored(res.lease.Host, res.page.Outcome.Digest)
}

// stored finds the response that holds a content; nil if there is none.
func (w *worker) stored(host storage.HostID, digest uint64) *archive.Original {
	if digest == 0 {
		return nil
	}
	if o := w.bodies.find(host, digest); o != nil {
		return o
	}
	p, ok, err := w.store.Payload(host, digest)
	if err != nil {
		w.log.Warn("cannot look up a content in the database; it is written again", "error", err)
	}
	if !ok {
		return nil
	}
	u, err := w.store.URL(p.Host, p.Ordinal)
	if err != nil {
		return nil
	}
	return &archive.Original{URL: u.String(), At: p.At, Payload: p.SHA256}
}

// validators returns those of the last response. An archive that does not hold that response needs
// the page itself, so none are sent then.
func (w *worker) validators(l *frontier.Lease) (etag, modified string) {
	last := &l.Head.Last
	if (last.ETag != "" || last.Modified != "") && w.o.capturesExchanges() && w.stored(l.Host, last.Digest) == nil {
		return "", ""
	}
	return last.ETag, last.Modified
}
