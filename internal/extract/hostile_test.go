package extract

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Each of these took a parser down somewhere: by stack, by memory or by
// quadratic time. The bound in time is a net against minutes, not a target.
func TestHostileDocuments(t *testing.T) {
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
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
		{"100,000 nested spans, closed", link + strings.Repeat("<span>", 100_000) + strings.Repeat("</span>", 100_000), 1},
		{"100,000 nested tables", link + strings.Repeat("<table><tr><td>", 100_000), 1},
		{"100,000 nested formatting elements", link + numbered(100_000, "<b id=%d>"), 1},
		{"reopened in every block", link + "<p>" + numbered(400, "<b id=%d>") + "</p>" + strings.Repeat("<p>x", huge/20), 1},
		{"reopened with attributes", link + "<p>" + strings.Repeat("<b "+numbered(300, "a%d ")+">", 3) + "</p>" + strings.Repeat("<p>x", 200_000), 1},
		{"many body tags", link + numbered(huge/32, "<body a%d>"), 1},
		{"a tag with many attributes, then many tags", link + "<div " + numbered(huge/20, "a%d ") + ">" + strings.Repeat("<i a>", huge/25), 1},
		{"100,000 links", numbered(100_000, "<a href=/%d>x</a>"), 10_000},
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
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			p := read(t, tt.text)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if len(p.Links) < tt.links {
				t.Errorf("%d links, want at least %d", len(p.Links), tt.links)
			}
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
			if allocated > 1<<10 {
				t.Errorf("%d MiB allocated for %d MiB of text", allocated, len(tt.text)>>20)
			}
			if took > time.Minute {
				t.Errorf("took %v", took)
			}
			t.Logf("%.1f MB: %v, %d MiB allocated", float64(len(tt.text))/1e6, took.Round(time.Millisecond), allocated)
		})
	}
}

func FuzzHTML(f *testing.F) {
	for _, seed := range []string{
		``, `<a href=x>`, `<base href=//y><a href=z rel=nofollow>`, `<meta charset=shift_jis><title>` + "\x82\xa0" + `</title>`,
		`<meta http-equiv=refresh content="0;url=/x"><link rel=canonical href=/c>`, "\xff\xfe<\x00a\x00", `<template><template></template><a href=x>`,
		`<frameset><frame src=a></frameset>`, `<table><a href=b><svg><title>x</title></svg>`, `<html lang=a><html lang=b>`, "\x1b$B<a href=x>",
	} {
		f.Add([]byte(seed), "text/html", "nofollow")
	}
	f.Add([]byte("<a href=\xe4>"), "text/html; charset=iso-8859-1", "amble: none")
	base := mustParse(f, "http://site.test/dir/page?q")
	f.Fuzz(func(t *testing.T, body []byte, contentType, tag string) {
		o := Options{MaxLinks: 50, MaxNodes: 5000, MaxDepth: 100, Text: true, LinkText: true, MaxText: 300, Media: true, Forms: true}
		p, err := HTML(body, http.Header{"Content-Type": {contentType}, "X-Robots-Tag": {tag}}, base, []string{"amble"}, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Links) > o.MaxLinks || len(p.Title) > maxTitleBytes || len(p.Language) > maxLanguageBytes {
			t.Errorf("out of bounds: %d links, title of %d, language of %d", len(p.Links), len(p.Title), len(p.Language))
		}
		if !utf8.ValidString(p.Title) || !utf8.ValidString(p.Language) || !utf8.ValidString(p.Text) || len(p.Text) > o.MaxText {
			t.Errorf("title %q, language %q or text %q is not UTF-8 or too long", p.Title, p.Language, p.Text)
		}
		seen := map[string]bool{}
		for _, l := range p.Links {
			if l.URL.IsZero() || seen[l.URL.String()] {
				t.Errorf("link %v is empty or repeated", l.URL)
			}
			if len(l.Text) > maxLinkText || !utf8.ValidString(l.Text) || len(l.Rel) > maxLinkText || !utf8.ValidString(l.Rel) {
				t.Errorf("link %v: text %q, rel %q", l.URL, l.Text, l.Rel)
			}
			seen[l.URL.String()] = true
		}
		IsHTML(contentType, body)
	})
}
