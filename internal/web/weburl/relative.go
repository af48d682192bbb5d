package weburl

import "strings"

// resolvePlain resolves references that only have to be appended to a part of the base. ok is false
// for anything else, whether invalid or just not plain.
func (u URL) resolvePlain(ref string) (v URL, ok bool) {
	if u.IsZero() {
		return parsePlain(ref)
	}
	if len(ref) > MaxLength {
		return URL{}, false
	}
	if ref == "" || ref[0] == '#' {
		return u, true
	}
	switch ref[0] {
	case '?':
		end, ok := scanQuery(ref, 1)
		return u.withTail(u.pathEnd(), ref[:end], ok)
	case '/':
		if strings.HasPrefix(ref, "//") {
			return parsePlain(u.Scheme() + ":" + ref)
		}
		end, ok := scanPath(ref, 0)
		return u.withTail(int(u.target), ref[:end], ok)
	}
	if v, ok := parsePlain(ref); ok {
		return v, true
	}
	return u.resolveSibling(ref)
}

// resolveSibling resolves a reference that is relative to the base's directory, such as "next", "./next" or "../next".
func (u URL) resolveSibling(ref string) (v URL, ok bool) {
	if mayHaveScheme(ref) {
		return URL{}, false
	}
	directory := strings.LastIndexByte(u.text[:u.pathEnd()], '/')
	for {
		if rest, found := strings.CutPrefix(ref, "./"); found {
			ref = rest
		} else if rest, found := strings.CutPrefix(ref, "../"); found {
			ref = rest
			if directory > int(u.target) {
				directory = strings.LastIndexByte(u.text[:directory], '/')
			}
		} else {
			break
		}
	}
	if startsWithDotSegment(ref) {
		return URL{}, false
	}
	end, ok := scanPath(ref, 0)
	return u.withTail(directory+1, ref[:end], ok)
}

// withTail returns the URL of the first n bytes of u, which include host and port, and rest.
func (u URL) withTail(n int, rest string, ok bool) (URL, bool) {
	if !ok || n+len(rest) > MaxLength {
		return URL{}, false
	}
	u.text = u.text[:n] + rest
	return u, true
}

// mayHaveScheme reports whether there is a ":" in the first segment of a reference.
func mayHaveScheme(ref string) bool {
	for i := 0; i < len(ref); i++ {
		switch ref[i] {
		case ':':
			return true
		case '/', '?', '#':
			return false
		}
	}
	return false
}
