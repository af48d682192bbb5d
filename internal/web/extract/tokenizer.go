package extract

import (
	"bytes"
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxTag is the size of a tag, in bytes, after which the tokenizer is replaced.
const maxTag = 16 << 10

// Tokenizer is the tokenizer of golang.org/x/net in linear time. The original empties the table of attribute names
// before each tag, and the table never shrinks: a tag with a million attributes would slow down every later tag.
type Tokenizer struct {
	*html.Tokenizer
	r       io.Reader
	text    *textReader // r, if the whole text is in memory
	maxBuf  int
	cdata   bool
	replace bool   // replace the tokenizer before the next token that is no raw text
	raw     bool   // the next token may be raw text, whose end only this tokenizer knows
	tag     tag    // the current token, unless its text is nil: then the tokenizer has it
	lower   []byte // a name, if that has to be changed
}

// newTextTokenizer returns a tokenizer of a text in UTF-8 that is in memory. With tags, it reads
// most tags itself, and skipText and skimRawText find more to leave out. Then name and TagAttr are
// all that can be read of a tag, and an attribute may be repeated.
func newTextTokenizer(text []byte, tags bool) *Tokenizer {
	r := &textReader{text: text, tags: tags}
	t := NewTokenizer(r)
	t.text = r
	return t
}

// textReader reads a text in memory.
type textReader struct {
	text   []byte
	at     int  // everything before it has been read
	tags   bool // the tokenizer should not buffer the tags behind the token that it reads
	begins bool // the tokenizer has read nothing since it began this token
}

func (r *textReader) Read(p []byte) (int, error) {
	piece := r.text[r.at:min(r.at+len(p), len(r.text))]
	if r.tags && r.begins { // once a token: the tokenizer copies the token at each read
		r.begins = false
		if end := bytes.IndexByte(piece, '>') + 1; end > 0 {
			piece = piece[:end]
		}
	}
	n := copy(p, piece)
	r.at += n
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// NewTokenizer returns a tokenizer of text in UTF-8.
func NewTokenizer(r io.Reader) *Tokenizer { return &Tokenizer{Tokenizer: html.NewTokenizer(r), r: r} }

// Next moves to the next token.
func (t *Tokenizer) Next() html.TokenType {
	if t.replace && !t.raw {
		t.restart()
	}
	if t.text != nil && t.text.tags && !t.raw && len(t.Buffered()) == 0 {
		if kind := t.tag.read(t.text.text[t.text.at:]); kind != html.ErrorToken {
			t.text.at += len(t.tag.text)
			return kind
		}
	}
	return t.next()
}

// next moves to the next token with the original tokenizer.
func (t *Tokenizer) next() html.TokenType {
	t.tag.text, t.raw = nil, false
	if t.text != nil {
		t.text.begins = true
	}
	kind := t.Tokenizer.Next()
	if kind == html.StartTagToken || kind == html.SelfClosingTagToken {
		t.raw = isRawText(t.name())
		t.replace = t.replace || len(t.Raw()) > maxTag
	}
	return kind
}

// restart continues with a new tokenizer at the offset of the old one.
func (t *Tokenizer) restart() {
	if t.text != nil {
		t.text.at -= len(t.Buffered())
	} else {
		t.r = io.MultiReader(bytes.NewReader(bytes.Clone(t.Buffered())), t.r)
	}
	t.Tokenizer = html.NewTokenizer(t.r)
	t.Tokenizer.SetMaxBuf(t.maxBuf)
	t.Tokenizer.AllowCDATA(t.cdata)
	t.replace = false
}

// SetMaxBuf bounds a token, in bytes; 0: it has no bound.
func (t *Tokenizer) SetMaxBuf(n int) {
	t.maxBuf = n
	t.Tokenizer.SetMaxBuf(n)
}

// AllowCDATA sets whether CDATA sections are texts from here on, or comments.
func (t *Tokenizer) AllowCDATA(allow bool) {
	t.cdata = allow
	t.Tokenizer.AllowCDATA(allow)
}

// NextIsNotRawText says that the content of the current element is markup, whatever its name is.
func (t *Tokenizer) NextIsNotRawText() {
	t.raw = false
	t.Tokenizer.NextIsNotRawText()
}

// skipText leaves out the text that comes next, because nobody reads it, if the tokenizer has not
// buffered any of it. onlySpace means that nobody reads it if it is white space.
func (t *Tokenizer) skipText(onlySpace bool) {
	if len(t.Buffered()) > 0 {
		return
	}
	rest := t.text.text[t.text.at:]
	if n := bytes.IndexByte(rest, '<'); n >= 0 {
		rest = rest[:n]
	}
	if !onlySpace || len(bytes.Trim(rest, space)) == 0 {
		t.text.at += len(rest)
	}
}

// skimRawText leaves out most of the text of a script or style that has just begun, because nobody
// reads it: what the tokenizer has not buffered yet. The tokenizer reads a byte at a time, and half
// of the bytes of a page of today are scripts and styles.
func (t *Tokenizer) skimRawText(a atom.Atom) {
	if t.text == nil || a != atom.Script && a != atom.Style {
		return
	}
	rest := t.rest()
	end := endOfRawText(rest, a.String())
	if end < 0 || a == atom.Script && bytes.Contains(rest[:end], []byte("<!--")) {
		return // in such a comment, the first end tag need not be the end
	}
	t.text.at = max(t.text.at, len(t.text.text)-len(rest)+end)
}

// rest returns the text behind the current token.
func (t *Tokenizer) rest() []byte { return t.text.text[t.text.at-len(t.Buffered()):] }

// endOfRawText returns the index of what may be the first end tag with a name; -1: there is none.
// The tokenizer decides whether it is one.
func endOfRawText(text []byte, name string) int {
	for i := 0; ; i += 2 {
		n := bytes.Index(text[i:], []byte("</"))
		if n < 0 {
			return -1
		}
		i += n
		if tag := text[i+2:]; len(tag) > len(name) && bytes.EqualFold(tag[:len(name)], []byte(name)) {
			return i
		}
	}
}

// name returns the lower-cased name of the current tag, as TagName does. It is valid until the next token.
func (t *Tokenizer) name() []byte {
	if t.tag.text != nil {
		return t.tag.name
	}
	name := nameIn(t.Raw())
	if isLower(name) {
		return name
	}
	t.lower = appendLower(t.lower[:0], name)
	return t.lower
}

// TagAttr returns the next attribute of the current tag. The key is empty if there is none.
func (t *Tokenizer) TagAttr() (key, value []byte, more bool) {
	if t.tag.text != nil && t.tag.isCoded() {
		t.text.at -= len(t.tag.text)
		t.next() // the same tag
	}
	if t.tag.text == nil {
		return t.Tokenizer.TagAttr()
	}
	return t.tag.attribute()
}
