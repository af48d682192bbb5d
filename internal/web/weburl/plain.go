package weburl

import "strings"

// The parts in which a byte may occur unchanged.
const (
	inHost uint8 = 1 << iota
	inPath
	inQuery
)

// plainBytes says in which parts each byte may occur. It is the complement of the standard's path
// and special-query percent-encode sets, without the bytes that end a part or need a closer look,
// such as "/" in a path and "." in a host.
var plainBytes = func() (table [256]uint8) {
	for c := '!'; c <= '~'; c++ {
		if !strings.ContainsRune("\"#/<>?\\^`{}", c) {
			table[c] |= inPath
		}
		if !strings.ContainsRune("\"#'<>", c) {
			table[c] |= inQuery
		}
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
			table[c] |= inHost
		}
	}
	return table
}()

// parsePlain parses an absolute URL that is canonical apart from a fragment or a missing "/" after
// the host. ok is false for anything else, whether invalid or just not plain.
func parsePlain(raw string) (u URL, ok bool) {
	start := 0
	scheme := schemeHTTP
	switch {
	case len(raw) > MaxLength:
		return URL{}, false
	case strings.HasPrefix(raw, "http://"):
		start = len("http://")
	case strings.HasPrefix(raw, "https://"):
		start, scheme = len("https://"), schemeHTTPS
	default:
		return URL{}, false
	}
	hostEnd, ok := scanHost(raw, start)
	if !ok {
		return URL{}, false
	}
	port, target, ok := scanPort(raw, hostEnd, defaultPort(scheme))
	if !ok {
		return URL{}, false
	}
	text := raw
	if target == len(raw) {
		text = raw + "/"
	} else if raw[target] != '/' {
		return URL{}, false
	} else if end, ok := scanPath(raw, target); ok {
		text = raw[:end]
	} else {
		return URL{}, false
	}
	if len(text) > MaxLength {
		return URL{}, false
	}
	return URL{text: text, host: uint16(start), hostEnd: uint16(hostEnd), target: uint16(target), port: port}, true
}

// scanHost returns the end of the host that starts at s[start]. It accepts names of lower case letters, digits, "-"
// and "_" whose labels have legal lengths, and IPv4 addresses in canonical form.
func scanHost(s string, start int) (end int, ok bool) {
	label := start
	i := start
	for ; i < len(s); i++ {
		c := s[i]
		if plainBytes[c]&inHost != 0 {
			continue
		}
		if c != '.' {
			break
		}
		if i == label || i-label > maxLabel {
			return 0, false
		}
		label = i + 1
	}
	if i == label || i-label > maxLabel || i-start > maxHost {
		return 0, false
	}
	// If the last label starts with a digit, it may be a number, and the host an IPv4 address.
	if isDigit(s[label]) && !isIPv4(s[start:i]) {
		return 0, false
	}
	return i, true
}

// scanPort reads the port at s[i:], if there is one. It gives up on a port that is not canonical.
func scanPort(s string, i int, byDefault uint16) (port uint16, end int, ok bool) {
	if i == len(s) || s[i] != ':' {
		return byDefault, i, true
	}
	i++
	value := 0
	first := i
	for ; i < len(s) && isDigit(s[i]); i++ {
		value = value*10 + int(s[i]-'0')
		if value == 0 || value > 65535 {
			return 0, 0, false
		}
	}
	return uint16(value), i, i > first && uint16(value) != byDefault
}

// scanPath returns the end of the path and query at s[i:], which is the end of s or a "#".
func scanPath(s string, i int) (end int, ok bool) {
	for ; i < len(s); i++ {
		c := s[i]
		if plainBytes[c]&inPath != 0 {
			continue
		}
		switch c {
		case '/':
			if startsWithDotSegment(s[i+1:]) {
				return 0, false
			}
		case '?':
			return scanQuery(s, i+1)
		case '#':
			return i, true
		default:
			return 0, false
		}
	}
	return i, true
}

// scanQuery returns the end of the query at s[i:], which is the end of s or a "#".
func scanQuery(s string, i int) (end int, ok bool) {
	for ; i < len(s); i++ {
		if c := s[i]; plainBytes[c]&inQuery == 0 {
			return i, c == '#'
		}
	}
	return i, true
}

// startsWithDotSegment reports whether the first path segment of s is one or two dots, also as %2e or %2E.
func startsWithDotSegment(s string) bool {
	for dots := 0; ; dots++ {
		switch {
		case s == "" || s[0] == '/' || s[0] == '?' || s[0] == '#':
			return dots > 0
		case dots == 2:
			return false
		case s[0] == '.':
			s = s[1:]
		case len(s) >= 3 && s[0] == '%' && s[1] == '2' && s[2]|0x20 == 'e':
			s = s[3:]
		default:
			return false
		}
	}
}
