package wall

import (
	"math"
	"slices"
)

// remember adds responses to the history.
func (s *State) remember(pages, refusals uint8) {
	for int(s.pages)+int(s.refusals)+int(pages)+int(refusals) > mostHistory {
		s.pages /= 2
		s.refusals /= 2
		refusals /= 2
	}
	s.pages += pages
	s.refusals += refusals
}

// clear forgets the evidence.
func (s *State) clear() {
	s.since, s.part, s.evidence, s.counted, s.judged = 0, 0, 0, 0, 0
	s.refused, s.times = [3]uint16{}, [3]uint8{}
	s.kind, s.lead, s.pending = KindNone, 0, 0
}

// gain returns the evidence of a refusal: how much more likely it is behind a wall than it was at
// this host before.
func (s *State) gain(kind Kind) int {
	before := (float64(s.refusals) + refusedBefore) / (float64(s.pages) + float64(s.refusals) + seenBefore)
	gain := int(nat * math.Log(refusedBehind/before))
	switch kind {
	case KindChallenge:
		return max(0, min(gain*5/4, mostChallenge))
	case KindRate:
		return max(0, min(gain*5/4, mostRate))
	}
	return max(0, min(gain, mostRefused))
}

// Exhausted reports whether a refusal of a section would say nothing: the section has never answered
// and has refused often enough, or it shows one document, and what the others show is not known.
// While the host is [Suspected], a URL of another section, or one that answered before, tells more:
// a wall refuses it as well, and a host with a closed section answers.
func (s *State) Exhausted(section, top uint16) bool {
	key, known := s.keyOf(section, top)
	i := slices.Index(s.refused[:], key)
	if s.evidence >= threshold && !s.isEverywhere() {
		return i >= 0
	}
	return s.pages > 0 && !known && i >= 0 && s.times[i] >= unusedSection
}

// keyOf returns the section, or the directory above it if nothing there has answered, and whether the
// section has answered.
func (s *State) keyOf(section, top uint16) (key uint16, known bool) {
	known = slices.Contains(s.sections[:], section)
	if known || slices.Contains(s.tops[:], top) {
		return section, known
	}
	return top, false
}

// share returns how much of the evidence counts, in sixteenths: less if all refusals are from one
// section. It does not count at all if the section has refused often enough and never answered.
func (s *State) share(a *Answer) (sixteenths int, counts bool) {
	key, known := s.keyOf(a.Section, a.Top)
	i := slices.Index(s.refused[:], key)
	if i < 0 {
		i = s.addRefused(key)
	}
	s.times[i] = increase(s.times[i])
	switch n := s.times[i]; {
	case known && s.refused[1] == 0 && s.tops[1] != 0:
		return 14, true
	case known || n <= unusedSection || s.hardlyAnswers() && n <= onlySections:
		return 16, true
	case !s.hardlyAnswers(), a.Status == 401 && key != rootSection:
		return 0, false
	}
	return 12, true
}

// addRefused notes a section that refused in place of one that refused least.
func (s *State) addRefused(key uint16) int {
	i := slices.Index(s.refused[:], 0)
	if i < 0 {
		i = slices.Index(s.times[:], slices.Min(s.times[:]))
	}
	s.refused[i], s.times[i] = key, 0
	return i
}

// vote keeps the kind of most refusals (Boyer and Moore).
func (s *State) vote(kind Kind) {
	switch {
	case s.kind == kind:
		s.lead = increase(s.lead)
	case s.lead > 1:
		s.lead--
	default:
		s.kind, s.lead = kind, 1
	}
}

// toFront moves v to the front of list, or puts it there in place of the last one.
func toFront(list []uint16, v uint16) {
	i := slices.Index(list, v)
	if i < 0 {
		i = len(list) - 1
	}
	copy(list[1:i+1], list[:i])
	list[0] = v
}

// increase adds 1, up to 255.
func increase(n uint8) uint8 { return n + min(1, math.MaxUint8-n) }
