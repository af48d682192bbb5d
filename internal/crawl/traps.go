package crawl

import (
	"maps"
	"sync"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// trap says which trap a URL found on a page leads into by its looks, and has the
// store count it.
func (r *run) trap(res *result, u weburl.URL) storage.Trap {
	t := r.o.Traps.Check(u, res.lease.URL, res.page.End)
	if t != storage.NoTrap {
		res.refused = append(res.refused, storage.Refused{Host: u.Host(), Reason: t, URL: u})
	}
	return t
}

// stripSession makes URLs that differ by a session id only the same to the
// store. Only links are treated like this: where a site redirects to add an id,
// the target would be known already and its content never seen.
func (r *run) stripSession(f *storage.Found) {
	stripped, has := r.sessions.Strip(f.URL.RequestURI())
	if !has {
		return
	}
	f.Stripped = stripped
	f.Fingerprint = r.store.Fingerprint(f.URL.Origin().URL(stripped))
}

// trapTally counts refused URLs by reason. It is safe for any number of goroutines.
type trapTally struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func (t *trapTally) count(reason storage.Trap, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]uint64)
	}
	t.counts[reason.String()] += uint64(n)
}

// load is a copy of the counts; nil if nothing was refused.
func (t *trapTally) load() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}
