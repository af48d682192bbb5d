package extract

import (
	"bytes"
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxAttributes bounds the attributes of a tag: the tokenizer takes 40 times their size to hold
	// them.
	maxAttributes = 20_000
	// fewFrom is the size in bytes from which the attributes of a document are counted. Those of
	// smaller documents do no harm.
	fewFrom = 1 << 20
)

// fewAttributes returns a document without the attributes of a tag beyond the first maxAttributes.
func fewAttributes(text []byte) []byte {
	if len(text) < fewFrom {
		return text
	}
	var kept []byte
	from := 0 // kept has everything before it
	for at := 0; ; {
		next := bytes.IndexByte(text[at:], '<')
		if next < 0 || at+next+1 == len(text) {
			break
		}
		switch at += next + 1; {
		case bytes.HasPrefix(text[at:], []byte("!--")):
			at = behind(text, at+1, "-->")
		case isLetter(text[at]):
			end, most := scanTag(text, at)
			if most < end {
				kept, from = append(kept, text[from:most]...), end
			}
			at = behindRawText(text, at, end)
		}
	}
	if from == 0 {
		return text
	}
	return append(kept, text[from:]...)
}

// behind returns the index behind the next mark in a text from i on; if there is none, the end of
// the text.
func behind(text []byte, i int, mark string) int {
	n := bytes.Index(text[i:], []byte(mark))
	if n < 0 {
		return len(text)
	}
	return i + n + len(mark)
}

// behindRawText returns the end of the element whose tag is from at to end, if it has raw text;
// otherwise the end of the tag.
func behindRawText(text []byte, at, end int) int {
	n := at
	for n < end && isLetter(text[n]) {
		n++
	}
	if n-at > len("noframes") || traitsOf(atom.Lookup(bytes.ToLower(text[at:n])))&rawText == 0 {
		return end
	}
	for i := end; i < len(text); {
		if i = behind(text, i, "</"); i+n-at <= len(text) && bytes.EqualFold(text[i:i+n-at], text[at:n]) {
			return i
		}
	}
	return len(text)
}

// scanTag reads the tag whose name is at i, as the tokenizer does (HTML, sections 13.2.5.8 and
// 13.2.5.32 to 13.2.5.40). It returns the end of the tag, and the end of the last attribute within
// the bound.
func scanTag(text []byte, i int) (end, most int) {
	for i < len(text) && !endsKey(text[i], true) {
		i++
	}
	most = -1
	for n := 0; ; n++ {
		if i = skipSpace(text, i); i >= len(text) || text[i] == '>' {
			if most < 0 {
				most = i
			}
			return i, most
		}
		if n == maxAttributes {
			most = i
		}
		_, _, i = readAttribute(text, i)
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func skipSpace(text []byte, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// endsKey reports whether c ends an attribute's name. An equals sign in its first place does not,
// nor does one in the name of a tag.
func endsKey(c byte, first bool) bool {
	return c == '>' || c == '/' || isSpace(c) || (c == '=' && !first)
}

// skipValue returns the index behind the attribute value at i.
func skipValue(text []byte, i int) int {
	if i < len(text) && (text[i] == '"' || text[i] == '\'') {
		n := bytes.IndexByte(text[i+1:], text[i])
		if n < 0 {
			return len(text)
		}
		return i + n + 2
	}
	for i < len(text) && text[i] != '>' && !isSpace(text[i]) {
		i++
	}
	return i
}

// readAttributes returns the attributes of the current tag: all, or those with data for a crawler.
// Their values are parts of one string.
func (b *openElements) readAttributes() []html.Attribute {
	if !b.unread {
		return b.attrs
	}
	b.unread = false
	b.keys, b.values, b.ends = b.keys[:0], b.values[:0], b.ends[:0]
	for more := true; more; {
		var key, value []byte
		if key, value, more = b.TagAttr(); len(key) == 0 {
			break
		}
		a := atom.Lookup(key)
		if !isNeeded(a, key) && (!b.full || len(b.keys) >= maxKeys) {
			continue
		}
		name := a.String()
		if a == 0 {
			name = string(key)
		}
		if slices.ContainsFunc(b.keys, func(k html.Attribute) bool { return k.Key == name }) {
			continue // only the first counts
		}
		b.keys = append(b.keys, html.Attribute{Key: name})
		b.values = append(b.values, value...)
		b.ends = append(b.ends, len(b.values))
	}
	n := len(b.keys)
	if len(b.attributes) < n {
		b.attributes = make([]html.Attribute, max(n, b.slab()))
	}
	b.attrs, b.attributes = b.attributes[:n:n], b.attributes[n:]
	values, from := string(b.values), 0
	for i, end := range b.ends {
		b.attrs[i] = html.Attribute{Key: b.keys[i].Key, Val: values[from:end]}
		from = end
	}
	b.size += n / 2
	return b.attrs
}

// isNeeded reports whether the crawler or the builder needs an attribute.
func isNeeded(a atom.Atom, key []byte) bool {
	switch a {
	case atom.Href, atom.Rel, atom.Src, atom.Srcset, atom.Name, atom.Content, atom.HttpEquiv, atom.Lang, atom.Type,
		atom.Poster, atom.Data, atom.Action, atom.Method, atom.Color, atom.Face, atom.Size:
		return true
	}
	return a == 0 && (string(key) == "shadowrootmode" || string(key) == "encoding")
}
