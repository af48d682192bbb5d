package requisites

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
)

// sheet takes what a style sheet in UTF-8 refers to. Of a font that is there in several formats, a browser loads one.
func (f *finder) sheet(text []byte) {
	l := css.NewLexer(parse.NewInputBytes(text[:len(text):len(text)]))
	var rule string     // the at-rule whose prelude or block this is; empty: none
	var depth, sets int // of braces in the rule, and of parentheses in an image-set
	var fonts []string  // of a @font-face
	for {
		token, raw := l.Next()
		switch token {
		case css.ErrorToken:
			f.fonts(fonts)
			return
		case css.AtKeywordToken:
			rule, depth = strings.ToLower(string(raw)), 0
		case css.SemicolonToken:
			if depth == 0 {
				rule = ""
			}
		case css.LeftBraceToken:
			depth++
		case css.RightBraceToken:
			if depth = max(depth-1, 0); depth == 0 {
				f.fonts(fonts)
				rule, fonts = "", fonts[:0]
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
				f.add(reference(raw, isURL), true)
				rule = "imported" // supports() and layer() follow
			case rule == "@namespace" && depth == 0, !isURL && sets == 0:
			case rule == "@font-face" && depth > 0 && len(fonts) < f.most:
				fonts = append(fonts, reference(raw, isURL))
			default:
				f.add(reference(raw, isURL), false)
			}
		}
	}
}

// fonts takes the formats of a font that browsers of today prefer: WOFF 2, else WOFF, else all.
func (f *finder) fonts(all []string) {
	for _, extension := range []string{".woff2", ".woff", ""} {
		found := false
		for _, reference := range all {
			name, _, _ := strings.Cut(reference, "#")
			name, _, _ = strings.Cut(name, "?")
			if strings.HasSuffix(strings.ToLower(name), extension) {
				f.add(reference, false)
				found = true
			}
		}
		if found {
			return
		}
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
