// Package maze tells branches of a host that are generated without end from large sites. A generator of
// pages gives each page links to pages that nothing else links to, at any depth, and a text that is drawn
// by chance, that is the same on each page, or that the site itself keeps out of indexes.
//
// A branch is a whole host, or a directory of its first level. When most of the pages of a branch have
// new links and hardly any others, and there are enough of them, the branch is suspected: its further
// links are put last, except for one link of each page, a probe, which comes first. So the crawl goes
// down one path. If a page on the way is like that of a site, the branch is a site, and twice as many
// pages are needed to suspect it again. If there are new links for stopLevels more levels, the texts on
// the way decide: where people wrote them, or where other hosts link to pages of the branch that have no
// text, it is a site too; else it is a maze. What was put last is fetched in any case, so a wrong
// suspicion loses nothing.
package maze

import (
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	stopLevels  = 20   // levels with nothing but new links after the suspicion
	mostHosts   = 1024 // whose pages are compared at a time
	mostInHost  = 64   // directories of a host
	clearAfter  = 2    // pages like those of a site that end a suspicion
	mostTries   = 8    // suspicions that make the next one rarer
	fewestLinks = 2    // new ones of a page of a maze
	mostKnown   = 3    // known ones of such a page, or a fifth of all
	fewOutside  = 3    // links from other hosts, which make a branch known outside
)

// Advice is what becomes of the links of a page.
type Advice uint8

// The advice.
const (
	Usual Advice = iota
	Last         // they are put last, except for the probe
	Stop         // those into the branch are refused, and so are its URLs that wait
)

// page is a page that was read.
type page struct {
	host, uri string
	depth     uint16
	links     int // within the host
	fresh     int // of them, those that were not seen before
	// text is what people see of it. It counts in suspected branches only.
	text    string
	noIndex bool // it has the directive noindex
}

// Branches remembers the pages of hosts in bounded memory. Its methods may be called concurrently.
type Branches struct {
	least int         // pages of a branch that make it suspected; 0: nothing is
	any   atomic.Bool // a branch has been suspected: before that nobody needs texts and links from outside
	mu    sync.Mutex
	hosts map[string]*host
	stops map[string][]string // the mazes of hosts, sorted
}

// host is what is known of one host.
type host struct {
	seen     filter   // its last links
	before   filter   // those before them; nil: there are none
	inSeen   int      // links in seen
	root     branch   // all of the host
	branches []branch // its directories
	keys     []uint64 // of the branches
}

// branch counts the pages of a branch since the last suspicion ended.
type branch struct {
	like, other uint32 // pages like those of a maze, and others
	tries       uint8
	suspected   bool
	from        uint16 // the depth at which the suspicion began
	pages       uint32 // since then
	noIndex     uint32 // of them
	prose       prose  // of them
	outside     uint8  // links to its pages from other hosts, one after the other
	lastOutside string // the last one of these hosts
}

// New returns Branches without a page. least is the number of pages that make a branch suspected; 0:
// nothing ever is.
func New(least int) *Branches {
	return &Branches{least: least, hosts: make(map[string]*host), stops: make(map[string][]string)}
}

// Suspects reports whether the text of a page of a host is needed.
func (b *Branches) Suspects(of string) bool {
	if b == nil || !b.any.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[of]
	return h != nil && h.isSuspected()
}

// IsStopped reports whether a URL is in a maze.
func (b *Branches) IsStopped(of, uri string) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isStopped(of, uri)
}

// isStopped is IsStopped for callers with the lock.
func (b *Branches) isStopped(of, uri string) bool {
	return slices.ContainsFunc(b.stops[of], func(path string) bool { return isIn(path, uri) })
}

// isIn reports whether a URL is in a branch.
func isIn(path, uri string) bool { return path == "/" || path == section(uri) }

// judge takes note of a page of a host. It returns what becomes of its links, and the branch that this is for. The
// caller has the lock.
func (b *Branches) judge(h *host, p *page) (advice Advice, path string) {
	isLike := p.fresh >= fewestLinks && p.links-p.fresh <= max(mostKnown, p.links/5)
	root, least := &h.root, b.least
	if path = section(p.uri); path != "/" {
		directory := h.branch(path)
		if advice = directory.count(p, isLike, least); directory.suspected || 2*directory.like > root.like {
			least = math.MaxInt32 // it has most of what is like a maze, and is judged in place of its host
		}
	}
	if advice != Stop {
		if of := root.count(p, isLike, least); advice == Usual || of == Stop {
			advice, path = of, "/"
		}
	}
	switch advice {
	case Last:
		b.any.Store(true)
	case Stop:
		b.stops[p.host] = append(b.stops[p.host], path)
		slices.Sort(b.stops[p.host])
		h.root = branch{} // the rest of the host is judged without it
		h.branches, h.keys = nil, nil
	}
	return advice, path
}

// host returns what is known of a host. If there are too many, one that is not suspected is forgotten.
func (b *Branches) host(name string) *host {
	h := b.hosts[name]
	if h != nil {
		return h
	}
	if len(b.hosts) >= mostHosts {
		for other, of := range b.hosts {
			if !of.isSuspected() {
				delete(b.hosts, other)
				break
			}
		}
	}
	h = &host{seen: make(filter, fewestLines)}
	b.hosts[name] = h
	return h
}

func (h *host) isSuspected() bool {
	return h.root.suspected || slices.ContainsFunc(h.branches, func(b branch) bool { return b.suspected })
}

// seed makes the keys of directories such that no site can choose equal ones.
var seed = maphash.MakeSeed()

// find returns the branch of a directory; nil: there is none.
func (h *host) find(key uint64) *branch {
	if i := slices.Index(h.keys, key); i >= 0 {
		return &h.branches[i]
	}
	return nil
}

// branch returns the branch of a directory. If there are too many, it is one of no account.
func (h *host) branch(path string) *branch {
	key := maphash.String(seed, path)
	if b := h.find(key); b != nil {
		return b
	}
	if len(h.keys) >= mostInHost {
		return new(branch)
	}
	h.keys, h.branches = append(h.keys, key), append(h.branches, branch{})
	return &h.branches[len(h.branches)-1]
}

// count counts a page.
func (b *branch) count(p *page, like bool, least int) Advice {
	if like {
		b.like++
	} else {
		b.other++
	}
	if !b.suspected {
		if int64(b.like) < int64(least)<<b.tries || b.other*10 > b.like {
			return Usual
		}
		*b = branch{suspected: true, from: p.depth, tries: b.tries, outside: b.outside, lastOutside: b.lastOutside}
		return Last
	}
	b.pages++
	b.prose.add(p.text)
	if p.noIndex {
		b.noIndex++
	}
	switch {
	case b.other >= clearAfter:
	case !like || p.depth < b.from+stopLevels:
		return Last
	case b.isMaze():
		return Stop
	}
	*b = branch{tries: min(b.tries+1, mostTries), outside: b.outside, lastOutside: b.lastOutside}
	return Usual
}

// isMaze judges the texts of a branch that goes on for ever.
func (b *branch) isMaze() bool {
	if 10*b.noIndex >= 9*b.pages {
		return true
	}
	switch b.prose.author() {
	case people:
		return false
	case nobody:
		return b.outside < fewOutside
	}
	return true
}

// linkedFrom takes note of a link of another host to a page of this one.
func (h *host) linkedFrom(other, uri string) {
	if path := section(uri); uri != path {
		h.find(maphash.String(seed, path)).linkedFrom(other)
	}
	if uri != "/" {
		h.root.linkedFrom(other)
	}
}

func (b *branch) linkedFrom(other string) {
	if b != nil && other != b.lastOutside && b.outside < fewOutside {
		b.outside, b.lastOutside = b.outside+1, other
	}
}

// section is the directory of the first level that a URL is in, with a slash at its end; "/" for a file at
// the root.
func section(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	i := strings.IndexByte(strings.TrimPrefix(path, "/"), '/')
	if i < 0 {
		return "/"
	}
	return path[:i+2]
}
