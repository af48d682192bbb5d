package weburl

import "strings"

// isControlOrSpace matches the characters that the standard strips from both ends of its input.
func isControlOrSpace(r rune) bool { return r <= ' ' }

// removeTabAndNewline removes the characters that the standard removes everywhere in its input.
func removeTabAndNewline(s string) string {
	if !strings.ContainsAny(s, "\t\n\r") {
		return s
	}
	return strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(s)
}

// schemeOf returns the scheme of a URL in lower case, or "" if the text is relative.
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
