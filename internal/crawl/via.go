package crawl

import (
	"sync"

	"github.com/amble-crawler/amble/storage"
)

// vias remembers the texts of pages that URLs were found on: what one page links to is mostly asked for in a row.
type vias struct {
	mu   sync.Mutex
	urls map[foundOn]string // guarded by mu
}

// foundOn is a page by its place in the store, where its text never changes.
type foundOn struct {
	host    storage.HostID
	ordinal uint32
}

// maxVias bounds them; they are forgotten when there are as many.
const maxVias = 1024

// via is the text of the page that a URL was found on; empty where there is none.
func (r *run) via(head *storage.Head) string {
	if head.ViaHost == storage.NoHost {
		return ""
	}
	page := foundOn{head.ViaHost, head.ViaOrdinal}
	v := &r.vias
	v.mu.Lock()
	text, known := v.urls[page]
	v.mu.Unlock()
	if known {
		return text
	}
	u, err := r.store.URL(page.host, page.ordinal)
	if err != nil {
		return ""
	}
	text = u.String()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.urls == nil || len(v.urls) >= maxVias {
		v.urls = make(map[foundOn]string)
	}
	v.urls[page] = text
	return text
}
