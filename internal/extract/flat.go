package extract

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxFlatAttributes bounds the attributes that are looked at of one tag.
const maxFlatAttributes = 64

// readFlat hands the elements to the collector as their tags come, without a
// tree: for documents whose tree would be too large or too deep.
func (c *collector) readFlat(text []byte) {
	z := html.NewTokenizer(bytes.NewReader(text))
	templates := 0 // open templates whose content is inert
	inTitle := false
	var attrs []html.Attribute
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			if inTitle || c.prose != nil && templates == 0 {
				text := string(z.Text())
				if inTitle {
					c.setTitle(text)
				}
				if c.prose != nil && templates == 0 {
					c.prose.write(text)
				}
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			if a == atom.Template && templates > 0 {
				templates--
			} else if c.prose != nil && templates == 0 {
				c.prose.close(a, &c.p)
			}
			inTitle = false
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			a := atom.Lookup(name)
			inTitle = a == atom.Title
			if a == atom.Noscript {
				z.NextIsNotRawText()
			}
			switch {
			case a == atom.Template:
				if attrs = tagAttributes(z, more, attrs[:0]); templates > 0 || attribute(attrs, "shadowrootmode") == "" {
					templates++
				}
			case templates == 0 && (c.wanted(a) || c.prose != nil):
				attrs = tagAttributes(z, more, attrs[:0])
				c.latest = -1
				if c.wanted(a) {
					c.element(a, attrs)
				}
				if c.prose != nil {
					c.begin(a, attrs)
					if isVoid(a) {
						c.prose.close(a, &c.p)
					}
				}
			}
		}
	}
}

// tagAttributes appends the attributes of the tag at hand.
func tagAttributes(z *html.Tokenizer, more bool, attrs []html.Attribute) []html.Attribute {
	for more && len(attrs) < maxFlatAttributes {
		var key, value []byte
		key, value, more = z.TagAttr()
		attrs = append(attrs, html.Attribute{Key: string(key), Val: string(value)})
	}
	return attrs
}

// isVoid reports whether an element has no content and no end tag.
func isVoid(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Param,
		atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}
