package extract

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// tag is a tag that html.Tokenizer does not read: that takes ten times as long, because it reads a
// byte at a time, copies each attribute twice and keeps the names of all. Most tags of a page have
// attributes that nobody reads.
type tag struct {
	text []byte // from < to >
	name []byte // in lower case
	from int    // where the attributes begin in text
	at   int    // where the next attribute begins
	// These are used again for the next tag or attribute.
	lowerName, lowerKey []byte
}

// read reads the tag at the beginning of a text as html.Tokenizer does (HTML, sections 13.2.5.6 to
// 13.2.5.8 and 13.2.5.32 to 13.2.5.40). It returns html.ErrorToken, and reads nothing, if there is
// no tag that it can read: raw text follows, the tag has no end, or a slash may belong to a value.
func (t *tag) read(text []byte) html.TokenType {
	t.text = nil
	kind, begin := html.StartTagToken, 1
	if len(text) > 1 && text[1] == '/' {
		kind, begin = html.EndTagToken, 2
	}
	if len(text) <= begin || text[0] != '<' || !isLetter(text[begin]) {
		return html.ErrorToken
	}
	t.name = nameIn(text)
	t.from = begin + len(t.name)
	t.at = t.from
	if !isLower(t.name) {
		t.lowerName = appendLower(t.lowerName[:0], t.name)
		t.name = t.lowerName
	}
	if kind == html.StartTagToken && isRawText(t.name) {
		return html.ErrorToken
	}
	var value []byte // of the last attribute
	end := skipSpace(text, t.at)
	for end < len(text) && text[end] != '>' {
		_, value, end = readAttribute(text, end)
		end = skipSpace(text, end)
	}
	if end == len(text) {
		return html.ErrorToken
	}
	if kind == html.StartTagToken && text[end-1] == '/' {
		if len(value) > 0 { // it is part of it, unless html.Tokenizer leaves out a repeated attribute
			return html.ErrorToken
		}
		kind = html.SelfClosingTagToken
	}
	t.text = text[:end+1]
	return kind
}

// isCoded reports whether values may have to be decoded, before the first attribute has been read.
func (t *tag) isCoded() bool {
	rest := t.text[t.from:]
	return t.at == t.from &&
		(bytes.IndexByte(rest, '&') >= 0 || bytes.IndexByte(rest, '\r') >= 0 || bytes.IndexByte(rest, 0) >= 0)
}

// attribute returns the next attribute that has a name, which is in lower case.
func (t *tag) attribute() (key, value []byte, more bool) {
	for len(key) == 0 {
		if t.at = skipSpace(t.text, t.at); t.text[t.at] == '>' {
			return nil, nil, false
		}
		key, value, t.at = readAttribute(t.text, t.at)
	}
	if !isLower(key) {
		t.lowerKey = appendLower(t.lowerKey[:0], key)
		key = t.lowerKey
	}
	return key, value, true
}

// readAttribute reads the attribute at i, with a value as it is written, and returns the index
// behind it. The key is empty if there is only a slash.
func readAttribute(text []byte, i int) (key, value []byte, behind int) {
	from := i
	for i < len(text) && !endsKey(text[i], i == from) {
		i++
	}
	key = text[from:i]
	if i = skipSpace(text, i); i < len(text) && text[i] == '/' {
		i++
	} else if i < len(text) && text[i] == '=' {
		from = skipSpace(text, i+1)
		i = skipValue(text, from)
		value = text[from:i]
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') {
			value = value[1 : n-1]
		}
	}
	return key, value, i
}

// nameIn returns the name in the text of a tag.
func nameIn(tag []byte) []byte {
	name := bytes.TrimPrefix(tag[1:], []byte{'/'})
	for i, c := range name {
		if endsKey(c, true) {
			return name[:i]
		}
	}
	return name
}

// isLower reports whether appendLower changes nothing.
func isLower(name []byte) bool {
	for _, c := range name {
		if c == 0 || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// appendLower appends a name in lower case (HTML, sections 13.2.5.8 and 13.2.5.33).
func appendLower(to, name []byte) []byte {
	for _, c := range name {
		switch {
		case c == 0:
			to = append(to, "\ufffd"...)
		case 'A' <= c && c <= 'Z':
			to = append(to, c|0x20)
		default:
			to = append(to, c)
		}
	}
	return to
}

// isRawText reports whether the content of an element with this name is not markup.
func isRawText(name []byte) bool {
	switch name[0] {
	case 'i', 'n', 'p', 's', 't', 'x':
		a := atom.Lookup(name)
		return traitsOf(a)&rawText != 0 || a == atom.Noscript || a == atom.Plaintext
	}
	return false
}
