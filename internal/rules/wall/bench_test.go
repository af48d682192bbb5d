package wall

import (
	"strings"
	"testing"
	"time"
)

func BenchmarkObserve(b *testing.B) {
	answers := make([]Answer, 64)
	for i := range answers {
		answers[i] = Answer{
			Status: 200, HTML: true, Length: 20_000, Digest: uint64(i) * 0x9e3779b97f4a7c15,
			URL:     uint64(i) * 0xbf58476d1ce4e5b9,
			Section: uint16(i%7 + 2), Top: uint16(i%3 + 2),
		}
		if i%8 == 3 {
			answers[i].Status = 403
		}
		if i%4 == 1 {
			answers[i].Length = 2_000
		}
	}
	at := time.Unix(1_760_000_000, 0)
	var s State
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Observe(at.Add(time.Duration(i)*time.Second), answers[i%len(answers)])
	}
}

// BenchmarkFind searches 64 KiB: text as people write it, and a body made to keep the automaton busy.
func BenchmarkFind(b *testing.B) {
	marks := NewMarks()
	header := map[string][]string{"Content-Type": {"text/html"}, "Server": {"nginx"}, "Cache-Control": {"no-cache"}}
	for name, body := range map[string]string{
		"prose":   strings.Repeat("<p>The quick brown fox, checking its browser, jumps over a page.</p>\n", 1000),
		"page":    strings.Repeat("<li><a href=\"/section-7/page-10\">Page 10</a> of mills and meadows</li>\n", 1000),
		"hostile": strings.Repeat("<title>Just a moment..<title>Access Denie<h1>Access Denie/_Incapsula_Resourc", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(bodyBytes)
			b.ReportAllocs()
			body := []byte(body)[:bodyBytes]
			for b.Loop() {
				marks.Find(header, body)
			}
		})
	}
}

func BenchmarkMayHaveKey(b *testing.B) {
	body := []byte(strings.Repeat("<li><a href=\"/section-7/page-10\">Page 10</a> of mills and meadows</li>\n", 400))
	b.SetBytes(shapeBytes)
	for b.Loop() {
		MayHaveKey(body)
	}
}

func BenchmarkShape(b *testing.B) {
	body := []byte(strings.Repeat("<p>The quick brown fox jumps over a page.</p>\n", 400))
	b.SetBytes(shapeBytes)
	for b.Loop() {
		Shape(body, "www.example.com/the/quick/brown/fox")
	}
}
