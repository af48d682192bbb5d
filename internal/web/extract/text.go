package extract

import "strings"

// clip cuts s to at most n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// collapse returns s with its white space replaced by single spaces, cut to at most n bytes,
// between characters.
func collapse(s string, n int) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(s) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		room := n - b.Len()
		b.WriteString(clip(word, room))
		if len(word) >= room {
			break
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}
