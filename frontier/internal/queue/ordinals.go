package queue

import "slices"

// Ordinals is a small set of URLs of one host, in rising order. The zero value is the empty set.
// What is added is usually the last of them, so a large set is cheap too.
type Ordinals []uint32

// Has reports whether the set contains an ordinal.
func (s Ordinals) Has(ordinal uint32) bool {
	_, found := slices.BinarySearch(s, ordinal)
	return found
}

// Add adds an ordinal, once.
func (s *Ordinals) Add(ordinal uint32) {
	if i, found := slices.BinarySearch(*s, ordinal); !found {
		*s = slices.Insert(*s, i, ordinal)
	}
}

// Remove removes an ordinal if the set contains it.
func (s *Ordinals) Remove(ordinal uint32) {
	if i, found := slices.BinarySearch(*s, ordinal); found {
		*s = slices.Delete(*s, i, i+1)
	}
}
