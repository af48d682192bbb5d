package crawl

import (
	"net/http"

	"github.com/amble-crawler/amble/internal/expensive"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// lateEndpoint is the priority of expensive endpoints that are fetched last: after all pages, and after
// the sitemaps, which name pages.
const lateEndpoint = lateSitemap - 1

// noteProducts notes which products made a page, so that the forms of their URLs count for its links.
func noteProducts(res *result, generator string, h http.Header) {
	res.products = inspect.Endpoints().Products(generator, h.Values("Set-Cookie"))
}

// isExpensive reports whether a link of a page leads to an expensive endpoint.
func isExpensive(res *result, u weburl.URL) bool {
	on := res.products
	if u.Host() != res.lease.HostName { // another site, which the marks of this one say nothing of
		on = 0
	}
	return inspect.Endpoints().Find(u.RequestURI(), on) != nil
}

// postpone gives a discovery its priority if expensive endpoints come last.
func postpone(mode expensive.Mode, res *result, f *storage.Found) {
	if mode == expensive.Last && isExpensive(res, f.URL) {
		f.Priority = lateEndpoint
	}
}
