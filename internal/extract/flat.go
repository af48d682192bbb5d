package extract

import (
	"bytes"
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxFlatAttributes bounds the attributes that are looked at of one tag.
const maxFlatAttributes = 64

// readFlat hands the elements to the collector as their tags come, without a
// tree: for documents whose tree would be too large or too deep.
func (c *collector) readFlat(text []byte) {
	f := flatReader{collector: c, tags: newTags(bytes.NewReader(text))}
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
	*tags
	templates int // open templates whose content is inert
	inTitle   bool
	later     bool // the tokenizer is to be made anew behind the text of a script or the like, whose end only it knows
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
	f.large, f.later = f.later, false
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
	if f.large && isRawText(a) {
		f.large, f.later = false, true
	}
	if a == atom.Noscript {
		f.NextIsNotRawText()
	}
	switch {
	case a == atom.Template:
		if f.attrs = f.attributes(more, f.attrs[:0]); f.templates > 0 || attribute(f.attrs, "shadowrootmode") == "" {
			f.templates++
		}
	case f.templates == 0 && (f.wanted(a) || f.prose != nil):
		f.attrs = f.attributes(more, f.attrs[:0])
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

// isRawText reports whether what an element holds is not markup.
func isRawText(a atom.Atom) bool {
	switch a {
	case atom.Iframe, atom.Noembed, atom.Noframes, atom.Script, atom.Style, atom.Textarea, atom.Title, atom.Xmp, atom.Plaintext:
		return true
	}
	return false
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

// maxTag is the size of a tag, in bytes, behind which the tokenizer is made anew.
const maxTag = 16 << 10

// tags is a tokenizer whose time is linear. That of x/net empties the table of attribute names before each tag, and the table never
// gets smaller: a tag with a million attributes would slow down every tag that follows.
type tags struct {
	*html.Tokenizer
	r     io.Reader
	limit int // of a token, in bytes; 0: none
	large bool
}

func newTags(r io.Reader) *tags { return &tags{Tokenizer: html.NewTokenizer(r), r: r} }

// Next moves to the next token.
func (t *tags) Next() html.TokenType {
	if t.large {
		t.r = io.MultiReader(bytes.NewReader(bytes.Clone(t.Buffered())), t.r)
		t.Tokenizer = html.NewTokenizer(t.r)
		t.SetMaxBuf(t.limit)
		t.AllowCDATA(t.limit > 0)
	}
	kind := t.Tokenizer.Next()
	t.large = (kind == html.StartTagToken || kind == html.SelfClosingTagToken) && len(t.Raw()) > maxTag
	return kind
}

// attributes appends the attributes of the tag at hand.
func (t *tags) attributes(more bool, attrs []html.Attribute) []html.Attribute {
	for more && len(attrs) < maxFlatAttributes {
		var key, value []byte
		key, value, more = t.TagAttr()
		attrs = append(attrs, html.Attribute{Key: string(key), Val: string(value)})
	}
	return attrs
}
