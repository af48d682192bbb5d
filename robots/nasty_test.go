package robots

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// nasty is a file made to break a reader, with a URL that must still get its verdict. The files are
// about as large as the limit, so they are made here.
type nasty struct {
	name    string
	body    []byte
	uri     string
	allowed bool
}

func utf16Of(s string) []byte {
	b := []byte{0xFF, 0xFE}
	for _, c := range []byte(s) {
		b = append(b, c, 0)
	}
	return b
}

func nastyFiles() []nasty {
	fill := func(s string) string { return strings.Repeat(s, MaxBody/len(s)) }
	groups := []byte("User-agent: amble\nDisallow: /a\n")
	for i := 0; len(groups) < MaxBody-40 && i <= 24_000; i++ {
		groups = fmt.Appendf(groups, "User-agent: b%d\nDisallow\n", i)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, MaxBody)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	long := "/" + strings.Repeat("a", 2000)
	head := "User-agent: *\nDisallow: /a$\n"
	var deep strings.Builder
	for i := 1; deep.Len() < MaxBody-2000; i++ {
		fmt.Fprintf(&deep, "Disallow: /%s\n", strings.Repeat("a", i))
	}
	return []nasty{
		{"wildcards", []byte("User-agent: *\n" + fill("Disallow: /*a*b*c*d$\n")), long, true},
		{"single stars", []byte("User-agent: *\n" + fill("Disallow: /*a*a*a*a*a*b\n")), long, true},
		{"one pattern of stars", []byte("User-agent: *\nDisallow: /" + strings.Repeat("*", MaxBody-100) + "b\n"),
			long, true},
		{"one pattern of pieces", []byte("User-agent: *\nDisallow: /" + strings.Repeat("a*", MaxBody/2-100) + "b\n"),
			long, true},
		{"long common prefixes", []byte("User-agent: *\n" + fill("Disallow: /"+strings.Repeat("a", 1000)+"b\n")),
			long, true},
		{"prefix of prefix", []byte("User-agent: *\n" + deep.String()), long, false},
		{"24,000 groups", groups, "/a", false},
		{"names only", []byte(fill("User-agent: a\n") + "User-agent: amble\nDisallow: /"), "/a", true},
		{"names and delays", []byte(head + fill("User-agent: a\nCrawl-delay: 1\n")), "/a", false},
		{"one name, many delays", []byte("User-agent: *\n" + fill("Crawl-delay: 1e9\n")), "/a", true},
		{"the same rule", []byte("User-agent: *\n" + fill("Disallow: /a\n")), "/a", false},
		{"NULs", append([]byte(head), make([]byte, MaxBody)...), "/a", false},
		{"NULs first", append(make([]byte, 1000), "\n"+head...), "/a", false},
		{"one endless line", []byte(head + "Disallow: /" + strings.Repeat("a", 2*MaxBody)), "/aa", true},
		{"one endless line of nothing", bytes.Repeat([]byte{'a'}, 2*MaxBody), "/a", true},
		{"endless escapes", []byte("User-agent: *\nDisallow: /" + fill("%") + "\nDisallow: /a\n"), "/a", true},
		{"CR only", []byte(strings.ReplaceAll(head, "\n", "\r") + fill("#x\r")), "/a", false},
		{"line ends only", []byte(head + fill("\r\n")), "/a", false},
		{"colons only", []byte(head + fill(":")), "/a", false},
		{"UTF-16", utf16Of(head), "/a", false},
		{"UTF-16, long", utf16Of(head + fill("# x\n")), "/a", false},
		{"UTF-16, nothing but half pairs", append([]byte{0xFE, 0xFF}, bytes.Repeat([]byte{0xD8, 0x00}, MaxBody/2)...),
			"/a", true},
		{"bombs in UTF-16", append([]byte{0xFE, 0xFF}, bytes.Repeat([]byte{0xFF, 0xFD}, MaxBody/2)...), "/a", true},
		{"noise", noise, "/a", true},
		{"sitemaps", []byte(head + fill("Sitemap: https://a.example/s https://a.example/t\n")), "/a", false},
	}
}

// TestNasty reads each of them with every function.
func TestNasty(t *testing.T) {
	for _, n := range nastyFiles() {
		r := Compile(n.body, "amble-news", "amble")
		assert.Equal(t, r.Match(n.uri).Allowed, n.allowed, n.name)
		assert.AtMost(t, r.Size(), 2*len(n.body)+512, n.name, "bytes retained of", len(n.body))
		f := Parse(n.body)
		assert.Equal(t, f.Rules("amble-news", "amble").Match(n.uri).Allowed, n.allowed, n.name, "by File")
		assert.True(t, len(f.Warnings) <= maxWarnings && len(Diff(f, f, "amble")) == 0,
			"%s: %d warnings, or not equal to itself", n.name, len(f.Warnings))
		f.Sitemaps("https://a.example/robots.txt")
		f.CleanParams()
		rec, _ := DefaultOptions().Next(Record{}, Outcome{URL: robotsURL, Status: 200, Body: n.body}, begin)
		b, err := rec.AppendBinary(nil)
		must.Do(t, err, n.name)
		back, err := DecodeRecord(b)
		assert.True(t, err == nil && bytes.Equal(back.Body, rec.Body), "%s: does not come back: %v", n.name, err)
		assert.Equal(t, back.Rules("amble-news", "amble").Match(n.uri).Allowed, n.allowed, n.name, "from the record")
	}
}

// TestLimit: the lines that begin within 500 KiB are read, whole lines of them only.
func TestLimit(t *testing.T) {
	first := "User-agent: *\n"
	last := "Disallow: /last\n"
	pad := "#" + strings.Repeat("x", 500<<10-len(first)-len(last)-2) + "\n"
	assert.True(t, !Compile([]byte(first+pad+last), "amble").Match("/last").Allowed,
		"the last line within the limit is not read")
	r := Compile([]byte(first+pad+last+"Disallow: /more\n"), "amble")
	assert.True(t, !r.Match("/last").Allowed && r.Match("/more").Allowed, "the limit is not at 512,000 octets")
	for _, end := range []string{"", "Disallow: /more\n", strings.Repeat("Disallow: /more\n", 9999)} {
		r := Compile([]byte(first+"#"+pad+last+end), "amble")
		assert.True(t, !r.Match("/last").Allowed && r.Match("/la").Allowed && r.Match("/more").Allowed,
			"the line at the limit is not read to its end, or a line after it is read")
	}
	assert.True(t, !Compile([]byte(first+"#"+pad+strings.TrimSpace(last)), "amble").Match("/last").Allowed,
		"a file that ends in the line at the limit lacks it")
	long := "Disallow: /" + strings.Repeat("y", 9<<10) + "\n"
	if r := Compile([]byte(first+"#"+pad+long+last), "amble"); !r.Match(long[10:]).Allowed ||
		!r.Match("/last").Allowed {
		t.Error("a long line at the limit, or one after it, is read")
	}
	f := Parse([]byte(first + "#" + pad + long))
	assert.True(t, f.Cut && f.Warnings[len(f.Warnings)-1].Kind == WarnCut && f.Warnings[len(f.Warnings)-1].Line == 3,
		"cut %v, warnings %+v", f.Cut, f.Warnings)
}
