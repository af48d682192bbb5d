package extract

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// A text is cut at its bound wherever a word, a space or a character ends.
func TestCollapse(t *testing.T) {
	for _, text := range []string{"", "a", " aa  b ", "aaaa b", "aaa bb c", "ü ü ü", "aü üb", "  \n\t ", "aaaaaaaaaaaa",
		"日本 語"} {
		whole := strings.Join(strings.Fields(text), " ")
		for n := range 12 {
			got := collapse(text, n)
			assert.True(t, len(got) <= n && utf8.ValidString(got) && strings.HasPrefix(whole, got) &&
				strings.TrimSpace(got) == got, "%q cut to %d bytes is %q", text, n, got)
			assert.AtMost(t, min(n, len(whole))-len(got), utf8.UTFMax-1, text, "cut to", n, "bytes is", got,
				"bytes less than there is room for")
		}
	}
}

// Titles, link texts and relations are cut at their bounds, with words that end at, before and
// behind each of these.
func TestTextsAreCutAnywhere(t *testing.T) {
	for _, bound := range []int{maxTitleBytes, maxLinkText} {
		for length := bound - 3; length <= bound+3; length++ {
			for _, rest := range []string{"", " b", " b c", "  ü", "ü", " " + strings.Repeat("b", bound)} {
				text := strings.Repeat("a", length) + rest
				page := fmt.Sprintf(
					`<title>%s</title><a href=/x rel="%[1]s">%[1]s</a><area href=/y alt="%[1]s"><img alt="%[1]s">`,
					text)
				for _, p := range []Page{readText(t, page, bound),
					readText(t, page+strings.Repeat("<div>", 600), bound)} {
					assert.Equal(t, p.Title, collapse(text, maxTitleBytes), length, "bytes and", rest, "title of",
						len(p.Title), "bytes")
					assert.True(t, len(p.Links[0].Rel) <= maxLinkText && len(p.Links[1].Text) <= maxLinkText &&
						len(p.Links[0].Text) <= maxLinkText && len(p.Text) <= bound,
						"%d bytes and %q: a text is too long", length, rest)
				}
			}
		}
	}
}

// Lower case can be longer than upper case.
func TestRelationsThatGrow(t *testing.T) {
	p := readText(t, `<a href=/x rel="`+strings.Repeat("Ⱥ", maxLinkText/2)+`">x</a>`, 100)
	if rel := p.Links[0].Rel; len(rel) > maxLinkText || !utf8.ValidString(rel) || len(rel) < maxLinkText-2 {
		t.Errorf("a relation of %d bytes", len(rel))
	}
}
