package extract

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestScanTagAgreesWithTheTokenizer(t *testing.T) {
	for _, tag := range []string{
		`>`, ` >`, ` a>`, ` a=b>`, ` a="b>c">`, ` a='b"c' d>`, ` a = "x" b>`, `/>`, ` a/>`, ` a=/>`, ` ==">">`, ` "a">`,
		` a=b"c>`, ` a="b"c="d">`, ` a=>`, ` a / b>`, ` ='>'>`, `<x>`, `=a b>`,
	} {
		z := html.NewTokenizer(strings.NewReader("<b" + tag + "rest"))
		z.Next()
		end, most := scanTag([]byte("<b"+tag+"rest"), 1)
		raw := string(z.Raw())
		assert.True(t, end == most && end+1 == len(raw), "%q: it ends at %d, the tokenizer says %q", tag, end, raw)
	}
	end, most := scanTag([]byte("<b a b"), 1)
	assert.True(t, end == 6 && most == 6, "a tag without an end: %d, %d", end, most)
}

// The first attributes of a tag with very many count, and everything behind the tag.
func TestTagsWithVeryManyAttributes(t *testing.T) {
	many := count(1<<18, " a%d=1")
	text := "<a href=/first" + many + ">x</a><script>'<b" + many + "'</script><a href=/second>y</a><p" + many +
		"><a title='" + strings.Repeat(">", 1<<20) + "' href=/third>"
	var p Page
	bytes := allocated(func() { p = read(t, text) })
	assert.Equal(t, strings.Join(show(p), ", "), "anchor /first, anchor /second, anchor /third", "links")
	assert.AtMost(t, bytes, 120<<20, bytes>>20, "MiB are allocated for", len(text)>>20, "MiB of text")
	small := []byte("<p" + count(1000, " a%d") + ">")
	assert.Equal(t, len(fewAttributes(small)), len(small), "a usual document is changed")
	large := []byte(strings.Repeat("<p a b=c d='>' e>x</p> <", fewFrom/10))
	assert.Equal(t, string(fewAttributes(large)), string(large), "a large document is changed")
}
