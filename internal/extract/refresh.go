package extract

import "strings"

// refreshTarget returns the URL of a refresh such as "5; url='next.html'", as
// HTML parses it (HTML, section 4.2.5.3, "shared declarative refresh steps").
// A refresh of the page itself has none.
func refreshTarget(content string) string {
	s := strings.TrimLeft(content, space)
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if digits == 0 && !strings.HasPrefix(s, ".") {
		return ""
	}
	s = strings.TrimLeft(s[digits:], "0123456789.")
	rest := strings.TrimLeft(s, space)
	if rest == "" || (len(rest) == len(s) && rest[0] != ';' && rest[0] != ',') {
		return ""
	}
	s = strings.TrimLeft(rest, space)
	if s[0] == ';' || s[0] == ',' {
		s = strings.TrimLeft(s[1:], space)
	}
	s = afterURLEquals(s)
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		s, _, _ = strings.Cut(s[1:], s[:1])
	}
	return strings.Trim(s, space)
}

// afterURLEquals cuts off "url =" where s begins with it.
func afterURLEquals(s string) string {
	if len(s) < 3 || !strings.EqualFold(s[:3], "url") {
		return s
	}
	rest := strings.TrimLeft(s[3:], space)
	if !strings.HasPrefix(rest, "=") {
		return s
	}
	return strings.TrimLeft(rest[1:], space)
}
