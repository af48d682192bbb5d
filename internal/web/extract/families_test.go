package extract

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// family is a family of hostile texts of any size for one parser: each has n units.
type family struct {
	contentType string
	kind        ListKind // NotAList: an HTML document
	text        func(n int) string
}

// read has the parser read a text.
func (f *family) read(t testing.TB, text string) {
	t.Helper()
	base := mustParse(t, "http://site.test/dir/page")
	if f.kind != NotAList {
		SniffList(f.contentType, []byte(text), true)
		o := ListOptions{MaxItems: 1 << 30, MaxBytes: 1 << 40, Media: true}
		must.Get(ReadList(strings.NewReader(text), f.kind, f.contentType, base, o,
			func(Item) error { return nil }))(t)
		return
	}
	o := Options{MaxLinks: 1 << 30, MaxNodes: 500_000, MaxDepth: 512, MaxText: 1 << 30, Text: true, LinkText: true,
		Media: true, Forms: true}
	header := http.Header{"Content-Type": {f.contentType}}
	must.Get(HTML([]byte(text), header, base, []string{"amble"}, o))(t)
}

// count repeats a format with a number in it.
func count(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// families are the texts that took, or could take, a parser too much time or memory.
func families() map[string]family {
	repeat := strings.Repeat
	deep, flat := repeat("<span>", 400), repeat("<div>", 600)
	long := "http://site.test/" + repeat("long/", 300)
	all := make(map[string]family)
	page := func(name, contentType string, text func(n int) string) {
		all[name] = family{contentType: contentType, text: text}
		all[name+", deep down"] = family{contentType: contentType,
			text: func(n int) string { return flat + text(n) }}
	}
	const utf8 = "text/html; charset=utf-8"
	html := func(name, before, unit string) {
		page(name, utf8, func(n int) string { return before + repeat(unit, n) })
	}
	html("a tag in a tag", "", "<xxxx")
	html("a tag in a tag, with spaces", "", "<x ")
	html("a tag in quotes", "", `<a href="`)
	html("nothing but <", "", "<")
	html("end tags deep down", deep, "</p>")
	html("objects in tables", "<table>", "<object><tr>")
	html("misnested links", deep, "<a><div></a></div>")
	html("end tags of nothing", deep, "</x>")
	html("rules", deep, "<hr>")
	html("list items", "<ul>"+deep, "<li>")
	html("options", deep, "<option>")
	html("forms", deep, "<form></form>")
	html("buttons", deep, "<button></button>")
	html("end tags in SVG", "<svg>"+repeat("<g>", 400), "</x>")
	html("texts in a table", deep+"<table>", "x<br>")
	html("cells without a row", "<table>"+deep, "<td>")
	html("headings", deep, "</h1>")
	html("templates", repeat("<template>", 400), "<p></template><template>")
	html("templates in templates", "", "<template>")
	html("open paragraphs", "", "<p><button>")
	html("formatting elements around blocks", "", "<b><div></b>")
	html("ruby", "<ruby>"+deep, "<rt>")
	html("texts and comments", "", "x<!-- -->")
	html("texts in parts", "", "x</y>&amp;<")
	html("references", "", "<a href=/x>x</a>")
	html("references to a long base", "<base href="+long+">", "<a href=x>x</a>")
	html("refused references", "", "<a href=x:y>")
	html("references of many dots", "", "<a href="+repeat("../", 300)+">")
	html("hosts of many scripts", "", "<a href=http://"+repeat("ü.漢字.", 12)+"test/>")
	html("titles", "", "<title>x</title>")
	html("relations", "", "<link rel='a b c d e f g h next' href=/x>")
	html("directives", "",
		`<meta name=robots content="unavailable_after: x, unavailable_after: 2025-01-01, noindex, a, b, c">`)
	html("regions", "", "<div hidden><main role=main><nav><article>x</article></nav></main></div>")
	html("lines of code", "<pre>", "x \n \n")
	html("styles", "", "<p style='a b c d e f g h i j k l m n o p'>x")
	html("entities", "", "&amp;&x;&#x41;&notit;&")
	html("comments", "", "<!-- -- --!")
	page("a title", utf8, func(n int) string { return "<title>" + repeat("word ", n) + "</title>" })
	page("a title of one word", utf8, func(n int) string { return "<title>" + repeat("x", n) + "</title>" })
	page("a text", utf8, func(n int) string { return repeat("x \n", n) })
	page("a srcset", utf8, func(n int) string { return "<img srcset='" + repeat("a (,) 2x, ", n) + "'>" })
	page("a srcset of commas", utf8, func(n int) string { return "<img srcset='" + repeat(",", n) + "'>" })
	page("a refresh", utf8, func(n int) string {
		return "<meta http-equiv=refresh content='" + repeat("1", n) + repeat(" ", n) + ";url=x'>"
	})
	page("a relation", utf8, func(n int) string { return "<a href=x rel='" + repeat("x ", n) + "'>" })
	page("attributes", utf8, func(n int) string { return "<p " + count(n, "a%d ") + ">" })
	page("attributes of one name", utf8, func(n int) string { return "<p " + repeat("a ", n) + ">" })
	page("attributes, then attributes", utf8, func(n int) string {
		return "<p " + count(n, "a%d ") + ">" + repeat("<p a>", n)
	})
	page("attributes, then end tags", utf8, func(n int) string {
		return "<math><annotation-xml " + count(n, "a%d ") + ">" + repeat("</x>", n)
	})
	page("attributes of the body", utf8, func(n int) string { return count(n, "<body a%d>") })
	page("numbered references", utf8, func(n int) string { return count(n, "<a href=/%d>x</a>") })
	page("formatting elements", utf8, func(n int) string { return count(n, "<b id=%d>x</p><p>") })
	page("an encoding that nobody declared", "text/html",
		func(n int) string { return repeat("\xe4\xf6 \x81\xff<p>", n) })
	page("an encoding of escapes", "text/html; charset=iso-2022-jp",
		func(n int) string { return repeat("\x1b$B\x1b(B", n) })
	page("broken UTF-8", utf8, func(n int) string { return repeat("\xe2\x82<p>\xff", n) })
	page("declared in a declaration", "text/html",
		func(n int) string { return repeat("<meta charset=utf-7 charset='charset=", n) })

	list := func(name string, kind ListKind, before, unit, after string) {
		all[kind.String()+" of "+name] = family{contentType: "application/xml", kind: kind,
			text: func(n int) string { return before + repeat(unit, n) + after }}
	}
	for kind, item := range map[ListKind]string{ListSitemap: "url", ListRSS: "item", ListAtom: "entry"} {
		root := map[ListKind]string{ListSitemap: "<urlset>", ListRSS: "<rss>",
			ListAtom: `<feed xmlns="http://www.w3.org/2005/Atom">`}[kind]
		list("items", kind, root, "<"+item+"><loc>/a</loc><link>/a</link></"+item+">", "")
		list("dates", kind, root, "<"+item+"><lastmod>x</lastmod><pubDate>x</pubDate><updated>2</updated></"+item+">",
			"")
		list("tags in tags", kind, root, "<"+item, "")
		list("open items", kind, root, "<"+item+">", "")
		list("entities", kind, root+"<"+item+"><loc>", "&amp;&x", "</loc>")
		list("attributes", kind, root+"<"+item, " a=b", ">")
		list("alternates", kind, root+"<"+item+"><loc>/x</loc>", "<link rel=alternate href=/y /><enclosure url=/z />",
			"")
		list("bases", kind, root, "<"+item+" xml:base=a/><link href=x />", "")
		list("sections", kind, root+"<"+item+"><loc>", "<![CDATA[x]]>", "")
		list("comments", kind, "", "<!-- x -->", root)
		list("one comment", kind, "<!--", "-x", root)
	}
	list("lines", ListText, "", "http://site.test/a\n", "")
	list("one line", ListText, "", "x", "")
	list("empty lines", ListText, "", "\n", "")
	feed := `{"version": "https://jsonfeed.org/version/1.1", "items": [`
	list("items", ListJSON, feed, `{"url": "/a", "date_published": "x"},`, `{}]}`)
	list("empty items", ListJSON, feed, `{},`, `{}]}`)
	list("attachments", ListJSON, feed+`{"attachments": [`, `{"url": "/a"},`, `{}]}]}`)
	list("members", ListJSON, `{`, `"a": {}, "items": [],`, `"b": 1}`)
	list("arrays", ListJSON, `{"a":`, `[`, ``)
	list("escapes", ListJSON, `{"title": "`, `\ud800\n`, `"}`)
	all["a packed sitemap of items"] = family{contentType: "application/gzip", kind: ListSitemap,
		text: func(n int) string {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write([]byte("<urlset>" + repeat("<url><loc>/a</loc></url>", n)))
			_ = z.Close()
			return b.String()
		}}
	return all
}

// A text of twice the size takes at most two and a half times the memory, freed memory included.
func TestMemoryIsLinear(t *testing.T) {
	for name, f := range families() {
		once, twice := f.text(2000), f.text(4000)
		first, second := allocated(func() { f.read(t, once) }), allocated(func() { f.read(t, twice) })
		assert.AtMost(t, float64(second), 2.5*float64(first)+100_000, name, first, "bytes are allocated for", len(once),
			second, len(twice))
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
