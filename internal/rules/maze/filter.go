package maze

import (
	"slices"

	"github.com/amble-crawler/amble/storage"
)

// filter is a Bloom filter of links: 4 KiB, two bits for each link.
type filter [8 * mostInSeen / 64]uint64

// lineBits is how many bits of the filter are near each other in memory. Both bits of a link are there.
const lineBits = 512

// bits returns where the bits of a link are.
func bits(link uint64) (one, other uint64) {
	one = link % (8 * mostInSeen)
	return one, one - one%lineBits + (link>>32)%lineBits
}

// add adds a link. It reports whether it was there, as 1 or 0.
func (f *filter) add(link uint64) (had uint64) {
	one, other := bits(link)
	a, b := &f[one/64], &f[other/64]
	had = *a >> (one % 64) & (*b >> (other % 64)) & 1
	*a |= 1 << (one % 64)
	*b |= 1 << (other % 64)
	return had
}

// has reports whether a link may be there. A filter that is nil has none.
func (f *filter) has(link uint64) bool {
	one, other := bits(link)
	return f != nil && f[one/64]>>(one%64)&(f[other/64]>>(other%64))&1 != 0
}

// note adds the links of a page with the indexes own to those that were seen. It returns the indexes of those that
// were not among them, in place of own. A site may have any number of links: when the filter is full, it is
// the one before, and an empty one takes its place. So the last ones stay known.
func (h *host) note(found []storage.Found, own []int) (fresh []int) {
	added := 0
	for _, i := range own { // without a branch: the memory of all links is read at the same time
		own[added] = i
		added += int(1 - h.seen.add(found[i].Fingerprint))
	}
	fresh = slices.DeleteFunc(own[:added], func(i int) bool { return h.before.has(found[i].Fingerprint) })
	if h.inSeen += added; h.inSeen >= mostInSeen {
		h.seen, h.before, h.inSeen = new(filter), h.seen, 0
	}
	return fresh
}
