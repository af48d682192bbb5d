package maze

import "github.com/amble-crawler/amble/storage"

// filter is a Bloom filter of links. All bits of a link are in one line.
type filter []line

// line is what a processor reads at a time: 512 bits.
type line [8]uint64

const (
	fewestLines = 8    // of a filter, ...
	mostLines   = 64   // which is doubled while it has fewer, ...
	linksOfLine = 16   // and more links for each than this
	mostInSeen  = 3072 // links in a filter; then it is the one before
	mostOfPage  = 1024 // links of a page that are compared: more would make a filter take new links for known ones
)

// of returns the line of a link. The number of lines is a power of two.
func (f filter) of(link uint64) *line { return &f[int(link>>9)&(len(f)-1)] }

// bits returns the numbers of the bits of a link in its line.
func bits(link uint64) (a, b, c, d uint64) {
	return link % 512, link >> 32 % 512, link >> 41 % 512, link >> 50 % 512
}

// has reports whether a link may be there.
func (l *line) has(link uint64) bool {
	a, b, c, d := bits(link)
	return l[a/64]>>(a%64)&(l[b/64]>>(b%64))&(l[c/64]>>(c%64))&(l[d/64]>>(d%64))&1 != 0
}

func (l *line) add(link uint64) {
	a, b, c, d := bits(link)
	l[a/64] |= 1 << (a % 64)
	l[b/64] |= 1 << (b % 64)
	l[c/64] |= 1 << (c % 64)
	l[d/64] |= 1 << (d % 64)
}

// note adds the links of a page with the indexes own to those that were seen. It puts the indexes of those that
// were not among them in front of the others, and returns them. A site may have any number of links: when the filter is
// full, it is the one before, and an empty one takes its place. So the last ones stay known.
func (h *host) note(found []storage.Found, own []int) (fresh []int) {
	for h.inSeen+len(own) > linksOfLine*len(h.seen) && len(h.seen) < mostLines {
		h.seen = append(h.seen, h.seen...) // each link has bits in both halves
	}
	n := 0
	for at, i := range own {
		link := found[i].Fingerprint
		if h.seen.of(link).has(link) {
			continue
		}
		if h.inSeen == mostInSeen {
			h.seen, h.before, h.inSeen = make(filter, mostLines), h.seen, 0
		}
		h.seen.of(link).add(link)
		h.inSeen++
		if h.before == nil || !h.before.of(link).has(link) {
			own[n], own[at] = i, own[n]
			n++
		}
	}
	return own[:n]
}
