package extract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
)

// benchPage is an article page as they are: navigation, paragraphs with links,
// lists, a table, scripts.
func benchPage(paragraphs int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the crawler asks a host for one page and waits as long as the host likes before it asks again")
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page about pages</title>\n" +
		"<link rel=\"stylesheet\" href=\"/style.css\"><link rel=canonical href=\"/page\"><script>if (1 < 2) { run('<b>'); }</script></head><body>\n<nav><ul>")
	for i := range 20 {
		fmt.Fprintf(&b, "<li class=\"nav-item\"><a class=\"nav-link\" href=\"/section/%d\">Section %d</a></li>\n", i, i)
	}
	b.WriteString("</ul></nav><main>")
	for i := range paragraphs {
		fmt.Fprintf(&b, "<h2 id=\"s%d\">Heading %d</h2>\n<p>", i, i)
		for w := range 60 {
			word := words[rnd.IntN(len(words))]
			switch {
			case w%20 == 7:
				fmt.Fprintf(&b, "<a href=\"/article/%d/%s.html\" title=\"Read on\">%s</a> ", rnd.IntN(5000), word, word)
			case w%20 == 13:
				fmt.Fprintf(&b, "<em>%s</em> ", word)
			default:
				b.WriteString(word + " ")
			}
		}
		b.WriteString("</p>\n<div class=\"figure\"><img src=\"/i.png\" alt=\"An image\"><br></div>\n")
	}
	b.WriteString("<table>")
	for i := range paragraphs {
		fmt.Fprintf(&b, "<tr><td>%d</td><td><a href=\"https://other.example/item?id=%d\">Item</a></td></tr>\n", i, i)
	}
	b.WriteString("</table></main></body></html>")
	return []byte(b.String())
}

// BenchmarkHTML compares HTML with what any crawler in Go would do at least.
func BenchmarkHTML(b *testing.B) {
	base := mustParse(b, "https://example.com/dir/page")
	for _, paragraphs := range []int{5, 40, 400} {
		page := benchPage(paragraphs)
		name := fmt.Sprintf("bytes=%d/", len(page))
		b.Run(name+"bare", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				doc, err := goquery.NewDocumentFromReader(bytes.NewReader(page))
				if err != nil {
					b.Fatal(err)
				}
				if doc.Find("a[href]").Length() == 0 {
					b.Fatal("no links")
				}
			}
		})
		b.Run(name+"ours", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				p, err := HTML(page, typed("text/html; charset=utf-8"), base, []string{"amble"}, DefaultOptions())
				if err != nil || len(p.Links) == 0 {
					b.Fatal(err, len(p.Links))
				}
			}
		})
	}
}
