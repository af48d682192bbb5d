package wall

import (
	"slices"
	"strings"
)

// A wall of redirects leads all pages of a host to one place: a login, a consent page, a price. A place
// is a URL without what differs from one redirect to the next: the page to return to, and tokens.

// longestValue is the longest value of a parameter that tells places apart. Longer ones are tokens.
const longestValue = 16

// PlaceOf identifies the place of a URL, written in full. Its time is linear.
func PlaceOf(url string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	add := func(text string) {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * prime
		}
		h = (h ^ 0xff) * prime // no text has it
	}
	url, _, _ = strings.Cut(url, "#")
	path, query, _ := strings.Cut(url, "?")
	_, path, _ = strings.Cut(path, "://") // a wall is the same over http and https
	add(path)
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		add(name)
		if !isReturn(value) && !isSession(name) {
			add(value)
		}
	}
	return h | 1
}

// isReturn reports whether the value of a parameter is a page to return to, or a token.
func isReturn(value string) bool {
	return len(value) > longestValue || strings.HasPrefix(value, "/") ||
		len(value) >= 3 && strings.EqualFold(value[:3], "%2f")
}

// isSession reports whether a parameter says by its name that it has a token, however short that is.
func isSession(name string) bool {
	for _, end := range [...]string{"session", "sessionid", "token", "nonce"} {
		if n := len(name) - len(end); n >= 0 && strings.EqualFold(name[n:], end) {
			return true
		}
	}
	return false
}

// judgeSame judges a redirect, or an empty page, by the place or document that it shares with others:
// a refusal at a host that had pages. It is never a page.
func (s *State) judgeSame(kind Kind, a *Answer) (Kind, int) {
	h := a.document16()
	switch {
	case h == s.usual && s.returns >= usualReturns:
		return KindNone, 0
	case h == s.document:
		s.same = increase(s.same)
		if s.distinct < fewDocuments || s.same == 1 {
			return KindNone, 0
		}
		return kind, s.first(s.same)
	case s.Suspects() && s.kind == kind: // one that leads elsewhere says nothing
		return KindNone, 0
	}
	s.change(h, 1)
	return KindNone, 0
}

// fewRefused are the redirects of sections with pages that a wall of redirects needs: parts of a site that
// only members see redirect too, and have never answered.
const fewRefused = 2

// refusesPages reports whether enough redirects are from sections that have answered.
func (s *State) refusesPages() bool {
	n := 0
	for i, key := range s.refused {
		if key != 0 && slices.Contains(s.sections[:], key) {
			n += int(s.times[i])
		}
	}
	return n >= fewRefused
}

// change takes a short document, or a place, in place of the last one.
func (s *State) change(h uint16, same uint8) {
	if h == s.earlier[0] || h == s.earlier[1] {
		s.comesBack(h)
	}
	s.earlier = [2]uint16{s.document, s.earlier[0]}
	s.document, s.same, s.gate = h, same, 0
}

// leadsAway reports whether a redirect is that of the place to which the others lead, as a check for cookies leads
// back, or leads elsewhere behind a wall.
func (s *State) leadsAway(a *Answer) bool {
	return s.same > 0 && fold64(a.From) == s.document || s.walled && a.document16() != s.document
}

// isAtWall reports whether a page is that of the place to which the last redirects led. It says nothing
// of the pages behind them, unless it is a long one without an excuse, which is a page of its own.
func (s *State) isAtWall(sign Sign, a *Answer) bool {
	mayBeWall := sign == SignShort || sign == SignGate || sign == SignMarked ||
		sign == SignPage && (a.Mark.Excuse || a.Mark.Gate)
	return mayBeWall && a.Place != 0 && s.same > 0 && fold64(a.Place) == s.document
}
