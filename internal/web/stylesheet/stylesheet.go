//go:build !core

// Package stylesheet finds what style sheets refer to, and rewrites it. It is pure.
package stylesheet

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
)

// Kind says what a reference leads to.
type Kind uint8

const (
	// Other is an image, mostly.
	Other Kind = iota
	// Import is a style sheet.
	Import
	// Font is a font.
	Font
)

// Reference is one of a style sheet, without escapes.
type Reference struct {
	Text string
	Kind Kind
	// Rule is the number of its at-rule. A browser loads one of the fonts of a rule.
	Rule int
}

// Each calls f for each reference of a style sheet in UTF-8.
func Each(text []byte, f func(Reference)) {
	scan(text, func(_ []byte, r *Reference) {
		if r != nil {
			f(*r)
		}
	})
}

// Rewrite returns a style sheet with the references that f returns. What has none stays as it is.
func Rewrite(text []byte, f func(Reference) string) []byte {
	out := make([]byte, 0, len(text))
	scan(text, func(raw []byte, r *Reference) {
		if r == nil {
			out = append(out, raw...)
			return
		}
		quoted := raw[0] == '"' || raw[0] == '\''
		if !quoted {
			out = append(out, "url("...)
		}
		out = append(out, '"')
		out = append(out, escapes.Replace(f(*r))...)
		out = append(out, '"')
		if !quoted {
			out = append(out, ')')
		}
	})
	return out
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\a `, "\r", `\d `, "\f", `\c `)

// scan calls f for each token, in order, with the reference that it is. raw is valid until f returns.
func scan(text []byte, f func(raw []byte, r *Reference)) {
	l := css.NewLexer(parse.NewInputBytes(text[:len(text):len(text)]))
	var rule string     // the at-rule whose prelude or block this is; empty: none
	var depth, sets int // of braces in the rule, and of parentheses in an image-set
	var rules int
	for {
		token, raw := l.Next()
		var r *Reference
		switch token {
		case css.ErrorToken:
			return
		case css.AtKeywordToken:
			rule, depth = strings.ToLower(string(raw)), 0
			rules++
		case css.SemicolonToken:
			if depth == 0 {
				rule = ""
			}
		case css.LeftBraceToken:
			depth++
		case css.RightBraceToken:
			if depth = max(depth-1, 0); depth == 0 {
				rule = ""
			}
		case css.FunctionToken:
			name := strings.ToLower(string(raw))
			if sets > 0 || strings.HasSuffix(name, "image-set(") || name == "src(" {
				sets++
			}
		case css.LeftParenthesisToken:
			if sets > 0 {
				sets++
			}
		case css.RightParenthesisToken:
			sets = max(sets-1, 0)
		case css.StringToken, css.URLToken:
			isURL := token == css.URLToken
			switch {
			case rule == "@import" && depth == 0 && sets == 0:
				r = &Reference{reference(raw, isURL), Import, rules}
				rule = "imported" // supports() and layer() follow
			case rule == "@namespace" && depth == 0, !isURL && sets == 0:
			case rule == "@font-face" && depth > 0:
				r = &Reference{reference(raw, isURL), Font, rules}
			default:
				r = &Reference{reference(raw, isURL), Other, rules}
			}
		}
		f(raw, r)
	}
}

// reference returns the text of a string or a url().
func reference(raw []byte, isURL bool) string {
	if isURL {
		if open := bytes.IndexByte(raw, '('); open >= 0 {
			raw = raw[open+1:]
		}
		raw = bytes.Trim(bytes.TrimSuffix(raw, []byte(")")), " \t\r\n\f")
	}
	if len(raw) > 0 && (raw[0] == '"' || raw[0] == '\'') {
		raw = bytes.TrimSuffix(raw[1:], raw[:1])
	}
	return unescape(string(raw))
}

// unescape replaces the escapes of a style sheet (CSS Syntax, section 4.3.7).
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		i++
		end := i
		for end < len(s) && end < i+6 && isHex(s[end]) {
			end++
		}
		switch {
		case end > i:
			n, _ := strconv.ParseUint(s[i:end], 16, 32)
			if n == 0 || n > utf8.MaxRune {
				n = utf8.RuneError
			}
			b.WriteRune(rune(n))
			if i = end; i < len(s) && strings.IndexByte(" \t\r\n\f", s[i]) >= 0 {
				i++
			}
		case s[i] == '\n' || s[i] == '\r' || s[i] == '\f': // a line goes on
			i++
		default:
			_, size := utf8.DecodeRuneInString(s[i:])
			b.WriteString(s[i : i+size])
			i += size
		}
	}
	return b.String()
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }
