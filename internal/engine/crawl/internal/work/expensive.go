package work

import (
	"net/http"
	"sync"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/expensive"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// lateEndpoint is the priority of expensive endpoints that are fetched last: after all pages, and after
// the sitemaps, which name pages.
const lateEndpoint = lateSitemap - 1

// hostProducts remembers which products made pages of a host: many set their cookie only once. Its methods may be
// called concurrently.
type hostProducts struct {
	mu  sync.Mutex
	all map[string]expensive.Products // by host; only of those with a product
}

// maxHostProducts is how many hosts are remembered; then all are forgotten, and learned again.
const maxHostProducts = 10_000

// note returns the products of a host with those of one more page.
func (h *hostProducts) note(host string, of expensive.Products) expensive.Products {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.all[host]
	if of |= before; of != before {
		if h.all == nil || len(h.all) >= maxHostProducts {
			h.all = make(map[string]expensive.Products)
		}
		h.all[host] = of
	}
	return of
}

// noteProducts notes which products made a page, so that the forms of their URLs count for its links.
func (rd *reading) noteProducts(res *Result, generator string, h http.Header) {
	res.products = rd.products.note(res.Lease.HostName,
		inspect.Endpoints().Products(generator, h["Set-Cookie"]))
}

// isExpensive reports whether a link of a page leads to an expensive endpoint.
func isExpensive(res *Result, u weburl.URL) bool {
	on := res.products
	if on != 0 && u.Host() != res.Lease.HostName { // another site, which the marks of this one say nothing of
		on = 0
	}
	return inspect.Endpoints().Find(u.RequestURI(), on) != nil
}

// postpone gives a discovery its priority if expensive endpoints come last.
func postpone(mode expensive.Mode, res *Result, f *storage.Found) {
	if mode == expensive.Last && isExpensive(res, f.URL) {
		f.Priority = lateEndpoint
	}
}
