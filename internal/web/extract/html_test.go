package extract

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

func mustParse(t testing.TB, s string) weburl.URL {
	t.Helper()
	return must.Get(weburl.Parse(s))(t)
}

// typed returns the header of a response with a type.
func typed(contentType string) http.Header { return http.Header{"Content-Type": {contentType}} }

// read extracts text as a page at http://site.test/dir/page in UTF-8.
func read(t testing.TB, text string) Page {
	t.Helper()
	p := must.Get(HTML([]byte(text), typed("text/html; charset=utf-8"), mustParse(t, "http://site.test/dir/page"),
		[]string{"amble"}, DefaultOptions()))(t)
	return p
}

// show writes links as "kind path", with a mark for nofollow.
func show(p Page) []string {
	out := []string{}
	for _, l := range p.Links {
		s := l.Kind.String() + " " + strings.TrimPrefix(l.URL.String(), "http://site.test")
		if l.NoFollow {
			s += " nofollow"
		}
		out = append(out, s)
	}
	return out
}

func TestLinks(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"relative forms",
			`<a href="x">1</a><a href="/y">2</a><a href="../z">3</a><a href="?q">4</a><a href="//other.test/o">5</a>`,
			[]string{"anchor /dir/x", "anchor /y", "anchor /z", "anchor /dir/page?q", "anchor http://other.test/o"}},
		{"every kind, in document order", `<link rel=canonical href=/c><link rel="next" href=/n><meta http-equiv=refresh content="3; url=/r">
			<a href=/a></a><map><area href=/m></map><iframe src=/i></iframe>`,
			[]string{"canonical /c", "link /n", "refresh /r", "anchor /a", "area /m", "iframe /i"}},
		{"frames", `<frameset><frame src=/one><frame src=/two></frameset>`, []string{"frame /one", "frame /two"}},
		{"the same twice", `<a href=/a>1</a><a href="/a#part">2</a><area href=/a>`, []string{"anchor /a"}},
		{"followed if one reference may be", `<a rel=nofollow href=/a></a><a href=/a></a>`, []string{"anchor /a"}},
		{"nofollow words",
			`<a rel="NoFollow" href=/a></a><a rel="x ugc" href=/b></a><a rel=sponsored href=/c></a><a rel=noopener href=/d></a>`,
			[]string{"anchor /a nofollow", "anchor /b nofollow", "anchor /c nofollow", "anchor /d"}},
		{"into the document itself", `<a href="#x"></a><a href=""></a><a name=x></a>`, []string{}},
		{"white space and entities", "<a href=\" \n/a?x=1&amp;y=2\t\"></a>", []string{"anchor /a?x=1&y=2"}},
		{"base", `<base href="http://site.test/b/"><a href=x></a>`, []string{"anchor /b/x"}},
		{"only the first base", `<base target=_top><base href=/b/><base href=/c/><a href=x></a>`,
			[]string{"anchor /b/x"}},
		{"base behind links", `<a href=x></a><base href=/b/><a href=y></a>`, []string{"anchor /b/x", "anchor /b/y"}},
		{"base that is no URL", `<base href="mailto:x"><a href=x></a>`, []string{"anchor /dir/x"}},
		{"template is inert",
			`<template><a href=/t></a></template><template shadowrootmode=open><a href=/s></a></template><a href=/a></a>`,
			[]string{"anchor /s", "anchor /a"}},
		{"comments and scripts have none",
			`<!-- <a href=/c></a> --><script>"<a href=/s></a>"</script><textarea><a href=/t></a></textarea>`,
			[]string{}},
		{"not every link element",
			`<link rel=stylesheet href=/s><link rel="alternate stylesheet" href=/t><link rel=icon href=/i><link rel=prev href=/p>`,
			[]string{"link /p"}},
		{"upper case", `<A HREF="/A">x</A>`, []string{"anchor /A"}},
		{"broken markup", `<a href=/a<b>x</a></p></div><table><a href="/t">`, []string{"anchor /a%3Cb", "anchor /t"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Slice(t, show(read(t, tt.text)), tt.want, "links")
		})
	}
}

// The same must be found if elements are nested too deep.
func TestDeepDocumentsSayTheSame(t *testing.T) {
	text := `<html lang=de><head><base href=/b/><title>A &amp; B</title><meta name=robots content=noindex></head>
		<body><a href=x rel=nofollow>1</a><template><a href=/no></a></template><area href=y><iframe src=z></iframe>`
	deep := strings.Repeat("<div>", 600)
	tree, flat := read(t, text), read(t, text+deep)
	assert.True(t, !tree.Flat && flat.Flat, "tree read flat: %v, flat: %v", tree.Flat, flat.Flat)
	flat.Flat = false
	assert.Equal(t, fmt.Sprint(tree), fmt.Sprint(flat), "tree", tree, "flat", flat)
	assert.True(t, len(tree.Links) == 3 && tree.Title == "A & B" && tree.Language == "de" && tree.Robots.NoIndex,
		"page %+v", tree)
}

// A very large tag changes nothing about the content behind it.
func TestLargeTagsDeepDown(t *testing.T) {
	large := " title='" + strings.Repeat("x", 40_000) + "'"
	text := strings.Repeat("<div>", 600) + "<title" + large + ">T</title><a href=/a" + large + ">x</a><script" + large +
		">'<a href=/no>'</script><a href=/b>y</a><p" + large + "><a href=/c>"
	p := read(t, text)
	if got := show(p); p.Title != "T" || !slices.Equal(got, []string{"anchor /a", "anchor /b", "anchor /c"}) {
		t.Errorf("title %q, links %q", p.Title, got)
	}
}

func TestCanonicalAndRefused(t *testing.T) {
	p := read(t, `<link rel=canonical href="javascript:x"><link rel=canonical href=/c><link rel=canonical href=/d>
		<a href="mailto:a@b"></a><a href="javascript:void(0)"></a><a href="http://[bad"></a><a href=/ok></a>`)
	assert.Equal(t, p.Canonical.String(), "http://site.test/c", "canonical", p.Canonical)
	assert.Equal(t, p.Refused, 4, "refused")
}

func TestTitle(t *testing.T) {
	for text, want := range map[string]string{
		"<title>\n Plain \t title </title>":                 "Plain title",
		"<title></title><title>second</title>":              "",
		"<svg><title>icon</title></svg><title>page</title>": "page",
		"<title>a &lt;b&gt; c</title>":                      "a <b> c",
		"<p>none":                                           "",
	} {
		assert.Equal(t, read(t, text).Title, want, text, "title")
	}
	assert.Equal(t, len(read(t, "<title>"+strings.Repeat("ü", 5000)+"</title>").Title), maxTitleBytes,
		"a long title keeps bytes")
}

func TestRefreshTarget(t *testing.T) {
	for content, want := range map[string]string{
		"0;url=/x": "/x", "5; URL = '/x'": "/x", `3,url="/x" y`: "/x", "0;/x": "/x", "0 /x": "/x", "1.5; url=/x": "/x",
		"5": "", "": "", "url=/x": "", "x;url=/x": "", "5;": "", "5; url=": "", "0x": "", "; url=/x": "",
		"3; url='/x": "/x",
	} {
		assert.Equal(t, refreshTarget(content), want, content)
	}
}

func TestIsHTML(t *testing.T) {
	for _, tt := range []struct {
		contentType, body string
		want              bool
	}{
		{"text/html", "", true}, {"Text/HTML; charset=x", "", true}, {"application/xhtml+xml", "", true},
		{"text/html;;;=broken", "", true}, {"text/plain", "<html>", false}, {"application/pdf", "<html>", false},
		{"", "<!doctype html><p>", true}, {"", "%PDF-1.4", false}, {"", "just text", false}, {"html", "  <html>", true},
	} {
		assert.Equal(t, IsHTML(tt.contentType, []byte(tt.body)), tt.want, tt.contentType, tt.body)
	}
}

func TestErrors(t *testing.T) {
	assert.Fails(HTML(nil, nil, weburl.URL{}, nil, DefaultOptions()))(t, errNoBase, "no base")
	_, err := HTML(nil, nil, mustParse(t, "http://a.test/"), nil, Options{MaxLinks: 1, MaxDepth: 1})
	assert.True(t, err != nil && strings.Contains(err.Error(), "MaxNodes"), "options: %v", err)
}

// TestReferencesAreBounded: a page whose URL is long cannot make a hundred times its size of URLs.
func TestReferencesAreBounded(t *testing.T) {
	base := mustParse(t, "http://site.test/"+strings.Repeat("x", 2000)+"/")
	text := count(10_000, "<a href=%d>")
	p := must.Get(HTML([]byte(text), typed("text/html; charset=utf-8"), base, nil, DefaultOptions()))(t)
	bytes := 0
	for _, l := range p.Links {
		bytes += len(l.URL.String())
	}
	if most := referencesPerByte*len(text) + referencesFloor; p.Cut == 0 || bytes > most || bytes < most/2 {
		t.Errorf("%d links of %d bytes together from %d bytes, cut %v", len(p.Links), bytes, len(text), p.Cut)
	}
}

func TestBounds(t *testing.T) {
	links := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "<a href=/%d>x</a>", i)
		}
		return b.String()
	}
	base := mustParse(t, "http://a.test/")
	extract := func(text string, o Options) Page {
		return must.Get(HTML([]byte(text), typed("text/html"), base, nil, o))(t)
	}
	p := extract(links(10), Options{MaxLinks: 5, MaxNodes: 1000, MaxDepth: 10})
	assert.True(t, len(p.Links) == 5 && p.Cut != 0, "MaxLinks: %d links, cut %v", len(p.Links), p.Cut)
	if p := extract("<div><div><div><div>"+links(1), Options{MaxLinks: 5, MaxNodes: 1000,
		MaxDepth: 4}); len(p.Links) != 0 || p.Cut == 0 {
		t.Errorf("MaxDepth: %d links, cut %v", len(p.Links), p.Cut)
	}
	if p := extract(links(1000), Options{MaxLinks: 5000, MaxNodes: 100, MaxDepth: 10}); len(p.Links) < 90 ||
		len(p.Links) > 100 || p.Cut == 0 {
		t.Errorf("MaxNodes: %d links, cut %v", len(p.Links), p.Cut)
	}
	if p := extract(strings.Repeat("<a href=x:y>", 1000),
		Options{MaxLinks: 5, MaxNodes: 1 << 20, MaxDepth: 1000}); p.Refused != 20 || p.Cut == 0 {
		t.Errorf("refused %d, cut %v", p.Refused, p.Cut)
	}
}
