package extract

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// Each of these has defeated a parser somewhere: by stack, memory or quadratic time.
// TestMemoryIsLinear and TestSoakWorkIsLinear count their cost; here they are as large as a page
// may be.
func TestHostileDocuments(t *testing.T) {
	link := `<a href="/found">x</a>`
	huge := 10 << 20 // of the documents that take longest
	if raceDetector {
		huge /= 4
	}
	tests := []struct {
		name, text string
		links      int // at least
	}{
		{"100,000 nested tags", link + strings.Repeat("<div>", 100_000) + `<a href="/deep">`, 2},
		{"100,000 nested spans, closed", link + strings.Repeat("<span>", 100_000) +
			strings.Repeat("</span>", 100_000), 1},
		{"100,000 nested tables", link + strings.Repeat("<table><tr><td>", 100_000), 1},
		{"100,000 nested formatting elements", link + count(100_000, "<b id=%d>"), 1},
		{"reopened in every block", link + "<p>" + count(400, "<b id=%d>") + "</p>" + strings.Repeat("<p>x", huge/20),
			1},
		{"reopened with attributes", link + "<p>" + strings.Repeat("<b "+count(300, "a%d ")+">", 3) + "</p>" +
			strings.Repeat("<p>x", 200_000), 1},
		{"many body tags", link + count(huge/32, "<body a%d>"), 1},
		{"a tag with many attributes, then many tags", link + "<div " + count(huge/20, "a%d ") + ">" +
			strings.Repeat("<i a>", huge/25), 1},
		{"100,000 links", count(100_000, "<a href=/%d>x</a>"), 10_000},
		{"a huge attribute", `<a title="` + strings.Repeat("x", huge) + `" href="/found">x</a>`, 1},
		{"a huge reference", link + `<a href="/` + strings.Repeat("x", huge) + `">x</a>`, 1},
		{"many refused references", link + strings.Repeat(`<a href="x:y">`, huge/15), 1},
		{"unclosed comment", link + "<!--" + strings.Repeat("-<a href=x>", huge/20), 1},
		{"unclosed quotes", link + strings.Repeat(`<a href="`, huge/20), 1},
		{"NULs", link + strings.Repeat("\x00", 1<<20) + "<a href='/b\x00c'>", 1},
		{"misnested formatting", link + strings.Repeat("<a><b><div></a></b>", 100_000), 1},
		{"open anchors in tables", link + strings.Repeat("<table><a href=/t>", 50_000), 2},
		{"nothing but <", link + strings.Repeat("<", huge/2), 1},
		{"selects", link + strings.Repeat("<select><option>", huge/50), 1},
		{"svg in math in svg", link + strings.Repeat("<svg><desc><math><mi>", 50_000), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p Page
			bytes := allocated(func() { p = read(t, tt.text) })
			assert.AtLeast(t, len(p.Links), tt.links, "links")
			assert.AtMost(t, bytes, 1<<30, bytes>>20, "MiB allocated for", len(tt.text)>>20, "MiB of text")
		})
	}
}
