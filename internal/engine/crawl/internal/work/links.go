package work

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/stamp"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/expensive"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// takeLinks extracts the links of an HTML page that belong to the crawl. The error is one of reading the body back.
func (rd *reading) takeLinks(ctx context.Context, res *Result, resp *fetch.Response, page *archive.Page) error {
	l := &res.Lease
	isHTML := res.Page.Wall.HTML
	if !rd.o.Frontier.Walls {
		isHTML = extract.IsHTML(resp.Header.Get("Content-Type"), resp.Body.Head(sniffBytes))
	}
	if !isHTML {
		rd.compareLinks(res, "", false)
		return nil
	}
	var mark uint32
	if rd.stamps != nil && !resp.Truncated {
		mark = rd.stamps.Of(&l.Head, rd.scope(), resp.Header, res.body)
	}
	if stamp.IsKnown(&l.Head, shortDigest(res.body), mark) {
		page.Extracted, res.stamp = archive.ExtractedEarlier, mark
		return nil
	}
	rd.endRequest(res)
	o := rd.o.Extract
	o.Text = o.Text || rd.comparesText(res) || rd.mazes.Suspects(l.HostName)
	doc, err := rd.html(ctx, resp, l.URL, o)
	var unread *spool.Error
	switch {
	case errors.As(err, &unread):
		return err
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // it is fetched again
		res.Page.Broken = true
		return nil
	}
	if err != nil {
		rd.log.Debug("cannot extract", "url", page.URL, "error", err)
		page.Error = err.Error()
		return nil
	}
	takeDocumentFacts(page, &doc, resp)
	rd.keepText(res, &doc)
	rd.noteProducts(res, doc.Generator, resp.Header)
	if rd.comparesText(res) {
		res.simhash = recrawl.Simhash(doc.Text)
	}
	if !doc.Robots.SaysMore(extract.HeaderDirectives(resp.Header, rd.o.Frontier.Tokens)) {
		res.stamp = mark // else it is read at each visit
	}
	note(res, page, &doc.Robots)
	rd.noteUsage(res, resp.Header, page, &doc.Robots, doc.Base)
	rd.takeDocument(res, &doc, &doc.Robots)
	return nil
}

// takeDocumentFacts takes what the output has of a document.
func takeDocumentFacts(page *archive.Page, doc *extract.Page, resp *fetch.Response) {
	page.Title, page.Language, page.Outlinks = doc.Title, doc.Language, len(doc.Links)
	page.Canonical, page.Fields, page.NeedsBrowser = doc.Canonical.String(), doc.Fields, doc.NeedsBrowser
	switch {
	case doc.Cut != 0 || resp.Body.Size() > maxParse:
		page.Extracted = archive.ExtractedPart
	case doc.Flat:
		page.Extracted = archive.ExtractedFlat
	}
}

// endRequest ends the request of a page whose links take time, so that its host may have the next
// one meanwhile. A host with a delay waits for longer than that. Which short pages are those of a
// wall is only known later: their leases have one end, so that its sweep finds all of them on disk.
func (rd *reading) endRequest(res *Result) {
	isPage := !rd.o.Frontier.Walls || res.Page.Wall.Sign() == wall.SignPage
	if res.Lease.Delay > 0 || res.Remote != nil || !isPage {
		return
	}
	res.RequestEnded = true
	rd.endRequestOf(res, res.Page.RequestEnd)
	runtime.Gosched() // the dispatcher runs now: until another processor runs it, the links would be read
}

// takeDocument makes discoveries of the links of a document, if they are followed by its depth and its directives.
func (rd *reading) takeDocument(res *Result, doc *extract.Page, d *extract.Directives) {
	l := &res.Lease
	if rd.forbidsLinks(d) {
		return
	}
	scope := rd.scope()
	isDeep := l.Head.Depth >= res.seed.Depth(rd.o.Frontier.MaxDepth)
	if isDeep {
		res.Passed.Deep += uint32(len(doc.Links))
		if !scope.ChecksOutside() {
			return
		}
	}
	res.Found = slices.Grow(res.Found, len(doc.Links))
	for i := range doc.Links {
		link := &doc.Links[i]
		u, from, ok := rd.admit(scope, res, link.URL)
		switch {
		case link.NoFollow && rd.o.NoFollow, isDeep && from != seeds.Checked:
		case link.Kind == extract.Sitemap:
			if rd.o.Sitemaps.Follow && res.seed.Follows(false) {
				rd.findSitemap(res, rd.sitemap(res, link.URL))
			}
		case link.Kind != extract.Refresh && !res.seed.Follows(true):
		case !ok:
			res.Passed.Outside++
		case rd.trap(res, u) != storage.NoTrap:
		case link.Kind == extract.Refresh:
			rd.takeRefresh(res, u, from)
		default:
			f := rd.discovery(res, u, from, l.Head.Depth+1)
			rd.stripSession(&f)
			postpone(rd.o.Traps.Expensive, res, &f)
			res.Found = append(res.Found, f)
		}
	}
	rd.compareLinks(res, doc.Text, doc.Robots.NoIndex)
}

// compareLinks compares the links of a page, and its text, with those of others of its host, and leaves out links
// into mazes.
func (rd *reading) compareLinks(res *Result, text string, noIndex bool) {
	l := &res.Lease
	found, refused, isNew := rd.mazes.Links(l.URL, l.Head.Depth, res.Found, text, noIndex)
	res.Found, res.Refused = found, append(res.Refused, refused...)
	if isNew {
		res.Mazes = rd.mazes.Encode(l.HostName)
		rd.log.Warn("parts of a host go on for ever and are left alone: traps.maze_pages", "host", l.HostName,
			"parts", res.Mazes, "page", l.URL.String())
	}
}

// takeRefresh makes a discovery of the target of a refresh, unless the refreshes lead on and on: as many
// may follow each other as redirects.
func (rd *reading) takeRefresh(res *Result, u weburl.URL, from seeds.Ref) {
	l := &res.Lease
	t := rd.o.Traps.CheckRefresh(u, l.URL)
	if l.Head.Redirects >= rd.o.Frontier.MaxRedirects {
		t = storage.TrapRefresh
	}
	if rd.refuse(res, u, t) {
		return
	}
	f := rd.discovery(res, u, from, l.Head.Depth+1)
	f.Redirects = l.Head.Redirects + 1
	postpone(rd.o.Traps.Expensive, res, &f)
	res.Found = append(res.Found, f)
}

// discovery returns the discovery of a URL on the page of a lease; from is the seed that it is reached by.
func (rd *reading) discovery(res *Result, u weburl.URL, from seeds.Ref, depth uint16) storage.Found {
	l := &res.Lease
	return storage.Found{
		URL: u, Fingerprint: rd.store.Fingerprint(u), Depth: depth,
		ViaHost: l.Host, ViaOrdinal: l.Head.Ordinal, At: res.Page.End,
		From: storage.SeedRef(from),
	}
}

// trap returns which trap a discovered URL leads into by its text, and has the store count it.
func (rd *reading) trap(res *Result, u weburl.URL) storage.Trap {
	t := rd.o.Traps.Check(u, res.Lease.URL, res.Page.End)
	if t == storage.NoTrap && rd.o.Traps.Expensive == expensive.Skip && isExpensive(res, u) {
		t = storage.TrapExpensive
	}
	if t == storage.NoTrap && u.Host() != res.Lease.HostName && mayBeAnyHost(rd.scope(), u) && !rd.hosts.Add(u.Host()) {
		t = storage.TrapHosts
	}
	rd.refuse(res, u, t)
	return t
}

// mayBeAnyHost reports whether links such as one may lead to any number of hosts.
func mayBeAnyHost(scope *frontier.Scope, u weburl.URL) bool {
	return scope.Seeds().IsFar() || scope.ChecksOutside() && scope.Seeds().Home(u) == nil
}

// refuse has the store count a URL that leads into a trap. It reports whether it does.
func (rd *reading) refuse(res *Result, u weburl.URL, t storage.Trap) bool {
	if t != storage.NoTrap {
		host := u.Host()
		if t == storage.TrapHosts { // it is not known, so the count is that of the page
			host = res.Lease.HostName
		}
		res.Refused = append(res.Refused, storage.Refused{Host: host, Reason: t, URL: u})
	}
	return t != storage.NoTrap
}

// stripSession makes URLs that differ by a session id only the same to the store. That is for links only: if a site
// redirects to add an id, the target would be known already and its content never seen.
func (rd *reading) stripSession(f *storage.Found) {
	stripped, has := rd.sessions.Strip(f.URL.RequestURI())
	if !has {
		return
	}
	f.Stripped = stripped
	f.Fingerprint = rd.store.Fingerprint(f.URL.Origin().URL(stripped))
}

// Parsers are the permissions to parse, as many as there are cores: the tree of a document is many times its size, and
// more at once would not be faster. Each carries a buffer for documents that are in a file.
type Parsers chan []byte

// NewParsers returns the permissions.
func NewParsers() Parsers {
	n := runtime.GOMAXPROCS(0)
	p := make(Parsers, n)
	for range n {
		p <- nil
	}
	return p
}

// html reads a document. It waits for its turn, which does not depend on the network; the error is
// that of the context if the crawl ends before that.
func (rd *reading) html(
	ctx context.Context, resp *fetch.Response, base weburl.URL, o extract.Options,
) (extract.Page, error) {
	var page extract.Page
	var invalid error
	err := rd.withText(ctx, resp, func(text []byte) {
		page, invalid = extract.HTML(text, resp.Header, base, rd.o.Frontier.Tokens, o)
	})
	return page, cmp.Or(err, invalid)
}

// withText calls f with the start of a body, when it is its turn.
func (rd *reading) withText(ctx context.Context, resp *fetch.Response, f func(text []byte)) error {
	var buf []byte
	select {
	case buf = <-rd.parsers:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { rd.parsers <- buf }()
	text, err := resp.Body.Load(buf, maxParse)
	if err != nil {
		return err
	}
	if _, inMemory := resp.Body.Bytes(); !inMemory {
		buf = text
	}
	f(text)
	return nil
}

// admit applies the rules for discovered URLs to a link of a page. It returns the seed that it is reached by, and
// whether the result is stored.
func (rd *reading) admit(scope *frontier.Scope, res *Result, found weburl.URL) (u weburl.URL, from seeds.Ref, ok bool) {
	u, ok = rd.o.URLs.Apply(found)
	from = rd.reached(scope, res, u)
	if ok && scope.ChecksOutside() && !scope.Keeps(u, from) {
		from = seeds.Checked
	}
	return u, from, ok && scope.Keeps(u, from)
}

// reached returns the seed that a link of a page is reached by.
func (rd *reading) reached(scope *frontier.Scope, res *Result, u weburl.URL) seeds.Ref {
	return scope.Seeds().Link(res.seed, frontier.RefOf(&res.Lease.Head.Entry), u)
}
