package crawl

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net/http"
	"runtime"
	"slices"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/expensive"
	"github.com/amble-crawler/amble/internal/extract"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/httpfield"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/wall"
	"github.com/amble-crawler/amble/internal/warc"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// fetchPage serves a Page lease: one request, its links, its line of output.
func (w *worker) fetchPage(ctx context.Context, res *result) {
	l := &res.lease
	if refusal, refused := w.refusesUse(l); refused {
		res.page = refusal
		return
	}
	etag, modified := w.validators(l)
	resp, failure, report := w.request(ctx, res, fetch.Request{
		URL: l.URL, Address: l.Address, ETag: etag, LastModified: modified,
		MaxBody: w.maxBody(&l.Head), AnyType: l.Head.Sitemap,
	})
	defer closePartial(failure)
	res.page.Report = report
	w.takePage(ctx, res, resp, failure)
}

// takePage takes what a request for a page has brought.
func (w *worker) takePage(ctx context.Context, res *result, resp *fetch.Response, failure *fetch.Error) {
	l, report := &res.lease, &res.page.Report
	if !report.Sent || report.Broken {
		return
	}
	if last := l.Head.Last.State; last != storage.Queued && last != storage.Retrying {
		w.tally.Recrawls.Add(1)
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
	if resp != nil && resp.Status/100 == 2 && res.page.Outcome.Reason != storage.ReasonWall {
		w.tally.Pages.Add(1)
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
	o := storage.Outcome{State: storage.Failed, Reason: reasonOf(failure.Kind), Note: failure.Detail()}
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
	page.Note = refusalNote(resp)
	o := storage.Outcome{
		Status: uint16(resp.Status), Reason: storage.ReasonStatus, Bytes: uint64(resp.Body.Size()), Note: page.Note,
	}
	if resp.Status/100 == 2 {
		sum, err := res.digestOf(resp.Body)
		if err != nil {
			res.page.Outcome = w.unreadable(page, err)
			return
		}
		res.body = sum
	}
	if w.judgeWall(res, resp) {
		res.page.Outcome = wallOutcome(resp, page)
		return
	}
	w.readTDMFile(res, resp)
	switch {
	case resp.Status/100 == 2, resp.Status == 304:
		o.State, o.Reason = storage.Fetched, storage.ReasonNone
		o.ETag, o.Modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
		if resp.Status == 304 {
			o.Digest = res.lease.Head.Last.Digest
		} else if res.body != (warc.Digest{}) {
			o.Digest, page.Digest = binary.BigEndian.Uint64(res.body[:]), res.body.String()
		}
		if err := w.read(ctx, res, resp, page); err != nil {
			res.page.Outcome = w.unreadable(page, err)
			return
		}
		if w.skipsStoring(res) {
			o.Reason, page.Reason = storage.ReasonUsage, inspect.ReasonName(storage.ReasonUsage)
			page.Title, page.Fields = "", nil
		}
		o.Simhash, o.Usage = res.simhash, res.keptUsage
		w.compare(res, &o, resp.Header)
	case httpfield.IsRedirect(resp.Status):
		o.State, o.Reason = w.redirect(res, resp, page)
		if o.State == storage.Redirected && w.recrawls {
			o.Digest = targetDigest(page.Redirect)
			w.compare(res, &o, resp.Header)
		}
	case httpfield.IsTemporary(resp.Status):
		o.State = storage.Retrying
	default:
		o.State = storage.Failed
	}
	res.page.Outcome = o
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
		w.tally.Outside.Add(1)
		if verdict == frontier.OptedOut {
			return storage.Redirected, storage.ReasonOptOut
		}
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
	postpone(w.o.Traps.Expensive, res, &f)
	res.found = append(res.found, f)
	return storage.Redirected, storage.ReasonNone
}

// sniffBytes is how much of a body decides what it is (WHATWG MIME Sniffing, section 5.2, reads as
// far).
const sniffBytes = 1445

// read takes what a body has for the crawl: the URLs of a sitemap or feed, or the links of a page.
// The error is one of reading the body back.
func (w *worker) read(ctx context.Context, res *result, resp *fetch.Response, page *archive.Page) error {
	if w.isTDMFile(res.lease.URL) {
		page.Kind = kindTDM
		return nil
	}
	wishes := extract.HeaderDirectives(resp.Header, w.o.Frontier.Tokens)
	note(res, page, &wishes)
	w.noteUsage(res, resp.Header, page, &wishes, res.lease.URL)
	if !res.hasBody() {
		w.takeReported(res, page, &wishes)
		return nil
	}
	kind := w.listKind(&res.lease, resp)
	switch {
	case kind == extract.NotAList:
		return w.takeLinks(ctx, res, resp, page)
	case w.forbidsLinks(&wishes):
		page.Kind = kind.String()
		return nil
	}
	return w.takeList(ctx, res, resp, page, kind)
}

// forbidsLinks reports whether the links of a page are not to be followed.
func (w *worker) forbidsLinks(d *extract.Directives) bool { return d.NoFollow && w.o.NoFollow }

// note takes the directives of a page. A page that is no longer available is not to be shown, and
// is not fetched again.
func note(res *result, page *archive.Page, d *extract.Directives) {
	res.page.Expires = d.UnavailableAfter
	page.Robots, page.Preferences = d.Seen, d.Preferences
	page.UnavailableAfter = d.UnavailableAfter
	page.NoIndex = d.NoIndex || !d.UnavailableAfter.IsZero() && res.page.End.After(d.UnavailableAfter)
}

// takeLinks extracts the links of an HTML page that belong to the crawl. The error is one of
// reading the body back.
func (w *worker) takeLinks(ctx context.Context, res *result, resp *fetch.Response, page *archive.Page) error {
	l := &res.lease
	contentType := resp.Header.Get("Content-Type")
	if !extract.IsHTML(contentType, resp.Body.Head(sniffBytes)) {
		return nil
	}
	w.endRequest(res)
	doc, err := w.html(ctx, resp.Body, resp.Header, l.URL)
	var unread *spool.Error
	switch {
	case errors.As(err, &unread):
		return err
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // it is fetched again
		res.page.Broken = true
		return nil
	}
	if err != nil {
		w.log.Debug("cannot extract", "url", page.URL, "error", err)
		page.Error = err.Error()
		return nil
	}
	page.Title, page.Language, page.Outlinks = doc.Title, doc.Language, len(doc.Links)
	page.Canonical = doc.Canonical.String()
	switch {
	case doc.Cut != 0 || resp.Body.Size() > maxParse:
		page.Extracted = archive.ExtractedPart
	case doc.Flat:
		page.Extracted = archive.ExtractedFlat
	}
	page.Fields = doc.Fields
	w.keepText(res, &doc)
	noteProducts(res, doc.Generator, resp.Header)
	w.sum(res, &doc)
	note(res, page, &doc.Robots)
	w.noteUsage(res, resp.Header, page, &doc.Robots, doc.Base)
	if w.followsLinks(&l.Head, &doc.Robots) {
		w.takeDocument(res, &doc)
	}
	return nil
}

// endRequest ends the request of a page whose links take time, so that its host may have the next
// one meanwhile. A host with a delay waits for longer than that. Which short pages are those of a
// wall is only known later: their leases have one end, so that its sweep finds all of them on disk.
func (w *worker) endRequest(res *result) {
	isPage := !w.o.Frontier.Walls || res.page.Wall.Sign() == wall.SignPage
	if res.lease.Delay > 0 || res.remote != nil || !isPage {
		return
	}
	res.requestEnded = true
	w.results <- &requestEnd{res, res.page.RequestEnd}
	runtime.Gosched() // the dispatcher runs now: until another processor runs it, the links would be read
}

// followsLinks reports whether the links of a page are followed, by its depth and its directives.
func (w *worker) followsLinks(h *storage.Head, d *extract.Directives) bool {
	deepest := w.o.Frontier.MaxDepth > 0 && h.Depth >= w.o.Frontier.MaxDepth || h.Depth == math.MaxUint16
	return !deepest && !w.forbidsLinks(d)
}

// takeDocument makes discoveries of the links of a document.
func (w *worker) takeDocument(res *result, doc *extract.Page) {
	l := &res.lease
	scope := w.scope()
	res.found = slices.Grow(res.found, len(doc.Links))
	for i := range doc.Links {
		link := &doc.Links[i]
		u, ok := w.o.admit(scope, link.URL)
		switch {
		case link.NoFollow && w.o.NoFollow:
		case link.Kind == extract.Sitemap:
			if w.o.Sitemaps.Follow {
				w.findSitemap(res, w.sitemap(res, link.URL))
			}
		case !ok:
			w.tally.Outside.Add(1)
		case w.trap(res, u) != storage.NoTrap:
		case link.Kind == extract.Refresh:
			w.takeRefresh(res, u)
		default:
			f := w.discovery(res, u, l.Head.Depth+1)
			w.stripSession(&f)
			postpone(w.o.Traps.Expensive, res, &f)
			res.found = append(res.found, f)
		}
	}
}

// takeRefresh makes a discovery of the target of a refresh, unless the refreshes lead on and on: as many
// may follow each other as redirects.
func (w *worker) takeRefresh(res *result, u weburl.URL) {
	l := &res.lease
	t := w.o.Traps.CheckRefresh(u, l.URL)
	if l.Head.Redirects >= w.o.Frontier.MaxRedirects {
		t = storage.TrapRefresh
	}
	if w.refuse(res, u, t) {
		return
	}
	f := w.discovery(res, u, l.Head.Depth+1)
	f.Redirects = l.Head.Redirects + 1
	postpone(w.o.Traps.Expensive, res, &f)
	res.found = append(res.found, f)
}

func (w *worker) discovery(res *result, u weburl.URL, depth uint16) storage.Found {
	l := &res.lease
	return storage.Found{
		URL: u, Fingerprint: w.store.Fingerprint(u), Depth: depth,
		ViaHost: l.Host, ViaOrdinal: l.Head.Ordinal, At: res.page.End,
	}
}

// trap returns which trap a discovered URL leads into by its text, and has the store count it.
func (w *worker) trap(res *result, u weburl.URL) storage.Trap {
	t := w.o.Traps.Check(u, res.lease.URL, res.page.End)
	if t == storage.NoTrap && w.o.Traps.Expensive == expensive.Skip && isExpensive(res, u) {
		t = storage.TrapExpensive
	}
	if t == storage.NoTrap && u.Host() != res.lease.HostName && !w.hosts.add(u.Host()) {
		t = storage.TrapHosts
	}
	w.refuse(res, u, t)
	return t
}

// refuse has the store count a URL that leads into a trap. It reports whether it does.
func (w *worker) refuse(res *result, u weburl.URL, t storage.Trap) bool {
	if t != storage.NoTrap {
		host := u.Host()
		if t == storage.TrapHosts { // it is not known, so the count is that of the page
			host = res.lease.HostName
		}
		res.refused = append(res.refused, storage.Refused{Host: host, Reason: t, URL: u})
	}
	return t != storage.NoTrap
}

// stripSession makes URLs that differ by a session id only the same to the store. That is for links
// only: if a site redirects to add an id, the target would be known already and its content never
// seen.
func (w *worker) stripSession(f *storage.Found) {
	stripped, has := w.sessions.Strip(f.URL.RequestURI())
	if !has {
		return
	}
	f.Stripped = stripped
	f.Fingerprint = w.store.Fingerprint(f.URL.Origin().URL(stripped))
}

// maxParse is how many bytes of a document are searched for links. What follows is kept and
// counted, but not read.
const maxParse = extract.MaxDocument

// parsers are the permissions to parse, as many as there are cores: the tree of a document is many
// times its size, and more at once would not be faster. Each carries a buffer for documents that
// are in a file.
type parsers chan []byte

func newParsers() parsers {
	n := runtime.GOMAXPROCS(0)
	p := make(parsers, n)
	for range n {
		p <- nil
	}
	return p
}

// html reads a document. It waits for its turn, which does not depend on the network; the error is
// that of the context if the crawl ends before that.
func (w *worker) html(
	ctx context.Context, body *spool.Content, header http.Header, base weburl.URL,
) (extract.Page, error) {
	var buf []byte
	select {
	case buf = <-w.parsers:
	case <-ctx.Done():
		return extract.Page{}, ctx.Err()
	}
	defer func() { w.parsers <- buf }()
	text, err := body.Load(buf, maxParse)
	if err != nil {
		return extract.Page{}, err
	}
	if _, inMemory := body.Bytes(); !inMemory {
		buf = text
	}
	return extract.HTML(text, header, base, w.o.Frontier.Tokens, w.o.Extract)
}

// digest returns the SHA-256 of a body.
func digest(body *spool.Content) (warc.Digest, error) {
	if b, ok := body.Bytes(); ok {
		return warc.DigestOf(b), nil
	}
	h := warc.NewHash()
	_, err := body.WriteTo(h)
	return warc.Sum(h), err
}
