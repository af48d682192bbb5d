package robots

import "math"

// Pattern is a path pattern in the form of the rules of robots.txt, in which * stands for any octets
// and $ at the end for the end of the URL. It may be used concurrently.
type Pattern struct {
	normal []byte
}

// NewPattern prepares a pattern for matching. Any text is a pattern.
func NewPattern(text string) Pattern { return Pattern{appendPattern(nil, []byte(text))} }

// Match reports whether the pattern matches the start of a URL, given as request URI: path and query.
// It takes time in proportion to the lengths of both.
func (p Pattern) Match(requestURI string) bool {
	return p.matches(appendURI(make([]byte, 0, len(requestURI)+len(requestURI)/8+1), requestURI))
}

func (p Pattern) matches(normalURI []byte) bool {
	matches, _ := glob(p.normal, normalURI, math.MaxInt)
	return matches
}
