package spool

import (
	"math/bits"
	"sync"
)

// freeList keeps the memory of closed contents for later ones. Without it, most of what a crawl
// allocates would be bodies. The garbage collector may take memory from the list at any time.
type freeList struct {
	sizes [2 * 24]sync.Pool // of *[]byte: two sizes for each power of two
}

// roomOf returns the size of the memory for a content of n bytes: at least n, and at most half as
// much again.
func roomOf(n int64) (room int64, at int) {
	if n <= HeadBytes {
		return HeadBytes, 0
	}
	high := bits.Len64(uint64(n - 1)) // n is above 1<<(high-1), and at most 1<<high
	room, at = 1<<high, 2*(high-bits.Len64(HeadBytes-1))
	if n <= room/4*3 {
		return room / 4 * 3, at - 1
	}
	return room, at
}

// take returns empty memory of a size of roomOf.
func (s *freeList) take(room int64, at int) []byte {
	if at < len(s.sizes) {
		if b, ok := s.sizes[at].Get().(*[]byte); ok {
			return (*b)[:0]
		}
	}
	return make([]byte, 0, room)
}

// put adds memory to the list, unless it has no size of roomOf: then the collector frees it.
func (s *freeList) put(b []byte) {
	if room, at := roomOf(int64(cap(b))); room == int64(cap(b)) && at < len(s.sizes) {
		s.sizes[at].Put(&b)
	}
}
