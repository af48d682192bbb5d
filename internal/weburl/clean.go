package weburl

import (
	"strings"
	"unicode/utf8"
)

// isControlOrSpace matches what the standard strips from both ends of its input.
func isControlOrSpace(r rune) bool { return r <= ' ' }

// removeTabAndNewline removes what the standard removes from anywhere in its input.
func removeTabAndNewline(s string) string {
	if !strings.ContainsAny(s, "\t\n\r") {
		return s
	}
	return strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(s)
}

// escapeInvalidUTF8 percent-encodes each byte that is no part of valid UTF-8. The standard would write U+FFFD for
// all of them, and so merge pages that differ; the server of a page that is not UTF-8 waits for its own bytes.
func escapeInvalidUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	const upperHex = "0123456789ABCDEF"
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			b.WriteByte('%')
			b.WriteByte(upperHex[s[0]>>4])
			b.WriteByte(upperHex[s[0]&15])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// schemeOf returns the scheme of a URL in lower case, or "" where the text is relative.
func schemeOf(s string) string {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return strings.ToLower(s[:i])
		default:
			return ""
		}
	}
	return ""
}

// dropUserinfo removes user name and password from a URL or reference. The library would do so too, but its time grows
// with the square of their length.
func dropUserinfo(base URL, scheme, input string) (string, error) {
	start := 0
	if scheme != "" {
		start = len(scheme) + len(":")
	}
	slashes := len(input[start:]) - len(strings.TrimLeft(input[start:], `/\`))
	if slashes < 2 && (scheme == "" || scheme == base.Scheme()) {
		return input, nil // relative to the base's host
	}
	start += slashes
	authority := input[start:]
	if end := strings.IndexAny(authority, `/\?#`); end >= 0 {
		authority = authority[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return input, nil
	}
	if at == len(authority)-1 {
		return "", ErrNoHost
	}
	return input[:start] + input[start+at+1:], nil
}
