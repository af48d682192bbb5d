package extract

import "strings"

// clip cuts s to n bytes, not within a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// collapse is s with single spaces in the place of its white space, cut to n bytes and not within a
// character.
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
