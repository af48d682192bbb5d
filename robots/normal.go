package robots

// Both sides of a match are compared in one normal form (RFC 9309 section 2.2.2): escapes in upper
// case, escapes of unreserved octets decoded, octets that may not occur in a URI encoded, reserved
// octets unchanged. A raw "*" or "$" has no special meaning in a URL, so it becomes %2A or %24
// there; in a pattern the raw ones are special.
//
// The normal form of a URL ends in one "$", which no URL can hold otherwise. So the "$" at the end
// of a pattern is an octet like any other, and the matcher has no case for it.

// octet classes
const (
	plain   uint8 = iota // stands for itself
	special              // * or $
	percent
	encoded // must be encoded
	ends    // # ends a URL
)

var classes = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c <= ' ' || c >= 0x7F:
			t[c] = encoded
		default:
			t[c] = plain
		}
	}
	for _, c := range []byte("\"<>\\^`{|}") {
		t[c] = encoded
	}
	t['*'], t['$'], t['%'], t['#'] = special, special, percent, ends
	return t
}()

const upperHex = "0123456789ABCDEF"

func appendEncoded(dst []byte, c byte) []byte {
	return append(dst, '%', upperHex[c>>4], upperHex[c&15])
}

// unhex returns the value of a hexadecimal digit, or 255.
func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// appendEscape appends the normal form of the escape at s[i], a percent sign, and returns the index
// after it. A percent sign without two hexadecimal digits is kept.
func appendEscape[T string | []byte](dst []byte, s T, i int) ([]byte, int) {
	if i+2 < len(s) {
		high, low := unhex(s[i+1]), unhex(s[i+2])
		if high < 16 && low < 16 {
			if c := high<<4 | low; isUnreserved(c) {
				return append(dst, c), i + 3
			}
			return append(dst, '%', upperHex[high], upperHex[low]), i + 3
		}
	}
	return append(dst, '%'), i + 1
}

// appendPattern appends the normal form of the path pattern of a rule.
func appendPattern(dst, pattern []byte) []byte {
	for i := 0; i < len(pattern); {
		c := pattern[i]
		switch classes[c] {
		case percent:
			dst, i = appendEscape(dst, pattern, i)
			continue
		case encoded:
			dst = appendEncoded(dst, c)
		case special:
			if c == '$' && i != len(pattern)-1 {
				dst = appendEncoded(dst, c)
				break
			}
			dst = append(dst, c)
		default:
			dst = append(dst, c)
		}
		i++
	}
	return dst
}

// appendURI appends the normal form of a request URI, with the "$" at its end.
func appendURI(dst []byte, uri string) []byte {
	if uri == "" || uri[0] != '/' {
		dst = append(dst, '/')
	}
	for i := 0; i < len(uri); {
		c := uri[i]
		switch classes[c] {
		case plain:
			dst = append(dst, c)
		case percent:
			dst, i = appendEscape(dst, uri, i)
			continue
		case ends:
			return append(dst, '$')
		default:
			dst = appendEncoded(dst, c)
		}
		i++
	}
	return append(dst, '$')
}

// isNormal reports whether a request URI is its own normal form, apart from the "$" at the end.
func isNormal(uri string) bool {
	if uri == "" || uri[0] != '/' {
		return false
	}
	for i := range len(uri) {
		if classes[uri[i]] != plain {
			return false
		}
	}
	return true
}
