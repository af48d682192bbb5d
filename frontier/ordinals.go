package frontier

import "slices"

// ordinals is a small set of a host's URLs, in rising order. The zero value is the empty set. What is added is most often the
// last of them, so that a set which holds many is cheap too.
type ordinals []uint32

func (s ordinals) has(ordinal uint32) bool {
	_, found := slices.BinarySearch(s, ordinal)
	return found
}

func (s *ordinals) add(ordinal uint32) {
	if i, found := slices.BinarySearch(*s, ordinal); !found {
		*s = slices.Insert(*s, i, ordinal)
	}
}

func (s *ordinals) remove(ordinal uint32) {
	if i, found := slices.BinarySearch(*s, ordinal); found {
		*s = slices.Delete(*s, i, i+1)
	}
}
