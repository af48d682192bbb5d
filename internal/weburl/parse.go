package weburl

import (
	"fmt"
	"strconv"
	"strings"

	urlerrors "github.com/nlnwa/whatwg-url/errors"
	whatwg "github.com/nlnwa/whatwg-url/url"
)

// maxInput is the greatest length of a text that is looked at, in bytes and without the white space around it. It is
// more than MaxLength because dot segments, a fragment or a user name may go away.
const maxInput = 3 * MaxLength

// maxSlashes is the greatest number of slashes in such a text. A canonical form cannot have more; the library's
// time grows with their number times the length of the text.
const maxSlashes = MaxLength

// Parse returns the canonical form of an absolute http or https URL. The errors match [ErrScheme], [ErrNoHost],
// [ErrTooLong] or [ErrSyntax]. raw must not change afterwards: the URL may share its memory.
func Parse(raw string) (URL, error) {
	if u, ok := parsePlain(raw); ok {
		return u, nil
	}
	return parseFull(URL{}, raw)
}

// Resolve returns what the reference ref, as found in a page, means on the page u. An absolute ref is parsed
// as by [Parse], and so is every ref where u is the zero value. The errors are those of Parse.
func (u URL) Resolve(ref string) (URL, error) {
	if v, ok := u.resolvePlain(ref); ok {
		return v, nil
	}
	return parseFull(u, ref)
}

// parseFull parses any text with the library. A zero base is no base.
func parseFull(base URL, raw string) (URL, error) {
	u, err := parseInput(base, raw)
	if err != nil {
		return URL{}, refuse(raw, err)
	}
	return u, nil
}

func parseInput(base URL, raw string) (URL, error) {
	input := strings.TrimFunc(raw, isControlOrSpace)
	if len(input) > maxInput {
		return URL{}, fmt.Errorf("%w: %d bytes, %d are allowed", ErrTooLong, len(input), maxInput)
	}
	input = removeTabAndNewline(input)
	if i := strings.IndexByte(input, '#'); i >= 0 {
		input = input[:i+1] // the "#" guards a space before it, which the library would strip
	}
	scheme := schemeOf(input)
	switch {
	case scheme == "" && base.IsZero():
		return URL{}, fmt.Errorf("%w: it has no scheme", ErrScheme)
	case scheme != "" && scheme != schemeHTTP && scheme != schemeHTTPS:
		return URL{}, fmt.Errorf("%w: its scheme is %q", ErrScheme, scheme)
	case input == "" || input == "#":
		return base, nil
	}
	if n := strings.Count(input, "/") + strings.Count(input, `\`); n > maxSlashes {
		return URL{}, fmt.Errorf("%w: %d slashes, %d are allowed", ErrTooLong, n, maxSlashes)
	}
	input, err := dropUserinfo(base, scheme, escapeInvalidUTF8(input))
	if err != nil {
		return URL{}, err
	}
	if scheme == "" {
		return callLibrary(base.text[:base.pathEnd()], input) // the base's query is only in the way
	}
	return callLibrary(base.text, input)
}

// callLibrary runs the library's parser over cleaned input, and our own host parser inside it. An empty base is
// no base.
func callLibrary(base, input string) (URL, error) {
	var host string
	var hostErr error
	parser := whatwg.NewParser(
		whatwg.WithPathPercentEncodeSet(pathEncodeSet),
		whatwg.WithPreParseHostFunc(func(_ *whatwg.Url, raw string) string {
			host, hostErr = canonicalHost(raw)
			return "host" // stands in for every host; ours is put in its place below
		}))
	parsed, err := parser.ParseRef(base, input)
	if hostErr != nil {
		return URL{}, hostErr
	}
	if err != nil {
		return URL{}, translate(err)
	}
	origin := Origin{Scheme: parsed.Scheme(), Host: host}
	if origin.Port, err = effectivePort(origin.Scheme, parsed.Port()); err != nil {
		return URL{}, err
	}
	u := origin.URL(targetOf(parsed))
	if len(u.text) > MaxLength {
		return URL{}, fmt.Errorf("%w: %d bytes in canonical form, %d are allowed", ErrTooLong, len(u.text), MaxLength)
	}
	return u, nil
}

// pathEncodeSet is the path percent-encode set of today's standard: the library's lacks the "^".
var pathEncodeSet = whatwg.PathPercentEncodeSet.Set('^')

// targetOf returns path and query. The library's accessors hide a query that is empty, its serialisation does not.
func targetOf(u *whatwg.Url) string {
	_, authorityAndTarget, _ := strings.Cut(u.Href(true), "://")
	return authorityAndTarget[strings.IndexByte(authorityAndTarget, '/'):]
}

// effectivePort returns the port of a URL whose parsed port, "" for the default, is given.
func effectivePort(scheme, parsed string) (uint16, error) {
	if parsed == "" {
		return defaultPort(scheme), nil
	}
	port, err := strconv.ParseUint(parsed, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("%w: nothing can be asked of port %s", ErrSyntax, parsed)
	}
	return uint16(port), nil
}

// translate turns an error of the library into one of ours.
func translate(err error) error {
	switch kind := urlerrors.Type(err); kind {
	case urlerrors.HostMissing:
		return ErrNoHost
	case urlerrors.PortInvalid, urlerrors.PortOutOfRange:
		return fmt.Errorf("%w: the port is not a number from 1 to 65535", ErrSyntax)
	default:
		return fmt.Errorf("%w: %s", ErrSyntax, kind)
	}
}
