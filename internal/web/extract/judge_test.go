package extract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// judged reads a document in UTF-8 as HTML does, but from the tree of golang.org/x/net. ok is false
// if there is no such tree.
func judged(t testing.TB, text []byte, o Options) (p Page, ok bool) {
	t.Helper()
	root, err := html.ParseWithOptions(bytes.NewReader(text), html.ParseOptionEnableScripting(false))
	if err != nil {
		return p, false
	}
	document := goquery.NewDocumentFromNode(root)
	document.Find("template").Each(func(_ int, s *goquery.Selection) {
		mode := strings.ToLower(s.AttrOr("shadowrootmode", ""))
		if s.Nodes[0].Namespace == "" && mode != "open" && mode != "closed" {
			s.Empty()
		}
	})
	c := newCollector(mustParse(t, "http://site.test/dir/page"), []string{"amble"}, o, len(text))
	references := c.take(document)
	if prose := newProse(o); prose != nil {
		prose.walk(root, references, c)
		prose.finish(&c.p)
	}
	return c.p, true
}

// judgeOptions includes everything that the judge compares.
func judgeOptions() Options {
	o := DefaultOptions()
	o.Media, o.Forms = true, true
	return o
}

// describe returns the data of a page that do not depend on where its elements are. They are in the
// order of the document or, if elements of tables may have been moved, sorted.
func describe(p *Page, ordered bool) string {
	links := make([]string, len(p.Links))
	for i, l := range p.Links {
		links[i] = fmt.Sprintf("%v nofollow=%v", l.URL, l.NoFollow)
		if ordered {
			links[i] += " " + l.Kind.String()
		}
	}
	if !ordered {
		slices.Sort(links)
		slices.Sort(p.Robots.Seen)
	}
	return fmt.Sprintf("title %q, language %q, base %v, canonical %v, refused %d, robots %q\n%s", p.Title, p.Language,
		p.Base, p.Canonical, p.Refused, p.Robots.Seen, strings.Join(links, "\n"))
}

// agree fails unless a document yields the same as with the tree of golang.org/x/net, at both
// levels of detail.
func agree(t *testing.T, name string, text []byte, ordered bool) {
	t.Helper()
	o := judgeOptions()
	want, ok := judged(t, text, o)
	if !ok {
		return
	}
	for _, full := range []bool{false, true} {
		o.LinkText, o.Text = full, full
		got := must.Get(HTML(text, typed("text/html; charset=utf-8"), mustParse(t, "http://site.test/dir/page"),
			[]string{"amble"}, o))(t)
		if got.Cut|want.Cut != 0 {
			continue
		}
		if describe(&got, ordered) != describe(&want, ordered) {
			t.Errorf("%s, full %v: %s\nwant %s", name, full, describe(&got, ordered), describe(&want, ordered))
			return
		}
	}
}

// differs reports whether a document may have a part that is read differently on purpose:
//   - an HTML template in SVG or MathML, behind which golang.org/x/net reads nothing,
//   - an element of SVG or MathML that golang.org/x/net takes for a part of a table,
//   - raw text in SVG or MathML that a misnested formatting element may end,
//   - a formatting element of a template that is opened again behind it,
//   - parts of tables in a template that is a shadow tree: a browser takes only such parts there,
//   - two titles, if a table may move one before the other.
func differs(text []byte) bool {
	lower := string(bytes.ToLower(text))
	if at := foreignTag.FindStringIndex(lower); at != nil {
		behind := lower[at[1]:]
		if strings.Contains(behind, "<template") || partOrMarker.MatchString(behind) ||
			rawTag.MatchString(behind) && formattingTag.MatchString(lower) {
			return true
		}
	}
	_, inTemplate, template := strings.Cut(lower, "<template")
	return template && partOrMarker.MatchString(inTemplate) ||
		strings.Count(lower, "<title") > 1 && strings.Contains(lower, "<table")
}

var (
	foreignTag    = regexp.MustCompile(`<(svg|math)`)
	rawTag        = regexp.MustCompile(`<(title|script|style|textarea|iframe|xmp|no|plaintext|!)`)
	formattingTag = regexp.MustCompile(`<(/(b|big|code|em|font|i|s|small|strike|strong|tt|u)|/?a|/?nobr)[ \t\n\f\r/>]`)
	partOrMarker  = regexp.MustCompile(`<(col|caption|t[drh]|tbody|thead|tfoot|object|applet|marquee)`)
)

func TestTreeAgreesWithTheJudge(t *testing.T) {
	files, err := filepath.Glob("testdata/charset/*.html")
	must.True(t, err == nil && len(files) != 0, "no samples:  %v", err)
	for _, file := range files {
		body := must.Get(os.ReadFile(file))(t)
		agree(t, file, toUTF8(body, "text/html"), true)
	}
	for name, f := range families() {
		if f.kind == NotAList {
			agree(t, name, bytes.ToValidUTF8([]byte(f.text(40)), []byte("?")), !strings.Contains(name, "table"))
		}
	}
	agree(t, "a usual page", benchPage(20), true)
	for _, text := range judgedSeeds() {
		agree(t, text, []byte(text), !strings.Contains(text, "<table"))
	}
}

// judgedSeeds are documents in which the place of a tag decides whether it counts.
func judgedSeeds() []string {
	return []string{
		`<p><a href=1><p><a href=2>x</a></p><a href=3><div><a href=4></div>`,
		`<b><div><a href=1></b><a href=2></div></a></b>`,
		`<svg><title>no</title><a href=/s><style><a href=/t></style></a></svg><title>yes</title>`,
		`<svg><base href=/b/><link rel=next href=/l></svg><a href=x>`,
		`<svg/><title>t</title><math><mi><a href=1></mi><mglyph><a href=2></math>`,
		`<svg><foreignObject><a href=1><title>x</title></foreignObject><title>y</title></svg>`,
		`<svg></p><title>x</title>`, `<svg><g></br><iframe src=1>`,
		`<table><col><math></colgroup><iframe src=1></iframe>`,
		`<svg><p><a href=1></svg><a href=2>`, `<svg><font color=x><a href=1></svg>`, `<svg><font><a href=1></svg>`,
		`<svg><![CDATA[<a href=1>]]></svg><a href=2>`, `<![CDATA[<a href=1>]]>`,
		`<math><annotation-xml encoding=text/html><a href=1><title>x</title></math><title>y</title>`,
		`<math><annotation-xml><svg><title>x</title></svg></math><title>y</title>`,
		`<frameset><frame src=1><a href=2><noframes><a href=3></noframes></frameset><a href=4>`,
		`<a href=1></a><frameset><frame src=2></frameset>`, `x<frameset><frame src=2></frameset><a href=1>`,
		`<body><frameset><frame src=2></frameset>`,
		`<div></div><frameset><frame src=1><frameset><frame src=2></frameset></frameset>`,
		`<frame src=1>`, `<title>x</title><script>y</script><frameset><frame src=1>`,
		` <frameset><frame src=1></frameset><frame src=2>`,
		`<template><a href=1><template><a href=2></template></template><a href=3>`,
		`<template><tr><td><a href=1></template><template shadowrootmode=open><tr><td><a href=2></template>`,
		`<div></template><a href=1>`, `<template shadowrootmode><a href=1></template><a href=2>`,
		`<template shadowrootmode=Closed><a href=1></template><template shadowrootmode=x><a href=2></template>`,
		`<table><tr><td><a href=1><tr><td><a href=2></table><a href=3>`, `<table><a href=1><tr><td><a href=2></table>`,
		`<select><a href=1><option><a href=2></select><a href=3>`, `<select><input src=i type=image><a href=1>`,
		`<object><select><math></object><base href=20>`, `<p><select></p><a href=1></select><a href=2>`,
		`<noscript><a href=1></noscript>`,
		`<head><noscript><meta http-equiv=refresh content="0;x"><a href=1></noscript>`,
		`</head><noscript><iframe src=1></iframe></noscript>`, `<html lang=a><html lang=b>`, `<p><html lang=b>`,
		`<textarea><a href=1></textarea><xmp><a href=2></xmp><noembed><a href=3></noembed><plaintext><a href=4>`,
		`<x-y><table><table></table><svg></x-y><base href=12>`,
		`<table><tr><td><table><tr><td><a href=1></table></table>`,
		`<image src=1>`, `<svg><image src=1 /><title>x</title></svg>`,
		`<form action=1><form action=2></form><form action=3>`, `<a href=1 href=2>`,
		`<ruby><rt><a href=1><rp><rb>`,
		`<object data=1><a href=1></object></a>`, `<button><a href=1><button><a href=2>`, `</p><a href=1></br>`,
		`<h1><a href=1><h2><a href=2></h1><a href=3>`,
		`<ul><li><a href=1><li><a href=2></ul><dl><dt><a href=3><dd><a href=4>`,
	}
}

// generated makes a document. Each byte chooses a tag or a text.
func generated(choices []byte) []byte {
	names := strings.Fields(
		"a b i font nobr p div span li ul ol dl dd dt h1 h2 table tbody thead tr td th caption col " +
			"colgroup form input select option optgroup button object applet template noscript svg math desc " +
			"foreignObject " +
			"title mi annotation-xml script style textarea iframe frameset frame head body html base link meta " +
			"img hr br " +
			"ruby rb rt rtc pre center address main x-y area video source image")
	attributes := []string{"", " href=%d", " src=%d action=%[1]d", " name=robots content=d%d rel=next lang=l%[1]d",
		" shadowrootmode=open", " href=%d rel=nofollow /"}
	var b strings.Builder
	for i, choice := range choices {
		name := names[int(choice)%len(names)]
		switch i % 4 {
		case 0, 1:
			attribute, _, _ := strings.Cut(fmt.Sprintf(attributes[int(choice)/7%len(attributes)], i), "%!")
			fmt.Fprintf(&b, "<%s%s>", name, attribute)
		case 2:
			fmt.Fprintf(&b, "</%s>", name)
		default:
			if choice%3 == 0 {
				fmt.Fprintf(&b, "<a href=a%d>x", i)
			}
		}
	}
	return []byte(b.String())
}

// TestGeneratedDocumentsAgreeWithTheJudge reads random documents of tags.
func TestGeneratedDocumentsAgreeWithTheJudge(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 5000 {
		choices := make([]byte, 1+rnd.IntN(60))
		for i := range choices {
			choices[i] = byte(rnd.Uint32())
		}
		if text := generated(choices); !differs(text) {
			agree(t, string(text), text, false)
		}
		if t.Failed() {
			return
		}
	}
}

func FuzzTreeAgreesWithTheJudge(f *testing.F) {
	for _, seed := range judgedSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = toUTF8(text, "text/html; charset=utf-8")
		if len(text) > 1<<14 {
			return
		}
		long := bytes.ReplaceAll(text, []byte("<script>"), []byte("<script>"+strings.Repeat("x < y; ", 1000)))
		for _, text := range [][]byte{text, long, generated(text[:min(len(text), 200)])} {
			if !differs(text) {
				agree(t, string(text), text, false)
			}
		}
	})
}

// TestLongRawTextAgreesWithTheJudge: of long scripts and styles the tree without texts skips most.
func TestLongRawTextAgreesWithTheJudge(t *testing.T) {
	for _, text := range longRawTexts() {
		agree(t, fmt.Sprintf("%.60q", text), []byte(text), true)
	}
}

// longRawTexts are scripts and styles that are longer than the buffer of a tokenizer, with what looks
// like their end, is their end, or hides it, at each side of the bound of the buffer.
func longRawTexts() (all []string) {
	parts := []string{
		"", "</scriptx>", "</script>", "</SCRIPT\n>", "</script", "</", "<", "<!--", "<!-- --><script>", "<!--<script>",
		"<!--<script></script>", "-->", "</style>", "</style/ >", "<a href=hidden>", "<script>", "<title>no</title>",
		"<!-", "</scr", "\x00", "&lt;/script>",
	}
	const after = "<a href=2></script><a href=3></style><a href=4>--></script><a href=5><title>t</title>"
	for _, name := range []string{"<script>", "<style>", "<svg><style>", "<svg><script>", "<template><script>",
		"<script/>",
		"<noscript><style>", "<textarea>", "<script " + strings.Repeat("a", 20_000) + ">"} {
		for _, first := range []string{"", "<", "</scriptx>", "<!--", "<!--<script>"} {
			for i, second := range parts {
				filler := strings.Repeat("var x = 1 < 2;\n", 4090/15+i*30)
				all = append(all, "<a href=1>"+name+first+filler+second+after)
			}
		}
	}
	return all
}
