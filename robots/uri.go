//go:build !core

package robots

import "strings"

// RequestURI returns the path and query of a URL, without checking that it is one: the scheme, the
// host and the fragment go, and a missing path is "/". A reference without a scheme may start with
// the path or with "//host".
func RequestURI(url string) string {
	url, _, _ = strings.Cut(url, "#")
	rest, isNetwork := strings.CutPrefix(url, "//")
	path := strings.IndexAny(rest, "/?;")
	if scheme := strings.Index(rest, "://"); !isNetwork && scheme >= 0 && scheme <= path {
		rest = rest[scheme+len("://"):]
		path = strings.IndexAny(rest, "/?;")
	}
	switch {
	case path < 0:
		return "/"
	case rest[path] == '/':
		return rest[path:]
	}
	return "/" + rest[path:]
}

// MatchURL is Match for the RequestURI of a whole URL. A crawler that has the request URI uses
// Match.
func (r *Rules) MatchURL(url string) Verdict {
	return r.Match(RequestURI(url))
}
