package work

import (
	"context"
	"errors"
	"sync"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/bodies"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/facts"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/storage"
)

// keepText keeps of a document what the output has of it.
func (ar *archiving) keepText(res *Result, doc *extract.Page) {
	needs := ar.o.Archive.Needs()
	if needs.Text {
		res.visit.Text = &archive.Text{Title: doc.Title, Language: doc.Language, Text: doc.Text}
	}
	if !needs.Links {
		return
	}
	for i := range doc.Links {
		l := &doc.Links[i]
		res.visit.Links = append(res.visit.Links, archive.Link{To: l.URL.String(), Text: l.Text, Rel: l.Rel})
	}
}

// output encodes what a page lease came to: a response, or a failure.
func (ar *archiving) output(
	ctx context.Context, res *Result, page *archive.Page, resp *fetch.Response, failure *fetch.Error,
) {
	if ar.o.Archive.IsNone() || res.behindWall {
		return
	}
	l := &res.Lease
	page.Via = ar.via(&l.Head)
	if _, again := ar.o.Frontier.Attempted(&l.Head, res.Page.Outcome.State); !again {
		res.visit.Page = page
	}
	isStored := res.Page.Outcome.Reason != storage.ReasonUsage
	if l.Head.Seed && res.seed != nil && res.seed.NoStore && failure == nil && resp.Status/100 == 2 {
		isStored, res.visit.Page = false, nil
	}
	if !isStored {
		res.visit.Text, res.visit.Links = nil, nil
	}
	x, answer := facts.Exchange(l, resp, failure)
	if x != nil && isStored && !res.unarchived && res.Page.Outcome.Reason != storage.ReasonWall {
		res.visit.Exchange = x
		if answer.Wire.Plain {
			x.Payload = res.body
		}
		x.Facts = facts.Page(l, page, answer)
		if failure == nil {
			x.Original = ar.original(res, answer.Status)
		}
		if name := res.Remote.Fetcher(); name != "" {
			x.Facts.Add("fetcher", name)
		}
		if ar.o.Archive.Outlinks {
			x.Facts = facts.AppendOutlinks(x.Facts, res.visit.Links)
		}
		x.Facts = append(x.Facts, res.requisites...)
	}
	if res.visit.Exchange == nil {
		res.visit.Beside = nil
	}
	if !ar.prepare(ctx, res) {
		end := frontier.RequestEnd{Report: brokenOff(res.Page.Report)}
		res.Page = frontier.PageReport{RequestEnd: end}
		res.Found, res.Refused = nil, nil
		return
	}
	o, whole := &res.Page.Outcome, resp != nil && resp.Status == 200
	if whole && o.Digest != 0 && res.Item != nil && res.Item.Stored {
		res.Payload = &storage.Payload{
			Host: l.Host, Digest: o.Digest, SHA256: res.Item.Payload, Ordinal: l.Head.Ordinal, At: resp.Start,
		}
	}
}

// DropOutput takes back what the output would have of a response that is no page.
func (res *Result) DropOutput() (err error) {
	if res.Item != nil {
		err = res.Item.Close()
	}
	res.Item, res.Payload = nil, nil
	return err
}

// outputRobots encodes what a request for a robots.txt came to.
func (ar *archiving) outputRobots(ctx context.Context, res *Result, resp *fetch.Response, failure *fetch.Error) {
	x, answer := facts.Exchange(&res.Lease, resp, failure)
	if x == nil {
		return
	}
	res.visit.Exchange = x
	x.Facts = facts.Robots(&res.Lease, answer)
	if !ar.prepare(ctx, res) {
		res.Robots.Report = brokenOff(res.Robots.Report)
	}
}

// brokenOff returns the report of a request whose response cannot be kept: it will be made again.
func brokenOff(report frontier.Report) frontier.Report {
	report.Broken = true
	return report
}

// prepare encodes a visit. While there is no space for that it waits, and reports it as the
// committer does; false: the crawl ended meanwhile.
func (ar *archiving) prepare(ctx context.Context, res *Result) bool {
	visit := res.visit
	res.visit = archive.Visit{}
	for {
		item, err := ar.encoder.Encode(&visit)
		var full *spool.Error
		switch {
		case err == nil && !item.Empty():
			res.Item = item
			return true
		case err == nil:
			return true
		case !errors.As(err, &full):
			ar.log.Error("cannot encode for the output", "url", res.Lease.URL.String(), "error", err)
			return true
		}
		if !disk.Wait(ctx, ar.stalls, disk.OutputError(err)) {
			return false
		}
	}
}

// original finds a stored response that a new one may equal: one of the same host with the same content.
func (ar *archiving) original(res *Result, status int) *archive.Original {
	if status != 200 && status != 304 {
		return nil
	}
	return ar.stored(res.Lease.Host, res.Page.Outcome.Digest)
}

// stored finds the response that holds a content; nil if there is none.
func (ar *archiving) stored(host storage.HostID, digest uint64) *archive.Original {
	if digest == 0 {
		return nil
	}
	o, mayBeStored := ar.recent.Find(bodies.Key{Host: host, Digest: digest})
	if o != nil || !mayBeStored {
		return o
	}
	p, ok, err := ar.store.Payload(host, digest)
	if err != nil {
		ar.log.Warn("cannot look up a content in the database; it is written again", "error", err)
	}
	if !ok {
		return nil
	}
	u, err := ar.store.URL(p.Host, p.Ordinal)
	if err != nil {
		return nil
	}
	return &archive.Original{URL: u.String(), At: p.At, Payload: p.SHA256}
}

// requestOf returns the request for a page, with the validators of its last response. An archive that does not hold
// that response needs the page itself, so none are sent then.
func (ar *archiving) requestOf(l *frontier.Lease) fetch.Request {
	last, r := &l.Head.Last, fetch.Request{URL: l.URL, Address: l.Address, Referer: ar.referer(l)}
	if last.ETag+last.Modified != "" && (!ar.o.Fetch.Capture || ar.stored(l.Host, last.Digest) != nil) {
		r.ETag, r.LastModified = last.ETag, last.Modified
	}
	return r
}

// pageTexts remembers the URLs of pages that links were found on: what one page links to is mostly
// fetched soon after each other. It is safe for concurrent use.
type pageTexts struct {
	mu     sync.Mutex                  // guards what follows
	recent map[storage.Position]string // those used last
	older  map[storage.Position]string // forgotten when recent has maxPageTexts
}

// maxPageTexts bounds recent, and older.
const maxPageTexts = 1024

// get returns the URL of a page.
func (v *pageTexts) get(page storage.Position) (url string, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if url, known = v.recent[page]; known {
		return url, true
	}
	if url, known = v.older[page]; known {
		v.putLocked(page, url)
	}
	return url, known
}

func (v *pageTexts) put(page storage.Position, url string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.putLocked(page, url)
}

func (v *pageTexts) putLocked(page storage.Position, url string) {
	if v.recent == nil || len(v.recent) >= maxPageTexts {
		v.recent, v.older = make(map[storage.Position]string), v.recent
	}
	v.recent[page] = url
}

// via returns the URL of the page that a URL was found on; empty if there is none.
func (ar *archiving) via(head *storage.Head) string {
	if head.ViaHost == storage.NoHost {
		return ""
	}
	page := storage.Position{Host: head.ViaHost, Ordinal: head.ViaOrdinal}
	if text, known := ar.pageTexts.get(page); known {
		return text
	}
	u, err := ar.store.URL(page.Host, page.Ordinal)
	if err != nil {
		return ""
	}
	text := u.String()
	ar.pageTexts.put(page, text)
	return text
}
