package maze

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
