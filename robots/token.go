package robots

import "strings"

// isTokenOctet reports whether c may stand in a product token (RFC 9309 section 2.2.1).
func isTokenOctet(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}

// ValidToken reports whether s is a product token by RFC 9309 section 2.2.1: one or more letters, hyphens and
// underscores. Another name works too, but the parsers of few site operators will find it.
func ValidToken(s string) bool {
	for i := range len(s) {
		if !isTokenOctet(s[i]) {
			return false
		}
	}
	return s != ""
}

// isGlobal reports whether the value of a user-agent line means every crawler: a star alone, or before a space.
func isGlobal(value []byte) bool {
	return len(value) > 0 && value[0] == '*' && (len(value) == 1 || isSpace(value[1]))
}

// tokenIn returns the product token at the start of the value of a user-agent line: "FooBot" of "FooBot/1.0 (x)".
func tokenIn(value []byte) []byte {
	n := 0
	for n < len(value) && isTokenOctet(value[n]) {
		n++
	}
	return value[:n]
}

// firstWord returns the text before the first space or slash: a name with a digit is cut there.
func firstWord(value []byte) []byte {
	n := 0
	for n < len(value) && !isSpace(value[n]) && value[n] != '/' {
		n++
	}
	return value[:n]
}

// names reports whether the value of a user-agent line names the token. A valid token is compared
// with the token at the start of the value; any other name with its first word.
func names(value []byte, token string) bool {
	if !ValidToken(token) {
		if i := strings.IndexAny(token, "/ \t\n\v\f\r"); i >= 0 {
			token = token[:i]
		}
		if !ValidToken(token) {
			return token != "" && equalFold(firstWord(value), token)
		}
	}
	return equalFold(tokenIn(value), token)
}

// rankOf says which of the tokens the value of a user-agent line names: the index of the first,
// len(tokens) for the star, and noRank for anybody else.
func rankOf(value []byte, tokens []string) int {
	if isGlobal(value) {
		return len(tokens)
	}
	for i, token := range tokens {
		if names(value, token) {
			return i
		}
	}
	return noRank
}

const noRank = int(^uint(0) >> 1)
