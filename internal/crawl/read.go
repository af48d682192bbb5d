package crawl

import (
	"context"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/extract"
	"github.com/amble-crawler/amble/internal/fetch"
)

// read takes what a body has for the crawl: the URLs of a sitemap or feed, or the links of a page. Its error is one of reading
// the body back.
func (r *run) read(ctx context.Context, res *result, resp *fetch.Response, page *archive.Page) error {
	wishes := extract.HeaderDirectives(resp.Header, r.o.Frontier.Tokens)
	note(res, page, &wishes)
	kind := r.listKind(&res.lease, resp)
	switch {
	case kind == extract.NotAList:
		return r.takeLinks(ctx, res, resp, page)
	case r.forbidsLinks(&wishes):
		page.Kind = kind.String()
		return nil
	}
	return r.takeList(ctx, res, resp, page, kind)
}

// forbidsLinks reports whether a page is to be left without following its links.
func (r *run) forbidsLinks(d *extract.Directives) bool { return d.NoFollow && r.o.NoFollow }

// note writes down what a page asks of crawlers. A page whose time is over asks not to be shown, and is not fetched again.
func note(res *result, page *archive.Page, d *extract.Directives) {
	res.page.Expires = d.UnavailableAfter
	page.Robots, page.Preferences = d.Seen, d.Preferences
	page.UnavailableAfter = d.UnavailableAfter
	page.NoIndex = d.NoIndex || !d.UnavailableAfter.IsZero() && res.page.End.After(d.UnavailableAfter)
}
