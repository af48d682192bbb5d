package extract

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

const (
	// maxTokenBytes bounds a tag, or a text between two tags, of a list.
	maxTokenBytes = 1 << 20
	// maxFieldBytes bounds how many bytes of the text of one element are read.
	maxFieldBytes = 8 << 10
)

// xmlReader reads the XML of sitemaps and feeds as a stream of tags and texts. It uses HTML's
// tokenizer, which takes any bytes and whose memory is bounded; encoding/xml keeps all open
// elements, and fails at the first error.
type xmlReader struct {
	z     *Tokenizer
	name  string // of the current element, without its prefix, in lower case
	attrs []html.Attribute
	empty bool // the element has ended with its begin: <a/>
	text  []byte
}

// event is the kind of what next read.
type event uint8

const (
	endOfFile event = iota
	elementStart
	elementEnd
	characterData
)

func newXMLReader(r io.Reader) *xmlReader {
	x := &xmlReader{z: NewTokenizer(r)}
	x.z.SetMaxBuf(maxTokenBytes)
	x.z.AllowCDATA(true)
	return x
}

// next moves on. broken reports whether a bound caused the end.
func (x *xmlReader) next() (e event, broken bool) {
	for {
		switch x.z.Next() {
		case html.ErrorToken:
			return endOfFile, x.z.Err() != io.EOF
		case html.TextToken:
			x.text = x.z.Raw() // its Text would put HTML's entities into URLs: "&copy=1"
			return characterData, false
		case html.StartTagToken:
			x.start(false)
			x.z.NextIsNotRawText()
			return elementStart, false
		case html.SelfClosingTagToken:
			x.start(true)
			return elementStart, false
		case html.EndTagToken:
			name, _ := x.z.TagName()
			x.name = elementName(name)
			return elementEnd, false
		}
	}
}

func (x *xmlReader) start(empty bool) {
	name, more := x.z.TagName()
	x.name, x.empty = elementName(name), empty
	x.attrs = attributes(x.z, more, x.attrs[:0])
}

// usualNames saves a copy of each name that is frequent in lists.
var usualNames = func() map[string]string {
	names := make(map[string]string)
	for name := range strings.FieldsSeq("urlset url loc lastmod changefreq priority sitemap link image title caption " +
		"news publication_date item entry guid pubdate description updated published id summary content author name " +
		"category " +
		"creator") {
		names[name] = name
	}
	return names
}()

// elementName returns the name of an element without its prefix.
func elementName(name []byte) string {
	local := name[bytes.LastIndexByte(name, ':')+1:]
	if usual, ok := usualNames[string(local)]; ok {
		return usual
	}
	return string(local)
}

// attribute returns an attribute of the current element. The name is in lower case.
func (x *xmlReader) attribute(name string) string { return attribute(x.attrs, name) }

var cdataStart, cdataEnd = []byte("<![CDATA["), []byte("]]>")

// appendText appends the current text to a field, with its entities replaced, up to a bound.
func (x *xmlReader) appendText(field []byte) []byte {
	raw := x.text
	room := maxFieldBytes - len(field)
	if rest, ok := bytes.CutPrefix(raw, cdataStart); ok {
		rest = bytes.TrimSuffix(rest, cdataEnd)
		return append(field, rest[:min(len(rest), max(room, 0))]...)
	}
	return appendUnescaped(field, raw[:min(len(raw), max(room, 0))])
}

// appendUnescaped replaces the entities that XML has without a declaration (XML 1.0, sections 4.1
// and 4.6). Others stay: most of them are an unescaped "&" of a URL.
func appendUnescaped(to, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '&')
		if i < 0 {
			return append(to, text...)
		}
		to = append(to, text[:i]...)
		text = text[i:]
		end := bytes.IndexByte(text[:min(len(text), 12)], ';')
		if r, ok := entity(text[1:max(end, 1)]); ok {
			to = utf8.AppendRune(to, r)
			text = text[end+1:]
		} else {
			to = append(to, '&')
			text = text[1:]
		}
	}
}

// entity returns the replacement of the entity with a name.
func entity(name []byte) (rune, bool) {
	switch string(name) {
	case "amp":
		return '&', true
	case "lt":
		return '<', true
	case "gt":
		return '>', true
	case "quot":
		return '"', true
	case "apos":
		return '\'', true
	}
	digits, ok := strings.CutPrefix(string(name), "#")
	if !ok {
		return 0, false
	}
	base := 10
	if hexadecimal, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
		digits, base = hexadecimal, 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	return rune(n), err == nil && n <= utf8.MaxRune && n > 0
}

// maxListAttributes bounds how many attributes of one tag are read.
const maxListAttributes = 64

// attributes appends the first attributes of the current tag.
func attributes(t *Tokenizer, more bool, attrs []html.Attribute) []html.Attribute {
	for more && len(attrs) < maxListAttributes {
		var key, value []byte
		key, value, more = t.TagAttr()
		attrs = append(attrs, html.Attribute{Key: string(key), Val: string(value)})
	}
	return attrs
}
