package requisites

import (
	"fmt"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

func mustParse(t testing.TB, text string) weburl.URL {
	t.Helper()
	return must.Get(weburl.Parse(text))(t)
}

// found returns what a document is made of, a URL of its site by its path; "+" in front: it leads to more.
func found(t testing.TB, text, contentType, from string, most int) (all []string) {
	t.Helper()
	list, left := Find([]byte(text), contentType, mustParse(t, from), most)
	assert.True(t, left <= 0 || len(list) >= most, "%d are left out, of %d", left, len(list))
	for _, r := range list {
		name := strings.TrimPrefix(r.URL.String(), "https://site.test")
		if r.Leads {
			name = "+" + name
		}
		all = append(all, name)
	}
	return all
}

// TestManyReferences: only what refers to something counts for the bound of references, each once, and what is beyond
// the bound is left out, not forgotten.
func TestManyReferences(t *testing.T) {
	const image = `<img src=last.png>`
	for _, test := range []struct {
		name, text string
		found      string
		left       int
	}{
		{"elements", strings.Repeat("<p>text</p>", 2*maxReferences) + image, "/last.png", 0},
		{"the same one", strings.Repeat("<img src=a.png>", 2*maxReferences) + image, "/a.png", 1},
		{"the same one, by another base", "<img src=/a.png><base href=/to/>" +
			strings.Repeat("<img src=../a.png>", 2*maxReferences), "/a.png", 0},
		{"a word that is another URL by another base", "<img src=a.png><base href=/to/><img src=a.png>", "/a.png", 1},
	} {
		list, left := Find([]byte(test.text), "text/html", mustParse(t, "https://site.test/"), 1)
		must.True(t, len(list) == 1, "%s: %v", test.name, list)
		got := strings.TrimPrefix(list[0].URL.String(), "https://site.test")
		assert.True(t, got == test.found && left == test.left, "%s: %s, and %d are left out", test.name, got, left)
	}
	var b strings.Builder
	for i := range maxReferences + 1000 {
		fmt.Fprintf(&b, "<img src=%d.png>", i)
	}
	list, left := Find([]byte(b.String()), "text/html", mustParse(t, "https://site.test/"), 200)
	assert.True(t, len(list) == 200 && left == maxReferences+800, "%d are found, %d left out", len(list), left)
}

func TestPage(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"style sheet", `<link rel="StyleSheet" href=a.css>`, "+/dir/a.css"},
		{"alternate style sheet", `<link rel="alternate stylesheet" href=a.css>`, "+/dir/a.css"},
		{"other relations", `<link rel=next href=2><link rel=canonical href=/><a href=b>b</a><form action=c>`, ""},
		{"icons", `<link rel="shortcut icon" href=/f.ico><link rel=apple-touch-icon href=t.png>`, "/f.ico /dir/t.png"},
		{"manifest", `<link rel=manifest href=/app.webmanifest>`, "+/app.webmanifest"},
		{"preload", `<link rel=preload as=style href=p.css><link rel=preload as=font href=f.woff2>` +
			`<link rel=preload as=document href=next.html><link rel=modulepreload href=m.js>` +
			`<link rel=preload as=image imagesrcset="i.png 1x, j.png 2x">`,
			"+/dir/p.css /dir/f.woff2 /dir/m.js /dir/i.png /dir/j.png"},
		{"script", `<script src=s.js></script><script>var x = "<img src=no.png>"</script>`, "/dir/s.js"},
		{"image", `<img src=a.png srcset="b.png 2x, c,d.png 3x" loading=lazy>`, "/dir/a.png /dir/b.png /dir/c,d.png"},
		{"picture", `<picture><source srcset="a.webp 1x,b.webp 2x"><img src=a.png></picture>`,
			"/dir/a.webp /dir/b.webp /dir/a.png"},
		{"lazy", `<img src="data:image/gif;base64,R0" data-src=a.png data-srcset="b.png 1x, c.png 2x">` +
			`<img data-original=d.png><img data-lazy-src=e.png>`,
			"/dir/a.png /dir/b.png /dir/c.png /dir/d.png /dir/e.png"},
		{"noscript", `<noscript><img src=a.png></noscript>`, "/dir/a.png"},
		{"media", `<video src=v.mp4 poster=p.jpg><track src=t.vtt></video><audio><source src=a.ogg></audio>`,
			"/dir/v.mp4 /dir/p.jpg /dir/t.vtt /dir/a.ogg"},
		{"embedded", `<object data=o.svg></object><embed src=e.svg><input type=IMAGE src=i.png><input src=no.png>`,
			"/dir/o.svg /dir/e.svg /dir/i.png"},
		{"SVG", `<svg><image href=a.png /><use xlink:href="sprite.svg#x" /><use href="#here" /></svg>`,
			"/dir/a.png /dir/sprite.svg"},
		{"style element", `<style>@import "i.css"; p { background: url(b.png) }</style><p>url(no.png)</p>`,
			"+/dir/i.css /dir/b.png"},
		{"style attribute", `<div style="background: URL('a.png')"></div><body background=b.png>`,
			"/dir/a.png /dir/b.png"},
		{"base", `<img src=/a.png><base href="https://cdn.test/x/"><base href=/no/><img src=b.png>`,
			"/a.png https://cdn.test/x/b.png"},
		{"of other hosts", `<img src="//cdn.test/a.png">`, "https://cdn.test/a.png"},
		{"once", `<img src=a.png><img src=a.png#x><img src=./a.png>`, "/dir/a.png"},
		{"not itself", `<img src="">` + `<img src=page><img src="#x">`, ""},
		{"no URL of the web", `<img src="data:,x"><img src="blob:x"><img src="file:///x"><img src="http://[">`, ""},
		{"frames are pages", `<iframe src=f.html></iframe>`, ""},
		{"text of a frame", `<iframe srcdoc="&lt;base href=/b/>&lt;img src=a.png>` +
			`&lt;iframe srcdoc='<img src=no.png>'>"></iframe><img src=b.png>`, "/b/a.png /dir/b.png"},
		{"in a comment", `<!-- <img src=a.png> -->`, ""},
		{"the first of equal attributes", `<img src=a.png src=b.png>`, "/dir/a.png"},
		{"those that lead come first", `<img src=a.png><link rel=stylesheet href=s.css>`, "+/dir/s.css /dir/a.png"},
	} {
		got := strings.Join(found(t, test.text, "text/html; charset=utf-8", "https://site.test/dir/page", 100), " ")
		assert.Equal(t, got, test.want, test.name, test.text)
	}
}

func TestSheet(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"import", `@import "a.css"; @import url(b.css) screen; @IMPORT url("c.css") layer(x) supports(display: grid);`,
			"+/css/a.css +/css/b.css +/css/c.css"},
		{"namespace", `@namespace svg url(http://www.w3.org/2000/svg); @namespace "x"; p { background: url(a.png) }`,
			"/css/a.png"},
		{"url", `a { background: url( a.png ), url('b.png'), url("c.png") }`, "/css/a.png /css/b.png /css/c.png"},
		{"strings", `a::before { content: "no.png" }`, ""},
		{"image-set", `a { mask: -webkit-image-set("a.png" 1x, url(b.png) calc(1x * (1 + 1)), "c.png" 3x); x: "no" }`,
			"/css/a.png /css/b.png /css/c.png"},
		{"fonts: one format", `@font-face { src: url(f.eot); src: url("f.eot?#iefix") format("x"),
			url(f.woff2) format("woff2"), url(f.woff), url(f.ttf) } a { background: url(a.png) }`,
			"/css/f.woff2 /css/a.png"},
		{"fonts: an old one", `@media screen { @font-face { src: url(f.eot), url(f.woff?v=1) } }`, "/css/f.woff?v=1"},
		{"fonts: others", `@font-face { src: local("x"), url(f.ttf), url(f.svg#f) }`, "/css/f.ttf /css/f.svg"},
		{"fonts: no end", `@font-face { src: url(f.ttf)`, "/css/f.ttf"},
		{"custom property", `:root { --x: url(a.png) }`, "/css/a.png"},
		{"escapes", `a { background: url(a\20 b\.png); mask: url("c\
d.png") }`, "/css/a%20b.png /css/cd.png"},
		{"comments", `/* url(no.png) */ a { background: url(/a.png) } /* @import "no.css";`, "/a.png"},
		{"fragments", `a { fill: url(#x); mask: url("data:,") }`, ""},
		{"broken", `a { background: url(a b.png); background: url("c.png
); mask: url(d.png) }`, "/css/d.png"},
	} {
		got := strings.Join(found(t, test.text, "text/css", "https://site.test/css/main.css", 100), " ")
		assert.Equal(t, got, test.want, test.name, test.text)
	}
}

// TestOldEncoding has queries of references that count in the encoding of the page, and others.
func TestOldEncoding(t *testing.T) {
	const text = "<base href=\"/\xff?\xff\"><img src=\"a?\xff\" srcset=\"b?\xff#\xff 1x\" style=\"x: url(c?\xff)\">" +
		"<style>@import \"d?\xff\"</style><iframe srcdoc='<img src=\"e?\xff\">'></iframe>" +
		"<link rel=icon href=\"?\xff\"><link rel=stylesheet href=\"f?\xff\">"
	want := "+/d?%D1%8F +/f?%FF /a?%FF /b?%FF /c?%D1%8F /e?%D1%8F /%D1%8F?%FF"
	got := strings.Join(found(t, text, "text/html; charset=windows-1251", "https://site.test/", 100), " ")
	assert.True(t, got == want, "%s\nwant %s", got, want)
	got = strings.Join(found(t, "a { b: url(c?\xff) }", "text/css; charset=windows-1251", "https://site.test/", 9), " ")
	if want := "/c?%D1%8F"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestManifest(t *testing.T) {
	const text = "\ufeff" + `{"name": "x", "icons": [{"src": "a.png", "sizes": "48x48"}, {"src": "/b.svg"}, {}],
		"start_url": "/start", "screenshots": [{"src": "no.png"}]}`
	for _, test := range []struct{ text, contentType, url, want string }{
		{text, "application/manifest+json", "https://site.test/app/m", "/app/a.png /b.svg"},
		{text, "application/json", "https://site.test/app/manifest.json", "/app/a.png /b.svg"},
		{text, "", "https://site.test/app/site.webmanifest", "/app/a.png /b.svg"},
		{text, "application/json", "https://site.test/app/data.json", ""},
		{`{"icons": "none"}`, "application/manifest+json", "https://site.test/m", ""},
		{`{"icons": [`, "application/manifest+json", "https://site.test/m", ""},
	} {
		assert.Equal(t, strings.Join(found(t, test.text, test.contentType, test.url, 100), " "), test.want, test.url,
			"of type", test.contentType)
	}
}

// TestKind has documents whose type does not say what they are, and those that are made of nothing.
func TestKind(t *testing.T) {
	for _, test := range []struct{ text, contentType, url, want string }{
		{"a { background: url(a.png) }", "", "https://site.test/x.css?v=2", "/a.png"},
		{"a { background: url(a.png) }", "text/plain", "https://site.test/x.css", "/a.png"},
		{"a { background: url(a.png) }", "text/plain", "https://site.test/x", ""},
		{"<!doctype html><img src=a.png>", "", "https://site.test/x", "/a.png"},
		{"<img src=a.png>", "image/png", "https://site.test/x.png", ""},
		{"\xff\xfe<\x00i\x00m\x00g\x00 \x00s\x00r\x00c\x00=\x00a\x00.\x00p\x00n\x00g\x00>\x00", "text/html",
			"https://site.test/x", "/a.png"},
	} {
		assert.Equal(t, strings.Join(found(t, test.text, test.contentType, test.url, 100), " "), test.want, test.text,
			"of type", test.contentType, "at", test.url)
	}
}

// TestBound has a page of far more than may be taken: those that lead to more are not crowded out.
func TestBound(t *testing.T) {
	var b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&b, "<img src=i%d.png>", i)
	}
	page := "<link rel=stylesheet href=first.css>" + b.String() + "<link rel=stylesheet href=last.css>"
	got := found(t, page, "text/html", "https://site.test/", 10)
	assert.True(t, len(got) == 10 && got[0] == "+/first.css" && got[9] == "/i8.png", "%v", got)
	few := "<link rel=stylesheet href=a.css>" + strings.Repeat("<img src=a.png><img src=b.png><img src=c.png>", 2)
	_, left := Find([]byte(few), "text/html", mustParse(t, "https://site.test/"), 3)
	assert.True(t, left == 1, "of 4 requisites %d are left out, at most 3 are taken", left)
}

func FuzzFind(f *testing.F) {
	for _, seed := range []string{
		`<link rel=stylesheet href=a.css><img srcset="a 1x, b 2x"><style>@import "x";`, `<base href=//x><img src=\\y>`,
		`@font-face{src:url(\66.woff2)}@import url(`, `a{b:image-set("x" 1x,url(y)`, `{"icons":[{"src":"\u0000"}]}`,
		`url(url(url("`, `@import @import "x`, "\\\n\\0\\110000 url(\\)",
	} {
		f.Add(seed)
	}
	base := mustParse(f, "https://site.test/dir/x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, contentType := range []string{"text/html", "text/css", "application/manifest+json"} {
			all, _ := Find([]byte(text), contentType, base, 5)
			assert.AtMost(t, len(all), 5, text)
			seen := map[weburl.URL]bool{}
			for _, r := range all {
				if again, err := weburl.Parse(r.URL.String()); err != nil || again != r.URL || seen[r.URL] {
					t.Errorf("%q of %q is no URL, or comes twice: %v", r.URL, text, err)
				}
				seen[r.URL] = true
			}
		}
	})
}
