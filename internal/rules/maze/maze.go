// Package maze tells branches of a host that are generated without end from large sites. A generator of
// pages gives each page links to pages that nothing else links to, at any depth, and a text that is drawn
// by chance, that is the same on each page, or that the site itself keeps out of indexes.
//
// A branch is a directory of the first level, the files at the root, or a whole host. When most of the pages of a
// branch have new links into it and hardly any known ones, and there are enough of them, the branch is suspected: its
// further links are put last, except for one link of each page, a probe, which comes first. So the crawl goes
// down one path. If pages on the way are like those of a site, the branch is a site, and twice as many
// pages are needed to suspect it again. If there are new links for stopLevels more levels, the texts on
// the way decide: see [branch.isMaze]. What was put last is fetched in any case, so a wrong
// suspicion loses nothing.
//
// Links out of a branch say nothing of it: a maze may have the menu of its site, or links to any of its pages. Those
// into directories that have enough pages to be judged by themselves are out of the branch that the host is.
package maze

import (
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
	fewOutside  = 3    // pages outside with links into a branch, which make it known there
	mostStops   = 3    // mazes of a host that halve the number of pages for the next one
	fewOfOwn    = 8    // pages of a directory that is judged by itself
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
	path      string // its directory
	depth     uint16
	links     tally // within the host
	inside    tally // into its directory
	near      tally // into its directory, and others that have few pages
	// text is what people see of it. It counts in suspected branches only.
	text    string
	noIndex bool // it has the directive noindex
}

// tally counts links.
type tally struct {
	all   int
	fresh int // of them, those that were not seen before
}

func (t *tally) add(isFresh bool) {
	t.all++
	if isFresh {
		t.fresh++
	}
}

// isFrame reports whether a page has more known links than one of a maze.
func (t tally) isFrame() bool { return t.all-t.fresh > max(mostKnown, t.all/5) }

// isLike reports whether the links are those of a page of a maze.
func (t tally) isLike() bool { return t.fresh >= fewestLinks && !t.isFrame() }

// Branches remembers the pages of hosts in bounded memory. Its methods may be called concurrently.
type Branches struct {
	least int         // pages of a branch that make it suspected; 0: nothing is
	any   atomic.Bool // a branch has been suspected: before that nobody needs texts and links from outside
	mu    sync.Mutex
	hosts map[string]*host
	// stops has the mazes of hosts, their branches. Those of "/", all of a host, have the directories of a site in it
	// at their end, each with a sitePrefix.
	stops map[string][]string
}

// host is what is known of one host.
type host struct {
	seen     filter   // its last links
	before   filter   // those before them; nil: there are none
	inSeen   int      // links in seen
	root     branch   // all of the host
	branches []branch // its directories
	paths    []string // of the branches; "/" for the files at the root
}

// branch counts the pages of a branch since the last suspicion ended.
type branch struct {
	like, other uint32 // pages like those of a maze, and others
	all         uint32 // pages, for ever
	site        uint32 // of them, those that are like those of a site
	hidden      uint32 // and those with noindex
	tries       uint8
	suspected   bool
	from        uint16 // the depth at which the suspicion began
	pages       uint32 // since then
	noIndex     uint32 // of them
	framed      uint32 // of them, those with known links out of the branch too
	prose       prose  // of them
	outside     uint8  // hosts that link to its pages, and other pages of the host with several links to them
	lastOutside string // the last one of these
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

// IsStopped reports whether a URL is in a maze. via returns the target of the page that it was found on; "" if that is
// a seed, or on another host.
func (b *Branches) IsStopped(of, uri string, via func() string) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	stops := b.stops[of]
	b.mu.Unlock()
	return isStopped(stops, uri, via)
}

// sitePrefix is that of a directory which is none of the maze that its host is. It sorts behind paths.
const sitePrefix = "site "

// isIn reports whether a directory is a maze.
func isIn(stops []string, path string) bool { return slices.Contains(stops, stopOf(path)) }

// filesStop is the stop of the files at the root. That of "/" is the host.
const filesStop = "files"

func stopOf(path string) string {
	if path == "/" {
		return filesStop
	}
	return path
}

// isStopped is IsStopped for a host with mazes.
func isStopped(stops []string, uri string, via func() string) bool {
	isSite := func(path string) bool { return slices.Contains(stops, sitePrefix+path) }
	path := section(uri)
	switch {
	case len(stops) == 0 || stops[0] != "/" || isIn(stops, path):
		return isIn(stops, path)
	case isSite(path) || !strings.HasPrefix(stops[len(stops)-1], sitePrefix):
		return !isSite(path)
	}
	from := via()
	return from != "" && !isSite(section(from))
}

// judge takes note of a page of a host. It returns what becomes of its links, and the branch that this is for. The
// caller has the lock.
func (b *Branches) judge(h *host, p *page) (advice Advice, path string) {
	stops, directory, root := b.stops[p.host], h.branch(p.path), &h.root
	path = stopOf(p.path)
	if len(stops) > 0 && stops[0] == "/" {
		*root = root.begin(0) // which is judged already
		isSite := p.links.fresh < fewestLinks && p.links.isFrame()
		if isSite && len(stops) < mostInHost && !slices.Contains(stops, sitePrefix+p.path) {
			b.stops[p.host] = append(slices.Clip(stops), sitePrefix+p.path)
		}
	}
	isSite, before, least := directory.isSite(fewOfOwn), *directory, b.least
	directory.note(p)
	root.note(p)
	switch {
	case root.suspected:
		least = math.MaxInt32 // of the two, the one that is suspected first is judged
	case len(stops) > 0 && stops[0] != "/":
		least = max(least>>min(len(stops), mostStops), 1) // where there is one maze, there are more
	}
	advice = directory.count(h, p, p.inside.isLike(), least)
	switch {
	case isSite || before.suspected:
	case directory.suspected: // it is judged in place of its host
		root.like, root.other = root.like-min(root.like, before.like), root.other-min(root.other, before.other)
	default:
		if least = b.least; 2*directory.like > root.like {
			least = math.MaxInt32
		}
		if of := root.count(h, p, p.near.isLike(), least); of != Usual {
			advice, path = of, "/"
		}
	}
	switch advice {
	case Last:
		b.any.Store(true)
	case Stop:
		b.stops[p.host] = h.stop(path, append(slices.Clip(stops), path))
	}
	return advice, path
}

// stop has the rest of the host judged without a maze, and by its pages that are like those of a site. It returns the
// stops with the directories of these if the maze is the host.
func (h *host) stop(path string, stops []string) []string {
	paths, branches := h.paths, h.branches
	h.root, h.paths, h.branches = h.root.begin(0), nil, nil
	for i, d := range branches {
		if !d.isSite(1) && !d.suspected && d.tries == 0 {
			continue
		}
		of := h.branch(paths[i])
		if *of = d.begin(d.tries); path == "/" {
			stops = append(stops, sitePrefix+paths[i])
		}
	}
	slices.Sort(stops)
	return stops
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

// find returns the branch of a directory; nil: there is none.
func (h *host) find(path string) *branch {
	if i := slices.Index(h.paths, path); i >= 0 {
		return &h.branches[i]
	}
	return nil
}

// branch returns the branch of a directory. If there are too many, it takes the place of one with a single page; if
// there is none, it is one of no account.
func (h *host) branch(path string) *branch {
	if b := h.find(path); b != nil {
		return b
	}
	if len(h.paths) >= mostInHost {
		i := slices.IndexFunc(h.branches, func(d branch) bool { return !d.suspected && d.like+d.other < 2 })
		if i < 0 {
			return new(branch)
		}
		h.paths, h.branches = slices.Delete(h.paths, i, i+1), slices.Delete(h.branches, i, i+1)
	}
	h.paths, h.branches = append(h.paths, strings.Clone(path)), append(h.branches, branch{})
	return &h.branches[len(h.branches)-1]
}

// isSite reports whether a directory has so many pages, and they are those of a site.
func (b *branch) isSite(least uint32) bool { return b.all >= least && b.site*10 > b.all }

// count counts a page.
func (b *branch) count(h *host, p *page, like bool, least int) Advice {
	if like {
		b.like++
	} else {
		b.other++
	}
	if !b.suspected {
		if int64(b.like)+int64(b.other) >= 2*int64(least)<<b.tries { // those of long ago count less
			b.like, b.other = b.like/2, b.other/2
		}
		if int64(b.like) < int64(least)<<b.tries || b.other*10 > b.like {
			return Usual
		}
		*b = b.begin(b.tries)
		b.suspected, b.from = true, p.depth
		return Last
	}
	b.pages++
	b.prose.add(p.text)
	if p.noIndex {
		b.noIndex++
	}
	if p.links.isFrame() {
		b.framed++
	}
	switch {
	case b.other >= clearAfter:
	case !like || p.depth < b.from+stopLevels:
		return Last
	case b.isMaze(h):
		return Stop
	}
	*b = b.begin(min(b.tries+1, mostTries))
	return Usual
}

// note counts a page for ever.
func (b *branch) note(p *page) {
	b.all++
	if p.links.fresh < fewestLinks || p.inside.isFrame() {
		b.site++
	}
	if p.noIndex {
		b.hidden++
	}
}

// begin returns a branch with what counts for ever.
func (b *branch) begin(tries uint8) branch {
	return branch{
		tries: tries, all: b.all, site: b.site, hidden: b.hidden, outside: b.outside, lastOutside: b.lastOutside,
	}
}

// isMaze judges a branch that goes on for ever. A site keeps a maze out of indexes, a generator writes its text,
// or it has hardly any and nobody outside links to it. If the pages have a frame of links, as those of sites have,
// noindex has to be rarer outside, the text long, and the branch unknown outside.
func (b *branch) isMaze(h *host) bool {
	isFramed, isKnown := 10*b.framed > b.pages, b.outside >= fewOutside
	isOdd := b != &h.root && 2*(h.root.hidden-b.hidden) <= h.root.all-b.all
	if 10*b.noIndex >= 9*b.pages && (!isFramed || isOdd && !isKnown) {
		return true
	}
	author, words := b.prose.author()
	switch author {
	case people:
		return false
	case nobody:
		return !isFramed && !isKnown
	}
	return !isFramed || words >= manyInText && !isKnown
}

// linkedFrom takes note of a link of another host to a page of this one.
func (h *host) linkedFrom(other, uri string) {
	if path := section(uri); uri != path {
		h.find(path).linkedFrom(other)
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
