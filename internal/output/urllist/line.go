package urllist

import "unicode/utf8"

// shownText is the number of bytes of a bad line that are kept.
const shownText = 120

// bad returns the error for the current line.
func (r *Reader) bad(line []byte, reason string) *BadLine {
	return &BadLine{Line: r.line, Text: shorten(line), Reason: reason}
}

// shorten cuts a text between characters.
func shorten(text []byte) string {
	if len(text) <= shownText {
		return string(text)
	}
	end := shownText
	for end > shownText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return string(text[:end])
}
