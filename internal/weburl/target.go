package weburl

import (
	"bytes"
	"strings"
)

// appendPath appends the segments of a path to those of a folder, with dot segments resolved and percent-encoded where they have to be
// (WHATWG URL Standard, section 4.4, path state). Its time is linear: a segment that two dots remove is looked at once more.
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

// appendEncoded percent-encodes the bytes that may not stand in a part, in UTF-8 where they are characters. Bytes that are not UTF-8
// are encoded one by one; the standard would write U+FFFD for all of them, and so merge pages that differ.
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

// dotSegment returns how many dots a segment is made of, each also as %2e or %2E; 0 if it is none of one or two.
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
