package mirror

import (
	"bytes"
	"strings"
)

// styles rewrites the references of a style sheet: those of url() and of @import.
func styles(css []byte, rewrite func(ref string) string) []byte {
	out := make([]byte, 0, len(css))
	for i := 0; i < len(css); {
		switch rest := css[i:]; {
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return append(out, rest...)
			}
			out, i = append(out, rest[:n+4]...), i+n+4
		case rest[0] == '"' || rest[0] == '\'':
			n := stringEnd(rest)
			if isImport(out) {
				out = appendReference(out, rewrite(unescaped(strings.Trim(string(rest[:n]), `"'`))))
			} else {
				out = append(out, rest[:n]...)
			}
			i += n
		case len(rest) > 4 && bytes.EqualFold(rest[:4], []byte("url(")):
			ref, n := function(rest)
			if n == 0 {
				return append(out, rest...)
			}
			out = appendReference(append(out, "url("...), rewrite(ref))
			out, i = append(out, ')'), i+n
		default:
			out, i = append(out, rest[0]), i+1
		}
	}
	return out
}

// isImport reports whether what was written ends in @import.
func isImport(before []byte) bool {
	before = bytes.TrimRight(before[max(0, len(before)-64):], " \t\r\n\f")
	return len(before) >= 7 && bytes.EqualFold(before[len(before)-7:], []byte("@import"))
}

// stringEnd returns the length of the string that css begins with.
func stringEnd(css []byte) int {
	for i := 1; i < len(css); i++ {
		switch css[i] {
		case '\\':
			i++
		case css[0]:
			return i + 1
		case '\n':
			return i
		}
	}
	return len(css)
}

// function returns the reference of the url() that css begins with, and its length; 0: it has no end.
func function(css []byte) (ref string, n int) {
	i := len("url(")
	for i < len(css) && strings.IndexByte(" \t\r\n\f", css[i]) >= 0 {
		i++
	}
	from := i
	if i < len(css) && (css[i] == '"' || css[i] == '\'') {
		i += stringEnd(css[i:])
	}
	end := bytes.IndexByte(css[i:], ')')
	if end < 0 {
		return "", 0
	}
	text := strings.TrimSpace(string(css[from : i+end]))
	return unescaped(strings.Trim(text, `"'`)), i + end + 1
}

var escapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, `'`, `\(`, `(`, `\)`, `)`, `\ `, ` `, "\\\n", "")

// unescaped removes the escapes of characters that need them in a string or url().
func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	return escapes.Replace(text)
}

// appendReference appends a reference as a string.
func appendReference(out []byte, ref string) []byte {
	out = append(out, '"')
	out = append(out, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\a `).Replace(ref)...)
	return append(out, '"')
}
