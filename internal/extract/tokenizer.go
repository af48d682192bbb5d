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
	text    *textReader // r, if the whole text is in memory
	maxBuf  int
	cdata   bool
	replace bool // replace the tokenizer before the next token
	behind  bool // replace it after the next end tag of raw text, whose name only this tokenizer knows
}

// newTextTokenizer returns a tokenizer of a text in UTF-8 that is in memory. With pauses, skipText and
// skimRawText find more to leave out.
func newTextTokenizer(text []byte, pauses bool) *Tokenizer {
	r := &textReader{text: text, pauses: pauses}
	t := NewTokenizer(r)
	t.text = r
	return t
}

// textReader reads a text in memory.
type textReader struct {
	text   []byte
	at     int  // everything before it has been read
	pauses bool // a read ends behind a tag, where it can, and before a longer text
	most   int  // the longest piece that was requested at once, in bytes
}

// pauseText is the shortest text before which a read ends, in bytes. A read takes about as long as the
// tokenizer with so many of them.
const pauseText = 32

func (r *textReader) Read(p []byte) (int, error) {
	piece := r.text[r.at:min(r.at+len(p), len(r.text))]
	if r.pauses {
		piece = piece[:r.pause(piece, len(p))]
	}
	n := copy(p, piece)
	r.at += n
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// pause returns how much of a piece is read. The tokenizer requests less than before if it is within a
// token. Then the next text may be within the token too, and is no reason to read so little: the
// tokenizer copies the token at each read.
func (r *textReader) pause(piece []byte, wanted int) int {
	if wanted >= r.most {
		r.most = wanted
		for from := 0; from < len(piece); from++ {
			to := bytes.IndexByte(piece[from:], '<')
			if to < 0 {
				to = len(piece) - from
			}
			if to >= pauseText {
				if tag := bytes.IndexByte(piece[from:from+to], '>') + 1; 0 < tag && tag <= to-pauseText {
					return from + tag
				}
			}
			from += to
		}
	}
	if end := bytes.LastIndexByte(piece, '>') + 1; end > 0 {
		return end
	}
	return len(piece)
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
	t.replace, t.behind = t.replace || t.behind, false
	t.Tokenizer.NextIsNotRawText()
}

// skipText leaves out the text that comes next, because nobody reads it, if the tokenizer has not
// buffered any of it.
func (t *Tokenizer) skipText() {
	if t.replace || len(t.Buffered()) > 0 {
		return
	}
	rest := t.text.text[t.text.at:]
	if n := bytes.IndexByte(rest, '<'); n >= 0 {
		rest = rest[:n]
	}
	t.text.at += len(rest)
}

// skimRawText leaves out most of the text of a script or style that has just begun, because nobody
// reads it: what the tokenizer has not buffered yet. The tokenizer reads a byte at a time, and half
// of the bytes of a page of today are scripts and styles.
func (t *Tokenizer) skimRawText(a atom.Atom) {
	if t.text == nil || a != atom.Script && a != atom.Style {
		return
	}
	begin := t.text.at - len(t.Buffered())
	end := endOfRawText(t.text.text[begin:], a.String())
	if end < 0 || a == atom.Script && bytes.Contains(t.text.text[begin:begin+end], []byte("<!--")) {
		return // in such a comment, the first end tag need not be the end
	}
	t.text.at = max(t.text.at, begin+end)
}

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
