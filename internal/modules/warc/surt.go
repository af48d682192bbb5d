package warc

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// Key returns the form of a URL by which an index is sorted and searched, as the tools of the
// Internet Archive make it: the host in reverse, everything in lower case, without the parts that
// hardly ever distinguish two pages (scheme, www, default port, a last slash, session ids, the
// order of the query). So http://www.Example.com/A/?b=2&a=1 becomes com,example)/a?a=1&b=2.
func Key(url string) string {
	scheme, rest, found := strings.Cut(url, "://")
	if !found {
		return strings.ToLower(url)
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	host, port := splitPort(rest[:end], strings.ToLower(scheme))
	path, query, _ := strings.Cut(rest[end:], "?")
	b := make([]byte, 0, len(url)+8)
	b = appendHost(b, host)
	if port != "" {
		b = append(append(b, ':'), port...)
	}
	b = append(b, ')')
	b = append(b, keyPath(path)...)
	if q := keyQuery(query); q != "" {
		b = append(append(b, '?'), q...)
	}
	return string(b)
}

// splitPort separates host and port. It drops the default port of the scheme, and a user.
func splitPort(authority, scheme string) (host, port string) {
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		authority = authority[at+1:]
	}
	host = authority
	if colon := strings.LastIndexByte(authority, ':'); colon > strings.LastIndexByte(authority, ']') {
		host, port = authority[:colon], authority[colon+1:]
	}
	if scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		port = ""
	}
	return strings.Trim(strings.ToLower(host), "[]."), port
}

// appendHost appends the labels of a host in reverse, without a first label such as www or www2.
func appendHost(b []byte, host string) []byte {
	if label, rest, found := strings.Cut(host, "."); found && strings.HasPrefix(label, "www") &&
		strings.Trim(label[3:], "0123456789") == "" {
		host = rest
	}
	for {
		dot := strings.LastIndexByte(host, '.')
		b = append(b, host[dot+1:]...)
		if dot < 0 {
			return b
		}
		b = append(b, ',')
		host = host[:dot]
	}
}

// The session ids of ASP.NET in paths, and those of others in queries.
var (
	sessionPath = []*regexp.Regexp{
		regexp.MustCompile(`(?i)^(.*/)(?:\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^?]+\.aspx.*)$`),
		regexp.MustCompile(`(?i)^(.*/)(?:\([0-9a-z]{24}\)/)([^?]+\.aspx.*)$`),
	}
	sessionQuery = []*regexp.Regexp{
		regexp.MustCompile(`(?i)^(.*)(?:jsessionid=[0-9a-z]{32})(?:&(.*))?$`),
		regexp.MustCompile(`(?i)^(.*)(?:phpsessid=[0-9a-z]{32})(?:&(.*))?$`),
		regexp.MustCompile(`(?i)^(.*)(?:sid=[0-9a-z]{32})(?:&(.*))?$`),
		regexp.MustCompile(`(?i)^(.*)(?:aspsessionid[a-z]{8}=[a-z]{24})(?:&(.*))?$`),
		regexp.MustCompile(`(?i)^(.*)(?:cfid=[^&]+&cftoken=[^&]+)(?:&(.*))?$`),
	}
)

func keyPath(path string) string {
	path = strings.ToLower(escape(normalPath(unescape(path))))
	if strings.Contains(path, ".aspx") {
		for _, r := range sessionPath {
			path = r.ReplaceAllString(path, "$1$2")
		}
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// normalPath resolves dots and removes empty segments.
func normalPath(path string) string {
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") && path != "" {
		return path
	}
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var kept []string
	for _, s := range segments {
		switch {
		case s == ".":
		case s == ".." && len(kept) > 0:
			kept = kept[:len(kept)-1]
		default:
			kept = append(kept, s)
		}
	}
	b := []byte{'/'}
	for i, s := range kept {
		b = append(b, s...)
		if s != "" && i < len(kept)-1 {
			b = append(b, '/')
		}
	}
	return string(b)
}

func keyQuery(query string) string {
	if query == "" {
		return ""
	}
	query = escape(unescape(query))
	if lower := strings.ToLower(query); strings.Contains(lower, "sid=") || strings.Contains(lower, "sessionid") ||
		strings.Contains(lower, "cfid=") {
		for _, r := range sessionQuery {
			query = r.ReplaceAllString(query, "$1$2")
		}
	}
	query = strings.ToLower(query)
	if !strings.Contains(query, "&") {
		return query
	}
	parameters := strings.Split(query, "&")
	slices.SortStableFunc(parameters, compareParameters)
	return strings.Join(parameters, "&")
}

// compareParameters orders by name, then a name alone before one with a value, then by value.
func compareParameters(a, b string) int {
	aName, aValue, aHas := strings.Cut(a, "=")
	bName, bValue, bHas := strings.Cut(b, "=")
	if c := strings.Compare(aName, bName); c != 0 {
		return c
	}
	switch {
	case aHas && !bHas:
		return 1
	case bHas && !aHas:
		return -1
	}
	return strings.Compare(aValue, bValue)
}

// unescape resolves %XX repeatedly until none is left.
func unescape(s string) string {
	for {
		next := unescapeOnce(s)
		if next == s {
			return s
		}
		s = next
	}
}

func unescapeOnce(s string) string {
	at := strings.IndexByte(s, '%')
	if at < 0 {
		return s
	}
	b := append(make([]byte, 0, len(s)), s[:at]...)
	for i := at; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// escape writes characters that cannot be in a URL, and # and %, as %XX, once.
func escape(s string) string {
	plain := func(c byte) bool { return c > ' ' && c < 0x7f && c != '#' && c != '%' }
	at := 0
	for at < len(s) && plain(s[at]) {
		at++
	}
	if at == len(s) {
		return s
	}
	var b bytes.Buffer
	b.WriteString(s[:at])
	const digits = "0123456789ABCDEF"
	for i := at; i < len(s); i++ {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
