package weburl

import (
	"strings"
	"testing"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// pathEncodeSet is the path percent-encode set of today's standard. The library's set lacks the
// "^".
var pathEncodeSet = whatwg.PathPercentEncodeSet.Set('^')

// libraryParse parses a text with another implementation of the standard, but with this package's
// host parser, because the library's host rules are older. judge is false if the library cannot
// decide: for bytes that are not UTF-8, and for lengths.
func libraryParse(base URL, input string) (text string, judge bool) {
	if strings.ToValidUTF8(input, "") != input || len(base.String())+len(input) > MaxLength {
		return "", false
	}
	if base.IsZero() && schemeOf(removeTabAndNewline(strings.TrimFunc(input, isControlOrSpace))) == "" {
		return "", true
	}
	var host string
	var hostErr error
	parser := whatwg.NewParser(
		whatwg.WithPathPercentEncodeSet(pathEncodeSet),
		whatwg.WithPreParseHostFunc(func(_ *whatwg.Url, raw string) string {
			host, hostErr = canonicalHost(raw)
			return "host"
		}))
	parsed, err := parser.ParseRef(base.String(), input)
	if err != nil || hostErr != nil || parsed.Scheme() != schemeHTTP && parsed.Scheme() != schemeHTTPS {
		return "", true
	}
	port, err := parsePort(parsed.Scheme(), parsed.Port())
	if err != nil {
		return "", true
	}
	if host == "" {
		host = base.Host()
	}
	_, rest, _ := strings.Cut(parsed.Href(true), "://")
	return Origin{parsed.Scheme(), host, port}.URL(rest[strings.IndexByte(rest, '/'):]).String(), true
}

// checkLibrary compares a result with that of the library.
func checkLibrary(t *testing.T, base URL, ref string, u URL) {
	t.Helper()
	if want, judge := libraryParse(base, ref); judge && want != u.String() && len(want) <= MaxLength {
		t.Errorf("%q on %q: %q, the library has %q", ref, base, u, want)
	}
}
