package maze

import (
	"slices"

	"github.com/amble-crawler/amble/storage"
)

// filter is a Bloom filter of links. All bits of a link are in one line.
type filter []line

// line is what a processor reads at a time: 512 bits.
type line [8]uint64

const (
	fewestLines = 8    // of a filter, ...
	mostLines   = 64   // which is doubled while it has fewer, and more than 16 links for each
	mostInSeen  = 3072 // links in a filter; then it is the one before
)

// of returns the line of a link. The number of lines is a power of two.
func (f filter) of(link uint64) *line { return &f[int(link>>9)&(len(f)-1)] }

// bits returns the numbers of the bits of a link in its line.
func bits(link uint64) [4]uint64 {
	return [...]uint64{link % 512, link >> 32 % 512, link >> 41 % 512, link >> 50 % 512}
}

// has reports whether a link may be there, as 1 or 0.
func (l *line) has(link uint64) (has uint64) {
	has = 1
	for _, bit := range bits(link) {
		has &= l[bit/64] >> (bit % 64)
	}
	return has
}

func (l *line) add(link uint64) {
	for _, bit := range bits(link) {
		l[bit/64] |= 1 << (bit % 64)
	}
}

// note adds the links of a page with the indexes own to those that were seen. It returns the indexes of those that
// were not among them, in place of own. A site may have any number of links: when the filter is full, it is
// the one before, and an empty one takes its place. So the last ones stay known.
func (h *host) note(found []storage.Found, own []int) (fresh []int) {
	added := 0
	for _, i := range own { // without a branch: the memory of all links is read at the same time
		link := found[i].Fingerprint
		l := h.seen.of(link)
		own[added] = i
		added += int(1 - l.has(link))
		l.add(link)
	}
	fresh = own[:added]
	if h.before != nil {
		fresh = slices.DeleteFunc(fresh, func(i int) bool {
			return h.before.of(found[i].Fingerprint).has(found[i].Fingerprint) == 1
		})
	}
	switch h.inSeen += added; {
	case h.inSeen >= mostInSeen:
		h.seen, h.before, h.inSeen = make(filter, mostLines), h.seen, 0
	case h.inSeen > 16*len(h.seen) && len(h.seen) < mostLines:
		h.seen = append(h.seen, h.seen...) // each link has bits in both halves
	}
	return fresh
}
