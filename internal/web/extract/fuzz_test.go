package extract

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// fuzzOptions includes everything, within bounds that are soon reached.
func fuzzOptions() Options {
	return Options{MaxLinks: 50, MaxNodes: 5000, MaxDepth: 100, Text: true, LinkText: true, MaxText: 300, Media: true,
		Forms: true}
}

// checkPage fails if a page is not within the bounds, or has a text that is not UTF-8, with a tree
// of some nodes and with a tree of one.
func checkPage(t *testing.T, body []byte, header http.Header) {
	t.Helper()
	o := fuzzOptions()
	checkRead(t, body, header, o)
	o.MaxNodes = 1
	checkRead(t, body, header, o)
}

func checkRead(t *testing.T, body []byte, header http.Header, o Options) {
	t.Helper()
	p := must.Get(HTML(body, header, mustParse(t, "http://site.test/dir/page?q"), []string{"amble"}, o))(t)
	assert.AtMost(t, len(p.Links), o.MaxLinks, "links")
	texts := []struct {
		name, text string
		most       int
	}{{"title", p.Title, maxTitleBytes}, {"language", p.Language, maxLanguageBytes}, {"text", p.Text, o.MaxText}}
	seen := map[string]bool{}
	for _, l := range p.Links {
		assert.True(t, !l.URL.IsZero() && !seen[l.URL.String()], "link %v is empty or repeated", l.URL)
		seen[l.URL.String()] = true
		for name, text := range map[string]string{"text of a link": l.Text, "relation": l.Rel} {
			assert.True(t, len(text) <= maxLinkText && utf8.ValidString(text), "%s %q is too long or not UTF-8", name,
				text)
		}
	}
	for _, c := range texts {
		assert.True(t, len(c.text) <= c.most && utf8.ValidString(c.text), "%s %q is too long or not UTF-8", c.name,
			c.text)
	}
	for _, d := range append(p.Robots.Seen, p.Robots.Preferences...) {
		assert.True(t, len(d) <= maxDirective && utf8.ValidString(d), "directive %q is too long or not UTF-8", d)
	}
}

func FuzzHTML(f *testing.F) {
	for _, seed := range []string{
		``, `<a href=x>`, `<base href=//y><a href=z rel=nofollow>`, `<meta charset=shift_jis><title>` + "\x82\xa0" +
			`</title>`,
		`<meta http-equiv=refresh content="0;url=/x"><link rel=canonical href=/c>`, "\xff\xfe<\x00a\x00",
		`<template><template></template><a href=x>`,
		`<frameset><frame src=a></frameset>`, `<table><a href=b><svg><title>x</title></svg>`,
		`<html lang=a><html lang=b>`,
		"\x1b$B<a href=x>",
	} {
		f.Add([]byte(seed), "text/html", "nofollow")
	}
	f.Add([]byte("<a href=\xe4>"), "text/html; charset=iso-8859-1", "amble: none")
	f.Fuzz(func(t *testing.T, body []byte, contentType, tag string) {
		header := http.Header{"Content-Type": {contentType}, "X-Robots-Tag": {tag}}
		checkPage(t, body, header)
		IsHTML(contentType, body)
	})
}

// encodings are the encodings that FuzzDocument nests.
var encodings = [...]string{"utf-8", "utf-16le", "utf-16be", "iso-2022-jp", "shift_jis", "gb18030", "big5", "euc-kr",
	"windows-1252", "koi8-r", "replacement", "x-user-defined", "unknown"}

// encodeAs encodes a text as far as possible.
func encodeAs(text []byte, name string) []byte {
	e, _ := charset.Lookup(name)
	if e == nil {
		return text
	}
	if encoded, err := e.NewEncoder().Bytes(text); err == nil {
		return encoded
	}
	return text
}

// FuzzDocument makes documents of parts that random bytes hardly contain: words that end at the
// bounds, tags with many attributes, deep elements, and bytes that are encoded twice and declared
// in a third encoding.
func FuzzDocument(f *testing.F) {
	f.Add("a", uint16(1024), " b", uint16(3), uint16(3), uint8(0), uint8(0), uint8(0))
	f.Add("ü", uint16(512), "ü", uint16(300), uint16(600), uint8(1), uint8(3), uint8(2))
	f.Add("日", uint16(86), " 語\n", uint16(20), uint16(511), uint8(3), uint8(4), uint8(5))
	f.Add("<", uint16(700), "&amp;", uint16(64), uint16(0), uint8(10), uint8(1), uint8(11))
	f.Fuzz(func(
		t *testing.T, word string, length uint16, rest string, attributes, depth uint16, first, second, declared uint8,
	) {
		text := strings.Repeat(word, min(int(length), 1<<12/max(len(word), 1))) + rest
		var tag strings.Builder
		for i := range attributes % 1000 {
			fmt.Fprintf(&tag, " a%d=%q", i, rest)
		}
		name := func(i uint8) string { return encodings[int(i)%len(encodings)] }
		document := fmt.Sprintf(`<html lang="%s"><meta charset=%s><title>%[1]s</title><pre>%[1]s</pre><a href="%[1]s" rel="%[1]s"%[3]s>%[1]s</a>
			<area href=/x alt="%[1]s"><img srcset="%[1]s" alt="%[1]s"><meta http-equiv=refresh content="%[1]s"><meta name=robots content="%[1]s">%[4]s`,
			text, name(declared), tag.String(), strings.Repeat("<div>", int(depth%700)))
		body := encodeAs(encodeAs([]byte(document), name(first)), name(second))
		checkPage(t, body, http.Header{"Content-Type": {"text/html; charset=" + name(second)}})
		checkPage(t, body, http.Header{"Content-Type": {text}, "X-Robots-Tag": {text}, "Content-Usage": {text}})
	})
}

// FuzzAttributes reads the parts of a page that are parsed from a text alone.
func FuzzAttributes(f *testing.F) {
	for _, seed := range []string{"5; url='next.html'", "a 2x, b (,) 3x,,c",
		"unavailable_after: Wed, 25 Jun 2025 15:00:00 PST, noindex", "amble: none, noindex;noai", "A B\tc\n",
		"...9 ,url = \"x"} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		assert.Contains(t, text, refreshTarget(text), "refreshes")
		o := fuzzOptions()
		c := newCollector(mustParse(t, "http://site.test/"), []string{"amble"}, o, len(text))
		EachCandidate(text, func(u string) { c.refer(u, Media, false) })
		assert.True(t, len(c.p.Links) <= o.MaxLinks && c.references <= len(text)+1, "%d links, %d references",
			len(c.p.Links), c.references)
		d := HeaderDirectives(http.Header{"X-Robots-Tag": {text, text}, "Tdm-Policy": {text}}, []string{"amble"})
		d.addMeta("robots", text, []string{"amble"})
		assert.True(t, len(d.Seen) <= maxDirectives && len(d.Preferences) <= maxDirectives,
			"%d directives, %d preferences", len(d.Seen), len(d.Preferences))
		if n = min(max(n, 0), 1<<12); len(collapse(text, n)) > n || len(clip(text, n)) > n {
			t.Errorf("%q is cut to %q and %q", text, collapse(text, n), clip(text, n))
		}
	})
}

// FuzzList reads lists that are compressed and encoded more than once, from readers that return a
// byte at a time.
func FuzzList(f *testing.F) {
	f.Add([]byte(urlset+"<url><loc>/a</loc></url>"), uint8(1), uint8(0), uint8(0), false)
	f.Add([]byte(`{"version": "https://jsonfeed.org/version/1.1", "items": [{"url": 5}, {"url": "/a"}], "items": [[]]`),
		uint8(0), uint8(0), uint8(6), true)
	f.Add([]byte("http://site.test/ü\n#\n\n"), uint8(3), uint8(4), uint8(3), false)
	base := mustParse(f, "http://site.test/dir/list")
	f.Fuzz(func(t *testing.T, body []byte, packed, encoding, kind uint8, declare bool) {
		name := encodings[int(encoding)%len(encodings)]
		body = encodeAs(body, name)
		for range packed % 4 {
			body = []byte(zipped(t, string(body)))
		}
		contentType := "application/xml"
		if declare {
			contentType += "; charset=" + name
		}
		o := ListOptions{MaxItems: 20, MaxBytes: 1 << 16, Media: true}
		SniffList(contentType, body, true)
		for _, k := range []ListKind{SniffList(contentType, body, false), ListKind(kind % 7)} {
			list, err := ReadList(bytes.NewReader(body), k, contentType, base, o, func(Item) error { return nil })
			assert.True(t, err == nil && list.Items <= o.MaxItems && len(list.Title) <= maxTitleBytes, "%v: %v, %+v", k,
				err, list)
		}
	})
}
