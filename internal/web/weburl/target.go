package weburl

import (
	"bytes"
	"strings"
)

// appendPath appends the segments of a path to those of a folder. It resolves dot segments and percent-encodes (WHATWG
// URL Standard, section 4.4, path state). Its time is linear: it reads a segment that two dots remove once more.
func appendPath(to []byte, path string) []byte {
	if path != "" && isSlash(path[0]) {
		path = path[1:]
	}
	for {
		end := strings.IndexAny(path, `/\`)
		last := end < 0
		if last {
			end = len(path)
		}
		segment := path[:end]
		switch dots := dotSegment(segment); {
		case dots == 2:
			to = to[:max(bytes.LastIndexByte(to, '/'), 0)]
			fallthrough
		case dots == 1:
			if last {
				to = append(to, '/')
			}
		default:
			to = appendEncoded(append(to, '/'), segment, inPath)
		}
		if last {
			return to
		}
		path = path[end+1:]
	}
}

// appendQuery appends a query and the "?" before it.
func appendQuery(to []byte, query string) []byte {
	return appendEncoded(append(to, '?'), query, inQuery)
}

// appendEncoded percent-encodes the bytes that may not occur in a part, in UTF-8 if they are characters. Bytes that
// are not UTF-8 are encoded one by one. The standard would write U+FFFD for all of them, and so merge different pages.
func appendEncoded(to []byte, s string, part uint8) []byte {
	const upperHex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		if c := s[i]; plainBytes[c]&part != 0 || c == '/' || part == inQuery && c == '?' {
			to = append(to, c)
		} else {
			to = append(to, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return to
}

// dotSegment returns the number of dots of a segment of one or two dots, also as %2e or %2E, and 0 for any other.
func dotSegment(s string) int {
	dots := 0
	for s != "" {
		switch {
		case s[0] == '.':
			s = s[1:]
		case len(s) >= 3 && s[0] == '%' && s[1] == '2' && s[2]|0x20 == 'e':
			s = s[3:]
		default:
			return 0
		}
		if dots++; dots > 2 {
			return 0
		}
	}
	return dots
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }
