package weburl

import (
	"slices"
	"strings"
)

// Rules change URLs beyond the canonical form, for an operator who knows that the sites do not tell these URLs apart.
// Each of them may merge two different pages, so none applies by default. The zero value changes nothing.
type Rules struct {
	StripParameters  []string // parameters to remove from queries; a star at the end matches any rest of a name
	SortQuery        bool     // sort parameters by name; those of one name keep their order
	DropEmptyQuery   bool     // remove a "?" at the end
	CollapseSlashes  bool     // replace several slashes in a row of the path by one
	NormalizeEscapes bool     // RFC 3986 section 6.2.2: %7e is ~, %2f is %2F
	MaxLength        int      // bytes of a URL; 0: [MaxLength]
}

// Apply returns the URL that the rules make of u, and whether it is short enough. Applying the
// rules again changes nothing. Any goroutine may call Apply.
func (r *Rules) Apply(u URL) (URL, bool) {
	before := u.RequestURI()
	if after := r.target(before); after != before {
		u = u.Origin().URL(after)
	}
	return u, r.MaxLength == 0 || len(u.text) <= r.MaxLength
}

// target applies the rules to path and query.
func (r *Rules) target(target string) string {
	path, query, hasQuery := strings.Cut(target, "?")
	if r.CollapseSlashes {
		path = collapseSlashes(path)
	}
	if r.NormalizeEscapes {
		path, query = normalizeEscapes(path), normalizeEscapes(query)
	}
	if len(r.StripParameters) > 0 && query != "" {
		query = r.stripParameters(query)
		hasQuery = query != ""
	}
	if r.SortQuery {
		query = sortQuery(query)
	}
	switch {
	case !hasQuery || query == "" && r.DropEmptyQuery:
		return path
	case len(path)+1+len(query) == len(target) && target[:len(path)] == path && target[len(path)+1:] == query:
		return target // without a copy
	}
	return path + "?" + query
}

func collapseSlashes(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// stripParameters removes parameters, ignoring the case of their names. It returns "" if no parameter is left.
func (r *Rules) stripParameters(query string) string {
	kept := make([]string, 0, 8)
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if !slices.ContainsFunc(r.StripParameters, func(pattern string) bool { return matchesName(pattern, name) }) {
			kept = append(kept, parameter)
		}
	}
	return strings.Join(kept, "&")
}

func matchesName(pattern, name string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return len(name) >= len(begin) && strings.EqualFold(name[:len(begin)], begin)
	}
	return strings.EqualFold(name, pattern)
}

func sortQuery(query string) string {
	if !strings.Contains(query, "&") {
		return query
	}
	parameters := strings.Split(query, "&")
	slices.SortStableFunc(parameters, func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return strings.Compare(a, b)
	})
	return strings.Join(parameters, "&")
}

// normalizeEscapes decodes the escapes of unreserved characters and puts the others into upper case. A percent sign
// that escapes nothing must not become part of an escape, so the two characters after one stay encoded.
func normalizeEscapes(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	stray := -len("%xx")
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '%':
			b = append(b, s[i])
		case i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]):
			stray = len(b)
			b = append(b, '%')
		default:
			if c := hexValue(s[i+1])<<4 | hexValue(s[i+2]); isUnreserved(c) && len(b)-stray >= len("%xx") {
				b = append(b, c)
			} else {
				b = append(b, strings.ToUpper(s[i:i+3])...)
			}
			i += 2
		}
	}
	return string(b)
}

// isUnreserved matches the characters with the same meaning encoded and not encoded (RFC 3986 section 2.3).
func isUnreserved(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte("-._~", c) >= 0
}
