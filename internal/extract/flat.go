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
			if inTitle {
				c.setTitle(string(z.Text()))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if atom.Lookup(name) == atom.Template && templates > 0 {
				templates--
			}
			inTitle = false
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			a := atom.Lookup(name)
			inTitle = a == atom.Title
			switch {
			case a == atom.Template:
				if attrs = tagAttributes(z, more, attrs[:0]); templates > 0 || attribute(attrs, "shadowrootmode") == "" {
					templates++
				}
			case templates == 0 && wanted(a):
				attrs = tagAttributes(z, more, attrs[:0])
				c.element(a, attrs)
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
