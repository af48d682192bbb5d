package extract

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/amble-crawler/amble/internal/htmltree"
)

// maxFlatAttributes bounds the attributes that are looked at of one tag.
const maxFlatAttributes = 64

// readFlat hands the elements to the collector as their tags come, without a
// tree: for documents whose tree would be too large or too deep.
func (c *collector) readFlat(text []byte) {
	f := flatReader{collector: c, Tokenizer: htmltree.NewTokenizer(bytes.NewReader(text))}
	for {
		switch f.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			f.text()
		case html.EndTagToken:
			f.end()
		case html.StartTagToken, html.SelfClosingTagToken:
			f.start()
		}
	}
}

// flatReader reads one document without a tree.
type flatReader struct {
	*collector
	*htmltree.Tokenizer
	templates int // open templates whose content is inert
	inTitle   bool
	attrs     []html.Attribute
}

func (f *flatReader) text() {
	prose := f.prose != nil && f.templates == 0
	if !f.inTitle && !prose {
		return
	}
	text := string(f.Text())
	if f.inTitle {
		f.setTitle(text)
	}
	if prose {
		f.prose.write(text)
	}
}

func (f *flatReader) end() {
	name, _ := f.TagName()
	a := atom.Lookup(name)
	f.inTitle = false
	if a == atom.Template && f.templates > 0 {
		f.templates--
	} else if f.prose != nil && f.templates == 0 {
		f.prose.close(a, &f.p)
	}
}

func (f *flatReader) start() {
	name, more := f.TagName()
	a := atom.Lookup(name)
	f.inTitle = a == atom.Title
	if a == atom.Noscript {
		f.NextIsNotRawText()
	}
	switch {
	case a == atom.Template:
		if f.attrs = attributes(f.Tokenizer, more, f.attrs[:0]); f.templates > 0 ||
			attribute(f.attrs, "shadowrootmode") == "" {
			f.templates++
		}
	case f.templates == 0 && (f.wanted(a) || f.prose != nil):
		f.attrs = attributes(f.Tokenizer, more, f.attrs[:0])
		f.latest = -1
		if f.wanted(a) {
			f.element(a, f.attrs)
		}
		if f.prose != nil {
			f.begin(a, f.attrs)
			if isVoid(a) {
				f.prose.close(a, &f.p)
			}
		}
	}
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

// attributes appends the first attributes of the tag at hand.
func attributes(t *htmltree.Tokenizer, more bool, attrs []html.Attribute) []html.Attribute {
	for more && len(attrs) < maxFlatAttributes {
		var key, value []byte
		key, value, more = t.TagAttr()
		attrs = append(attrs, html.Attribute{Key: string(key), Val: string(value)})
	}
	return attrs
}
