package extract

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// tagSeeds are tags in which each state of the tokenizer occurs.
func tagSeeds() []string {
	return []string{
		`<b>`, `<b >`, `<b a>`, `<b a=b>`, `<b a="b>c" D>`, `<b a='b"c' d>`, `<b a = "x" b>`, `<b/>`,
		`<b a/>`, `<b a=/>`,
		`<b a=x/>`, `<b a=x />`, `<b a=x a=/>`, `<b ==">">`, `<b "a">`, `<b a=b"c>`, `<b a="b"c="d">`, `<b a=>`,
		`<b a / b>`, `<b ='>'>`, `<b<x>`, `<b=a b>`, `<b a=1 A=2 a=3>`, `<b a="x&amp;y&copy=1" b=&lt>`,
		"<b a='x\r\ny' \rb>",
		"<b\x00X a\x00=\x00>", `<B HREF=X Rel=Y>`, `</b a="x>y">`, `</B/>`, `</>`, `</ b>`, `<b a="`, `<b a='>`,
		`<b a=`, `<b`,
		`</b`, `<`, `</`, `<!b>`, `<?b>`, `<a><b c><i/></i>x<u></u></b>`, `<title><b></title><b>`,
		`<TITLE/><b></tItle ><b>`,
		`<script><b></script><b><style></style><b>`, `<textarea a=">"><b></textarea></textarea>`, `<plaintext><b></b>`,
		`<b><!-- > --><b>`, `<iframe><b></iframe><noscript><b></noscript>`, `<b a="` + "\u0130\u212a" + `" ` +
			"\u212a=1>",
	}
}

// token describes a token. Of repeated attributes it has the first.
func token(kind html.TokenType, text, name func() []byte, attribute func() (key, value []byte, more bool)) string {
	switch kind {
	case html.EndTagToken:
		return fmt.Sprintf("%v %q", kind, name())
	case html.StartTagToken, html.SelfClosingTagToken:
		s, seen := fmt.Sprintf("%v %q", kind, name()), map[string]bool{}
		for more := true; more; {
			var key, value []byte
			if key, value, more = attribute(); len(key) > 0 && !seen[string(key)] {
				seen[string(key)] = true
				s += fmt.Sprintf(" %q=%q", key, value)
			}
		}
		return s
	}
	return fmt.Sprintf("%v %q", kind, text())
}

// agreeOnTokens fails unless a text has the tokens that html.Tokenizer finds. It returns how many
// tags were read without that.
func agreeOnTokens(t *testing.T, text []byte) (own int) {
	t.Helper()
	var got, want []string
	o := newTextTokenizer(text, true)
	for kind := o.Next(); kind != html.ErrorToken; kind = o.Next() {
		if o.tag.text != nil {
			own++
		}
		got = append(got, token(kind, o.Text, o.name, o.TagAttr))
	}
	z := html.NewTokenizer(bytes.NewReader(text))
	name := func() []byte { name, _ := z.TagName(); return name }
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		want = append(want, token(kind, z.Text, name, z.TagAttr))
	}
	assert.Slice(t, got, want, text)
	return own
}

func TestTagsAgreeWithTheTokenizer(t *testing.T) {
	own := 0
	for _, text := range tagSeeds() {
		own += agreeOnTokens(t, []byte(text))
		own += agreeOnTokens(t, []byte("<i>"+text+"<i a>x"))
	}
	assert.AtLeast(t, own, 100, "only tags were read without html.Tokenizer")
}

func FuzzTagsAgreeWithTheTokenizer(f *testing.F) {
	for _, seed := range tagSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		agreeOnTokens(t, text)
		agreeOnTokens(t, slices.Concat([]byte("<b "), text, []byte("><b>")))
	})
}

// A repeated attribute takes no memory: html.Tokenizer leaves it out, and so does the tree.
func TestRepeatedAttributesAreLeftOut(t *testing.T) {
	text := "<html lang=en LANG=de" + strings.Repeat(" lang=x", 1000) + ">"
	b := buildTree([]byte(text), DefaultOptions(), false)
	attrs := b.document.Attr
	assert.True(t, len(attrs) == 1 && attrs[0].Val == "en", "%d attributes: %.200v", len(attrs), attrs)
	if b = buildTree([]byte("<p><a"+text[len("<html"):]), DefaultOptions(),
		false); len(b.body.node.FirstChild.Attr) != 1 {
		t.Errorf("%d attributes", len(b.body.node.FirstChild.Attr))
	}
}
