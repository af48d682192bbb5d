package robots

import (
	"bytes"
	"math"
)

// inline is the length of a request URI, with the "$" at its end, up to which Match needs no large
// buffer. Up to maxURI it needs none from the heap, even if every octet has to be escaped.
const (
	inline = 256
	maxURI = 2048
)

// Match returns the verdict on a URL, given as request URI: path and query, as in "/a?b". The
// longest pattern that matches decides, an allow rule if two have one length. Without a match the
// URL is allowed (RFC 9309 section 2.2.2). Match does not allocate for URLs of up to 2,048 octets.
// For any rules, it takes time in proportion to the length of the URL and the number of rules with
// a star.
func (r *Rules) Match(requestURI string) Verdict {
	v, _ := r.MatchWithin(requestURI, math.MaxInt)
	return v
}

// MatchWithin is Match with a bound on the work at rules with a star: each rule, each piece of a
// pattern and each octet compared counts as one. It may exceed the bound by the length of the URL,
// for the last piece. ok is false if the verdict takes more work; then v is not valid.
func (r *Rules) MatchWithin(requestURI string, work int) (v Verdict, ok bool) {
	if len(requestURI) < inline && isNormal(requestURI) {
		var buf [inline]byte
		n := copy(buf[:], requestURI)
		buf[n] = '$'
		return r.match(buf[:n+1], work)
	}
	return r.matchAny(requestURI, work)
}

// matchAny is MatchWithin for any request URI.
func (r *Rules) matchAny(requestURI string, work int) (Verdict, bool) {
	if len(requestURI) <= maxURI {
		var buf [3*maxURI + 2]byte
		return r.match(appendURI(buf[:0], requestURI), work)
	}
	return r.match(appendURI(make([]byte, 0, len(requestURI)+len(requestURI)/8), requestURI), work)
}

const robotsFile = "/robots.txt$"

// match returns the verdict on a URL in normal form.
func (r *Rules) match(uri []byte, work int) (Verdict, bool) {
	if string(uri) == robotsFile {
		return Verdict{Allowed: true, Reason: ReasonRobotsFile}, true
	}
	best, length := r.longestLiteral(uri)
	allow := best >= 0 && r.literals[best].line.allow()
	switch w, ok := r.firstWildcard(uri, length, allow, work); {
	case !ok:
		return Verdict{}, false
	case w >= 0:
		return ruleVerdict(r.wildcards[w].line, len(r.literals)+w), true
	case best >= 0:
		return ruleVerdict(r.literals[best].line, int(best)), true
	}
	return Verdict{Allowed: !r.refuse, Reason: r.reason}, true
}

func ruleVerdict(l lineAllow, rule int) Verdict {
	return Verdict{Allowed: l.allow(), Reason: ReasonRule, Line: l.line(), rule: int32(rule)}
}

// longestLiteral returns the longest literal that is a prefix of uri, and its length, or -1. All
// prefixes of uri are prefixes of the last literal that does not sort after uri, so the search
// starts there and climbs from prefix to prefix.
func (r *Rules) longestLiteral(uri []byte) (best int32, length int) {
	low, high := 0, len(r.literals)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if bytes.Compare(r.literal(int32(mid)), uri) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	best = int32(low) - 1
	if best < 0 {
		return -1, 0
	}
	common := commonPrefix(r.literal(best), uri)
	for best >= 0 {
		if n := len(r.literal(best)); n <= common {
			return best, n
		}
		best = r.literals[best].up
	}
	return -1, 0
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// firstWildcard returns the best wildcard that matches uri and beats a literal of the given length,
// or -1. The best wildcards come first, so the search ends at the first that matches or can no
// longer win. ok is false if the search takes more than work.
func (r *Rules) firstWildcard(uri []byte, length int, allow bool, work int) (w int, ok bool) {
	if work -= len(r.wildcards); work < 0 {
		return -1, false
	}
	var held *pairs
	if len(r.wildcards) > fewWildcards {
		var p pairs
		p.addAll(uri)
		held = &p
	}
	start := r.wildcardsStart()
	for i := range r.wildcards {
		w := &r.wildcards[i]
		n := int(w.end - start)
		if n < length || n == length && (allow || !w.line.allow()) {
			return -1, true
		}
		if held == nil || held.has(w.probe) {
			var matches bool
			if matches, work = glob(r.text[start:w.end], uri, work); work < 0 {
				return -1, false
			}
			if matches {
				return i, true
			}
		}
		start = w.end
	}
	return -1, true
}

// glob reports whether pattern, in which a star matches any octets, matches the start of uri. It
// takes each piece between stars at its first occurrence: if a match exists, one exists that does
// so. It tries nothing twice. left is the rest of the work; below 0 the bound was exceeded.
func glob(pattern, uri []byte, work int) (matches bool, left int) {
	star := bytes.IndexByte(pattern, '*')
	if star < 0 {
		return bytes.HasPrefix(uri, pattern), work - len(pattern)
	}
	work -= star
	if !bytes.HasPrefix(uri, pattern[:star]) {
		return false, work
	}
	uri, pattern = uri[star:], pattern[star+1:]
	for len(pattern) > 0 && work >= 0 {
		piece := pattern
		if star = bytes.IndexByte(pattern, '*'); star >= 0 {
			piece, pattern = pattern[:star], pattern[star+1:]
		} else {
			pattern = nil
		}
		work--
		if len(piece) > 0 {
			i := bytes.Index(uri, piece)
			if i < 0 {
				return false, work - len(uri)
			}
			work -= i + len(piece)
			uri = uri[i+len(piece):]
		}
	}
	return true, work
}
