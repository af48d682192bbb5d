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
	least   int         // pages of a branch that make it suspected; 0: nothing is
	any     atomic.Bool // a branch has been suspected: before that nobody needs texts and links from outside
	hasStop atomic.Bool // there has been a maze: before that nobody needs the lock to look for one
	mu      sync.Mutex
	hosts   map[string]*host
	// stops has the mazes of hosts, their branches. Those of "/", all of a host, have the directories of a site in it
	// at their end, each with a sitePrefix.
	stops map[string][]string
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
	if b == nil || !b.hasStop.Load() {
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
		b.hasStop.Store(true)
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
