package extract

import (
	"bytes"
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxTag is the size of a tag, in bytes, after which the tokenizer is replaced.
const maxTag = 16 << 10

// Tokenizer is the tokenizer of golang.org/x/net in linear time. The original empties the table of
// attribute names before each tag, and the table never shrinks: a tag with a million attributes
// would slow down every later tag.
type Tokenizer struct {
	*html.Tokenizer
	r       io.Reader
	maxBuf  int
	cdata   bool
	replace bool // replace the tokenizer before the next token
	behind  bool // replace it after the next end tag of raw text, whose name only this tokenizer knows
}

// NewTokenizer returns a tokenizer of text in UTF-8.
func NewTokenizer(r io.Reader) *Tokenizer { return &Tokenizer{Tokenizer: html.NewTokenizer(r), r: r} }

// Next moves to the next token.
func (t *Tokenizer) Next() html.TokenType {
	if t.replace {
		t.restart()
	}
	kind := t.Tokenizer.Next()
	switch kind {
	case html.StartTagToken, html.SelfClosingTagToken:
		if tag := t.Raw(); len(tag) > maxTag {
			t.behind = isRawText(tag)
			t.replace = !t.behind
		}
	case html.EndTagToken:
		t.replace, t.behind = t.behind, false
	}
	return kind
}

// restart continues with a new tokenizer at the offset of the old one.
func (t *Tokenizer) restart() {
	t.r = io.MultiReader(bytes.NewReader(bytes.Clone(t.Buffered())), t.r)
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
	t.replace, t.behind = t.replace || t.behind, false
	t.Tokenizer.NextIsNotRawText()
}

// name returns the lower-cased name of the current tag, as TagName does, without a copy. It is
// valid until the next token.
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

// isRawText reports whether the content of a tag's element is not markup.
func isRawText(tag []byte) bool {
	a := atom.Lookup(bytes.ToLower(nameIn(tag)))
	return traitsOf(a)&rawText != 0 || a == atom.Noscript || a == atom.Plaintext
}
