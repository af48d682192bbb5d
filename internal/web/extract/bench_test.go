package extract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// benchPage is a typical article page: navigation, paragraphs with links, lists, a table, scripts.
func benchPage(paragraphs int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields(
		"the crawler fetches one page of a host and waits as long as the host likes before it fetches again")
	var b strings.Builder
	b.WriteString(
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page about pages</title>\n" +
			"<link rel=\"stylesheet\" href=\"/style.css\"><link rel=canonical href=\"/page\"><script>if (1 < 2) { " +
			"run('<b>'); }</script></head><body>\n<nav><ul>")
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

// bare does the least that any crawler in Go would do.
func bare(b *testing.B, page []byte) {
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(page))
	must.True(b, err == nil && doc.Find("a[href]").Length() != 0, "no links %v", err)
}

// BenchmarkHTML compares HTML with bare. The benchmark "paired" runs both in turn, so that other
// work on the machine affects them alike, and reports the speed of HTML as a share of that of bare:
// the quotient of the medians.
func BenchmarkHTML(b *testing.B) {
	base := mustParse(b, "https://example.com/dir/page")
	full := DefaultOptions()
	full.Text, full.LinkText, full.Media = true, true, true
	ours := func(b *testing.B, page []byte, o Options) {
		p, err := HTML(page, typed("text/html; charset=utf-8"), base, []string{"amble"}, o)
		must.True(b, err == nil && len(p.Links) != 0, "%v %v", err, len(p.Links))
	}
	for _, paragraphs := range []int{5, 40, 400} {
		page := benchPage(paragraphs)
		name := fmt.Sprintf("bytes=%d/", len(page))
		run := func(what string, f func(b *testing.B)) {
			b.Run(name+what, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(page)))
				for b.Loop() {
					f(b)
				}
			})
		}
		run("bare", func(b *testing.B) { bare(b, page) })
		run("ours", func(b *testing.B) { ours(b, page, DefaultOptions()) })
		run("everything", func(b *testing.B) { ours(b, page, full) })
		b.Run(name+"paired", func(b *testing.B) {
			var theirs, own []time.Duration
			for b.Loop() {
				begun := time.Now()
				bare(b, page)
				half := time.Now()
				ours(b, page, DefaultOptions())
				theirs, own = append(theirs, half.Sub(begun)), append(own, time.Since(half))
			}
			b.ReportMetric(float64(median(theirs))/float64(median(own)), "of-bare")
		})
	}
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// BenchmarkSitemap reads a sitemap of the size that sitemaps.org allows.
func BenchmarkSitemap(b *testing.B) {
	base := mustParse(b, "https://example.com/sitemap.xml")
	var text strings.Builder
	text.WriteString(urlset)
	for i := range 50_000 {
		fmt.Fprintf(&text,
			"<url><loc>https://example.com/article/%d/some-words-of-its-title</loc><lastmod>2026-11-20T10:00:00Z</lastmod><priority>0.8</priority></url>\n", i)
	}
	text.WriteString("</urlset>")
	b.Run("urls=50000", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(text.Len()))
		for b.Loop() {
			list, err := ReadList(strings.NewReader(text.String()), ListSitemap, "application/xml", base,
				DefaultListOptions(),
				func(Item) error { return nil })
			must.True(b, err == nil && list.Items == 50_000, "%v %v", err, list)
		}
	})
}
