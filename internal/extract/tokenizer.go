package extract

import (
	"bytes"
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxTag is the size of a tag, in bytes, after which the tokenizer is replaced.
const maxTag = 16 << 10

// Tokenizer is the tokenizer of golang.org/x/net in linear time. That one empties the table of
// attribute names before each tag, and the table never gets smaller: a tag with a million
// attributes would slow down every tag that follows.
type Tokenizer struct {
	*html.Tokenizer
	r      io.Reader
	maxBuf int
	cdata  bool
	renew  bool // replace the tokenizer before the next token
	behind bool // replace it after the next end tag, that of raw text: only this tokenizer knows its name
}

// NewTokenizer returns a tokenizer of text in UTF-8.
func NewTokenizer(r io.Reader) *Tokenizer { return &Tokenizer{Tokenizer: html.NewTokenizer(r), r: r} }

// Next moves to the next token.
func (t *Tokenizer) Next() html.TokenType {
	if t.renew {
		t.restart()
	}
	kind := t.Tokenizer.Next()
	switch kind {
	case html.StartTagToken, html.SelfClosingTagToken:
		if tag := t.Raw(); len(tag) > maxTag {
			t.behind = isRawText(tag)
			t.renew = !t.behind
		}
	case html.EndTagToken:
		t.renew, t.behind = t.behind, false
	}
	return kind
}

// restart goes on with a new tokenizer where the old one is.
func (t *Tokenizer) restart() {
	t.r = io.MultiReader(bytes.NewReader(bytes.Clone(t.Buffered())), t.r)
	t.Tokenizer = html.NewTokenizer(t.r)
	t.Tokenizer.SetMaxBuf(t.maxBuf)
	t.Tokenizer.AllowCDATA(t.cdata)
	t.renew = false
}

// SetMaxBuf bounds a token, in bytes; 0: it has no bound.
func (t *Tokenizer) SetMaxBuf(n int) {
	t.maxBuf = n
	t.Tokenizer.SetMaxBuf(n)
}

// AllowCDATA says whether CDATA sections are texts from here on, or comments.
func (t *Tokenizer) AllowCDATA(allow bool) {
	t.cdata = allow
	t.Tokenizer.AllowCDATA(allow)
}

// NextIsNotRawText says that the content of the element at hand is markup, whatever its name is.
func (t *Tokenizer) NextIsNotRawText() {
	t.renew, t.behind = t.renew || t.behind, false
	t.Tokenizer.NextIsNotRawText()
}

// name returns the lower-cased name of the tag at hand, as TagName does; but TagName makes a copy of
// each. It is valid until the next token.
func (t *Tokenizer) name() []byte {
	name := nameIn(t.Raw())
	for _, c := range name {
		if c == 0 || 'A' <= c && c <= 'Z' {
			name, _ = t.TagName()
			break
		}
	}
	return name
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

// isRawText reports whether what the element of a tag holds is not markup.
func isRawText(tag []byte) bool {
	a := atom.Lookup(bytes.ToLower(nameIn(tag)))
	return traitsOf(a)&rawText != 0 || a == atom.Noscript || a == atom.Plaintext
}
