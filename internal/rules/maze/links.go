package maze

import (
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// The priorities of links of a suspected branch.
const (
	lastPriority  = -100
	probePriority = 1
)

// Links takes note of a page with what was found on it, gives links of a suspected branch their
// priorities, and takes out those into mazes, which it returns. text is what people see of the page, if
// [Branches.Suspects] wants it. isNew says that the page has shown that its branch is a maze.
func (b *Branches) Links(
	page weburl.URL, depth uint16, found []storage.Found, text string, noIndex bool,
) (kept []storage.Found, refused []storage.Refused, isNew bool) {
	if b == nil || b.least <= 0 {
		return found, nil, false
	}
	p := Page{Host: page.Host(), URI: page.RequestURI(), Depth: depth, Text: text, NoIndex: noIndex}
	var at, outside []int
	for i := range found {
		switch u := &found[i].URL; {
		case u.Host() != p.Host && !b.any.Load():
		case u.Host() != p.Host:
			outside = append(outside, i)
		case !found[i].Sitemap:
			p.Links, at = append(p.Links, found[i].Fingerprint), append(at, i)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.add(p)
	for _, i := range outside {
		if h := b.hosts[found[i].URL.Host()]; h != nil && j.advice == Usual {
			h.linkedFrom(p.Host, found[i].URL.RequestURI())
		}
	}
	if j.advice == Last {
		fresh := at[:0]
		for _, i := range j.fresh {
			if f := &found[at[i]]; isIn(j.path, f.URL.RequestURI()) {
				f.Priority = lastPriority
				fresh = append(fresh, at[i])
			}
		}
		if len(fresh) > 0 {
			found[fresh[found[fresh[0]].Fingerprint%uint64(len(fresh))]].Priority = probePriority
		}
	}
	if len(b.stops) == 0 {
		return found, nil, false
	}
	for _, f := range found {
		if u := f.URL; !f.Seed && b.isStopped(u.Host(), u.RequestURI()) {
			refused = append(refused, storage.Refused{Host: u.Host(), Reason: storage.TrapMaze, URL: u})
		} else {
			kept = append(kept, f)
		}
	}
	return kept, refused, j.advice == Stop
}
