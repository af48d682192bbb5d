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
// [Branches.Suspects] wants it. isNew says that the page has shown that its branch is a maze, or none of it.
func (b *Branches) Links(
	of weburl.URL, depth uint16, found []storage.Found, text string, noIndex bool,
) (kept []storage.Found, refused []storage.Refused, isNew bool) {
	if b == nil || b.least <= 0 {
		return found, nil, false
	}
	uri := of.RequestURI()
	p := page{host: of.Host(), uri: uri, path: section(uri), depth: depth, text: text, noIndex: noIndex}
	b.mu.Lock()
	defer b.mu.Unlock()
	h, stops := b.host(p.host), b.stops[p.host]
	var room [usualLinks]int
	own := room[:0] // indexes of found
	for i := range found {
		f := &found[i]
		if !f.Sitemap && f.URL.Host() == p.host && (len(stops) == 0 || !isIn(stops, section(f.URL.RequestURI()))) {
			own = append(own, i)
		}
	}
	compared, rest := own[:min(len(own), mostOfPage)], own[min(len(own), mostOfPage):]
	fresh := h.note(found, compared)
	if p.links = (tally{len(compared), len(fresh)}); len(fresh) >= fewestLinks {
		h.tell(&p, found, compared)
	}
	fresh = append(fresh, rest...)
	advice, path := b.judge(h, &p)
	switch {
	case advice == Last:
		putLast(found, fresh, path)
	case advice == Usual && b.any.Load():
		b.noteOutside(p.host, found)
	}
	if len(b.stops) == 0 {
		return found, nil, false
	}
	for _, f := range found {
		u, via := f.URL, p.uri
		if depth == 0 || u.Host() != p.host {
			via = ""
		}
		if !f.Seed && isStopped(b.stops[u.Host()], u.RequestURI(), func() string { return via }) {
			refused = append(refused, storage.Refused{Host: u.Host(), Reason: storage.TrapMaze, URL: u})
		} else {
			kept = append(kept, f)
		}
	}
	return kept, refused, len(b.stops[p.host]) > len(stops)
}

// usualLinks is how many links of a page need no room of their own.
const usualLinks = 64

// putLast gives the links with the indexes fresh their priorities, those into a branch: one is the probe.
func putLast(found []storage.Found, fresh []int, path string) {
	into := fresh[:0]
	for _, i := range fresh {
		if f := &found[i]; path == "/" || path == stopOf(section(f.URL.RequestURI())) {
			f.Priority = lastPriority
			into = append(into, i)
		}
	}
	if len(into) > 0 {
		found[into[found[into[0]].Fingerprint%uint64(len(into))]].Priority = probePriority
	}
}

// noteOutside takes note of links of a page to other hosts. The caller has the lock.
func (b *Branches) noteOutside(from string, found []storage.Found) {
	for i := range found {
		if u := found[i].URL; u.Host() != from {
			if h := b.hosts[u.Host()]; h != nil {
				h.linkedFrom(from, u.RequestURI())
			}
		}
	}
}

// tell counts the links of a page, of which the new ones come first, by where they lead. A page with several new ones
// into another directory is one outside that links to it.
func (h *host) tell(p *page, found []storage.Found, own []int) {
	var others [8]struct {
		path string
		n    int
	}
	path, isNear, at := "", false, 0
	for n, i := range own {
		if to := section(found[i].URL.RequestURI()); n == 0 || to != path {
			b := h.find(to)
			path, isNear = to, b == nil || b.all < fewOfOwn || to == p.path
			for at = 0; at < len(others)-1 && others[at].n > 0 && others[at].path != path; at++ {
			}
		}
		isFresh := n < p.links.fresh
		if isNear {
			p.near.add(isFresh)
		}
		if path == p.path {
			p.inside.add(isFresh)
		} else if isFresh && (others[at].n == 0 || others[at].path == path) {
			others[at].path = path
			if others[at].n++; others[at].n == mostKnown+1 {
				h.branch(path).linkedFrom(p.uri)
			}
		}
	}
}
