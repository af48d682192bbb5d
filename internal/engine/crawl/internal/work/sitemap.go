package work

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// SitemapOptions say which lists of URLs are read.
type SitemapOptions struct {
	Follow bool // sitemaps that a robots.txt, a link or an index names, and those that come as pages
	Guess  bool // fetch /sitemap.xml if robots.txt names none
	Feeds  bool // RSS, Atom and JSON feeds
	Lists  extract.ListOptions
}

const (
	// sitemapPriority puts sitemaps before the pages of the host: the first firstSitemaps of its robots.txt.
	sitemapPriority = 20
	firstSitemaps   = 2
	// lateSitemap is the priority of all others: an index may name thousands. They wait until no page is left,
	// whatever priority a sitemap gives it.
	lateSitemap = -pagePriorities - 1
	// pagePriorities is how far the priority of a sitemap moves a page up or down.
	pagePriorities = 5
	// maxNesting is how many indexes may lead to a sitemap: an index names sitemaps only (sitemaps.org).
	maxNesting = 1
	// maxAnnounced is how many sitemaps of one robots.txt are taken.
	maxAnnounced = 1000
	// listBatch is how many URLs of a list are committed together with its outcome, if it has no
	// more. Those of a longer list are committed by host, in commits of their own.
	listBatch = 5000
	// listBytes is the size of these URLs, in bytes, at which they are fewer. It bounds the memory
	// of a list whose URLs are long.
	listBytes = 1 << 20
)

// takeAnnounced makes discoveries of the sitemaps that a robots.txt names, or of the usual one.
func (rd *reading) takeAnnounced(job *frontier.RobotsJob, texts []string, res *Result) {
	if !rd.o.Sitemaps.Follow {
		return
	}
	if len(texts) == 0 && rd.o.Sitemaps.Guess {
		texts = []string{job.Origin.URL("/sitemap.xml").String()}
	}
	for i, text := range texts[:min(len(texts), maxAnnounced)] {
		priority := int8(lateSitemap)
		if i < firstSitemaps {
			priority = sitemapPriority
		}
		if u, err := weburl.Parse(text); err == nil {
			rd.findSitemap(res, storage.Found{URL: u, At: res.Robots.End, Priority: priority})
		}
	}
}

// findSitemap completes and takes the discovery of a sitemap, if the crawl may read it.
func (rd *reading) findSitemap(res *Result, f storage.Found) {
	scope, from := rd.scope(), seeds.Ref(f.From)
	if m := scope.Seeds().Of(f.URL, from); !m.Follows(false) {
		return
	}
	if scope.CheckSitemap(f.URL, from) != frontier.InScope {
		res.Passed.Outside++
		return
	}
	f.Fingerprint, f.Sitemap = rd.store.Fingerprint(f.URL), true
	res.Found = append(res.Found, f)
}

// sitemap returns the discovery of a sitemap that a page links to.
func (rd *reading) sitemap(res *Result, u weburl.URL) storage.Found {
	f := rd.discovery(res, u, rd.reached(rd.scope(), res, u), 0)
	f.Priority = lateSitemap
	return f
}

// maxBody bounds the body of a page; 0 is the usual bound.
func (rd *reading) maxBody(h *storage.Head) int64 {
	if h.Sitemap && rd.o.Sitemaps.Lists.MaxBytes > rd.o.Fetch.MaxBody {
		return rd.o.Sitemaps.Lists.MaxBytes
	}
	return 0
}

// listKind returns the kind of list that a body is read as.
func (rd *reading) listKind(l *frontier.Lease, seed *seeds.Member, resp *fetch.Response) extract.ListKind {
	kind := extract.SniffList(resp.Header.Get("Content-Type"), resp.Body.Head(extract.SniffBytes),
		l.Head.Sitemap || l.Head.Seed)
	if !seed.Follows(false) || kind.IsFeed() && !rd.o.Sitemaps.Feeds || !kind.IsFeed() && !rd.o.Sitemaps.Follow {
		return extract.NotAList
	}
	return kind
}

// takeList makes discoveries of the URLs of a sitemap or feed. Those of a long one are committed
// before its outcome, so that it takes bounded memory. If the crawl ends meanwhile, the request
// counts as broken off, and a later run reads the list again. The error is one of reading the body
// back.
func (rd *reading) takeList(
	ctx context.Context, res *Result, resp *fetch.Response, page *archive.Page, kind extract.ListKind,
) error {
	in := &checkedReader{ctx: ctx, r: resp.Body.NewReader()}
	taker := listTaker{
		reading: rd, res: res, depth: listDepth(&res.Lease.Head, kind),
		order: lists.Committer{Store: rd.store, Sorter: rd.room.NewSorter(true), Commit: rd.add},
	}
	defer func() { _ = taker.order.Reset() }() // it has no files
	list, err := extract.ReadList(in, kind, resp.Header.Get("Content-Type"), res.Lease.URL, rd.o.Sitemaps.Lists,
		func(item extract.Item) error { return taker.take(ctx, &item) })
	if err == nil && in.err == nil {
		err = taker.commit(ctx)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		rd.log.Debug("the reading of a list is broken off", "url", page.URL, "error", err)
		res.Page.Broken = true
		return nil
	}
	if in.err != nil {
		return in.err
	}
	page.Kind, page.Title, page.Outlinks = kind.String(), list.Title, list.Items
	if list.Truncated || resp.Truncated {
		page.Extracted = archive.ExtractedPart
		rd.log.Warn("a sitemap or feed is longer than the bounds, or breaks off; what comes behind is not read",
			"url", page.URL, "urls", list.Items,
			"max_urls", rd.o.Sitemaps.Lists.MaxItems, "max_size", rd.o.Sitemaps.Lists.MaxBytes)
	}
	return nil
}

// checkedReader remembers why a body could not be read on. It ends with its context.
type checkedReader struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (c *checkedReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// listDepth returns the depth of the pages of a list: those of a sitemap are one link away from a
// seed, those of a feed from the feed.
func listDepth(h *storage.Head, kind extract.ListKind) uint16 {
	if !kind.IsFeed() || h.Depth == math.MaxUint16 {
		return 1
	}
	return h.Depth + 1
}

// listTaker takes the URLs of one list.
type listTaker struct {
	*reading
	res      *Result
	depth    uint16
	bytes    int             // of the URLs in res
	sitemaps int             // that the list names
	order    lists.Committer // of the URLs before them
}

func (t *listTaker) take(ctx context.Context, item *extract.Item) error {
	if item.Role == extract.RoleSitemap {
		t.takeSitemap(item)
	} else {
		t.takePage(item)
	}
	if t.bytes += len(item.URL.String()); t.bytes < listBytes && len(t.res.Found) < listBatch {
		return nil
	}
	for i := range t.res.Found {
		if err := t.order.Take(&lists.Item{Found: t.res.Found[i]}); err != nil {
			return err
		}
	}
	clear(t.res.Found)
	t.res.Found, t.bytes = t.res.Found[:0], 0
	if t.order.Sorter.Full() {
		return t.commit(ctx)
	}
	return nil
}

// commit commits the URLs of a long list by host.
func (t *listTaker) commit(ctx context.Context) error {
	l := &t.res.Lease
	base := storage.Found{ViaHost: l.Host, ViaOrdinal: l.Head.Ordinal, At: t.res.Page.End}
	return t.order.CommitAll(ctx, base, func(*lists.Batch) {})
}

// takeSitemap takes a sitemap that an index names. Its depth counts the indexes on the way to it.
func (t *listTaker) takeSitemap(item *extract.Item) {
	h := &t.res.Lease.Head
	nesting := uint16(1)
	if h.Sitemap {
		nesting = h.Depth + 1
	}
	if t.sitemaps++; nesting > maxNesting || t.sitemaps > t.o.Frontier.MaxSitemaps && t.o.Frontier.MaxSitemaps > 0 {
		return
	}
	f := t.discovery(t.res, item.URL, t.reached(t.scope(), t.res, item.URL), nesting)
	f.Modified, f.Priority = t.modified(item), lateSitemap
	t.findSitemap(t.res, f)
}

func (t *listTaker) takePage(item *extract.Item) {
	u, from, ok := t.admit(t.scope(), t.res, item.URL)
	switch {
	case !t.res.seed.Follows(false):
	case t.depth > t.res.seed.Depth(t.o.Frontier.MaxDepth):
		t.res.Passed.Deep++
	case !ok:
		t.res.Passed.Outside++
	case t.trap(t.res, u) != storage.NoTrap:
	default:
		f := t.discovery(t.res, u, from, t.depth)
		f.Listed, f.Modified, f.Frequency = true, t.modified(item), storage.Frequency(item.Frequency)
		f.Priority = int8(math.Round((item.Priority - 0.5) * 2 * pagePriorities))
		t.stripSession(&f)
		postpone(t.o.Traps.Expensive, t.res, &f)
		t.res.Found = append(t.res.Found, f)
	}
}

// modified returns when a page changed last, as the list says; zero for what has not been yet.
func (t *listTaker) modified(item *extract.Item) time.Time {
	if item.Modified.After(t.res.Page.End) {
		return time.Time{}
	}
	return item.Modified
}
