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

// wantOutput asks for what the formats of the output need.
func (e *Engine) wantOutput() {
	formats := &e.o.Archive
	e.writes = !formats.Has(archive.FormatNone)
	e.o.Fetch.Capture = e.capturing()
	e.o.Extract.Text = e.o.Extract.Text || formats.Has(archive.FormatText) || e.comparesText()
	e.o.Extract.LinkText = e.o.Extract.LinkText || formats.Has(archive.FormatLinks)
}

// capturing reports whether requests and answers are kept as they are.
func (e *Engine) capturing() bool { return e.o.Archive.Has(archive.FormatWARC) }

// keepWords keeps of a document what the output has of it.
func (r *run) keepWords(res *result, doc *extract.Page) {
	if r.o.Archive.Has(archive.FormatText) {
		res.visit.Text = &archive.Text{Title: doc.Title, Language: doc.Language, Text: doc.Text}
	}
	if !r.o.Archive.Has(archive.FormatLinks) && !r.o.Archive.Outlinks {
		return
	}
	for i := range doc.Links {
		l := &doc.Links[i]
		res.visit.Links = append(res.visit.Links, archive.Link{To: l.URL.String(), Text: l.Text, Rel: l.Rel})
	}
}

// output encodes what a page lease came to: an answer, or a failure.
func (r *run) output(ctx context.Context, res *result, page *archive.Page, resp *fetch.Response, failure *fetch.Error) {
	if !r.writes {
		return
	}
	l := &res.lease
	page.Via = r.via(&l.Head)
	if _, again := r.o.Frontier.Attempted(&l.Head, res.page.Outcome.State); !again {
		res.visit.Page = page
	}
	if x, answer := exchangeOf(l, resp, failure); x != nil {
		res.visit.Exchange = x
		if answer.Wire.Plain {
			x.Payload = res.body
		}
		x.Facts = pageFacts(l, page, answer)
		if failure == nil {
			x.Original = r.original(res, answer.Status)
		}
		if r.o.Archive.Outlinks {
			x.Facts = appendOutlinks(x.Facts, res.visit.Links)
		}
	}
	if !r.prepare(ctx, res) {
		res.page = frontier.PageReport{Report: brokenOff(res.page.Report)}
		res.found, res.refused = nil, nil
		return
	}
	if o := &res.page.Outcome; res.item != nil && res.item.Stored && resp != nil && resp.Status == 200 && o.Digest != 0 {
		res.payload = &storage.Payload{Host: l.Host, Digest: o.Digest, SHA256: res.item.Payload, Ordinal: l.Head.Ordinal, At: resp.Start}
	}
}

// outputRobots encodes what a request for a robots.txt came to.
func (r *run) outputRobots(ctx context.Context, res *result, resp *fetch.Response, failure *fetch.Error) {
	x, answer := exchangeOf(&res.lease, resp, failure)
	if x == nil {
		return
	}
	res.visit.Exchange = x
	x.Facts = robotsFacts(&res.lease, answer)
	if !r.prepare(ctx, res) {
		res.robots.Report = brokenOff(res.robots.Report)
	}
}

// brokenOff is a request whose answer cannot be kept: it will be made again.
func brokenOff(report frontier.Report) frontier.Report {
	report.Broken = true
	return report
}

// prepare encodes a visit. While there is no room for that it waits, which is said as that of the committer is; it fails
// when the crawl is ended meanwhile.
func (r *run) prepare(ctx context.Context, res *result) bool {
	visit := res.visit
	res.visit = archive.Visit{}
	for {
		item, err := r.encoder.Encode(&visit)
		var full *spool.Error
		switch {
		case err == nil && !item.Empty():
			res.item = item
			return true
		case err == nil:
			return true
		case !errors.As(err, &full):
			r.log.Error("cannot encode for the output", "url", res.lease.URL.String(), "error", err)
			return true
		}
		if !r.pause(ctx, outputError(err)) {
			return false
		}
	}
}

// original finds a stored answer that a new one may equal: one of the same host with the same content.
func (r *run) original(res *result, status int) *archive.Original {
	if status != 200 && status != 304 {
		return nil
	}
	return r.stored(res.lease.Host, res.page.Outcome.Digest)
}

// stored finds the answer that holds a content; nil where there is none.
func (r *run) stored(host storage.HostID, digest uint64) *archive.Original {
	if digest == 0 {
		return nil
	}
	if o := r.bodies.find(host, digest); o != nil {
		return o
	}
	p, ok, err := r.store.Payload(host, digest)
	if err != nil {
		r.log.Warn("cannot look up a content in the database; it is written again", "error", err)
	}
	if !ok {
		return nil
	}
	u, err := r.store.URL(p.Host, p.Ordinal)
	if err != nil {
		return nil
	}
	return &archive.Original{URL: u.String(), At: p.At, Payload: p.SHA256}
}

// validators are those of the last answer. An archive that does not hold that answer needs the page itself, so none are sent then.
func (r *run) validators(l *frontier.Lease) (etag, modified string) {
	last := &l.Head.Last
	if (last.ETag != "" || last.Modified != "") && r.capturing() && r.stored(l.Host, last.Digest) == nil {
		return "", ""
	}
	return last.ETag, last.Modified
}
