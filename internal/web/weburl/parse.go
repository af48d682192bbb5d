package weburl

import (
	"fmt"
	"strings"
)

// maxInput is the largest length of a text, in bytes without the white space around it. It is more
// than MaxLength because dot segments, a fragment or a user name may be removed.
const maxInput = 3 * MaxLength

// Parse returns the canonical form of an absolute http or https URL. The errors match [ErrScheme],
// [ErrNoHost], [ErrTooLong] or [ErrSyntax]. raw must not change afterwards: the URL may share its
// memory.
func Parse(raw string) (URL, error) {
	if u, ok := parsePlain(raw); ok {
		return u, nil
	}
	return parseFull(URL{}, raw)
}

// Resolve returns the URL of the reference ref on the page u. It parses an absolute ref as [Parse]
// does, and so every ref if u is the zero value. Its errors are those of Parse.
func (u URL) Resolve(ref string) (URL, error) {
	if v, ok := u.resolvePlain(ref); ok {
		return v, nil
	}
	return parseFull(u, ref)
}

// parseFull parses any text. A zero base means no base.
func parseFull(base URL, raw string) (URL, error) {
	u, err := parseInput(base, raw)
	if err != nil {
		return URL{}, refuse(raw, err)
	}
	return u, nil
}

// parseInput is the standard's basic URL parser (section 4.4) for http and https. The standard's
// states work character by character; parseInput works part by part.
func parseInput(base URL, raw string) (URL, error) {
	input := strings.TrimFunc(raw, isControlOrSpace)
	if len(input) > maxInput {
		return URL{}, fmt.Errorf("%w: %d bytes, %d are allowed", ErrTooLong, len(input), maxInput)
	}
	input, _, _ = strings.Cut(removeTabAndNewline(input), "#")
	scheme := schemeOf(input)
	switch {
	case scheme == "" && base.IsZero():
		return URL{}, fmt.Errorf("%w: it has no scheme", ErrScheme)
	case scheme != "" && scheme != schemeHTTP && scheme != schemeHTTPS:
		return URL{}, fmt.Errorf("%w: its scheme is %q", ErrScheme, scheme)
	case scheme != "":
		input = input[len(scheme)+len(":"):]
	}
	rest := strings.TrimLeft(input, `/\`)
	slashes := len(input) - len(rest)
	if slashes < 2 && (scheme == "" || scheme == base.Scheme()) {
		return base.relative(input)
	}
	if scheme == "" {
		scheme = base.Scheme()
	}
	authority, target := cutAuthority(rest)
	origin, err := parseAuthority(scheme, authority)
	if err != nil {
		return URL{}, err
	}
	return newURL(origin, "", target)
}

// relative resolves a reference without a host.
func (u URL) relative(ref string) (URL, error) {
	path := u.text[u.target:u.pathEnd()]
	switch {
	case ref == "":
		return u, nil
	case ref[0] == '?':
		query := appendQuery(nil, ref[1:])
		return checkLength(u.Origin().URL(path + string(query)))
	case isSlash(ref[0]):
		return newURL(u.Origin(), "", ref)
	}
	return newURL(u.Origin(), path[:strings.LastIndexByte(path, '/')], ref)
}

// newURL returns the URL of an origin, a folder without its last slash, and a path and query of any form.
func newURL(origin Origin, folder, target string) (URL, error) {
	path, query, hasQuery := strings.Cut(target, "?")
	b := appendPath(append(make([]byte, 0, len(folder)+len(target)+1), folder...), path)
	if hasQuery {
		b = appendQuery(b, query)
	}
	return checkLength(origin.URL(string(b)))
}

func checkLength(u URL) (URL, error) {
	if len(u.text) > MaxLength {
		return URL{}, fmt.Errorf("%w: %d bytes in canonical form, %d are allowed", ErrTooLong, len(u.text), MaxLength)
	}
	return u, nil
}
