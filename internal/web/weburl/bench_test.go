package weburl

import (
	neturl "net/url"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
)

const (
	benchPlain = "https://www.example.org/wiki/Polite_crawling/history?action=view&offset=20260101&limit=500"
	benchUpper = "https://WWW.example.org/wiki/Polite_crawling/history?action=view&offset=20260101&limit=500"
	benchUTF8  = "https://www.example.org/wiki/Höfliches_Sammeln/Geschichte?action=view&offset=20260101&limit=500"
)

func BenchmarkParse(b *testing.B) {
	inputs := []struct{ name, text string }{
		{"plain", benchPlain},
		{"fragment", benchPlain + "#top"},
		{"slow/host", benchUpper},
		{"slow/utf8", benchUTF8},
		{"slow/idna", "http://bücher.example/"},
		{"slow/hostile", "http://EXAMPLE.org" + strings.Repeat("/aa", 600)},
		{"refused/mailto", "mailto:someone@example.org"},
	}
	for _, input := range inputs {
		b.Run(input.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Parse(input.text)
			}
		})
	}
	b.Run("net/url", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			u, _ := neturl.Parse(benchPlain)
			_ = u.String()
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	base := must.Get(Parse(benchPlain))(b)
	netBase, _ := neturl.Parse(benchPlain)
	refs := []struct{ name, text string }{
		{"absolute", "https://www.example.org/wiki/Robots_exclusion_standard"},
		{"path", "/wiki/Robots_exclusion_standard"},
		{"sibling", "current?limit=50"},
		{"parent", "../Crawl_delay"},
		{"query", "?action=edit"},
		{"fragment", "#History"},
		{"host", "//static.example.org/robots.html"},
		{"slow/space", "/wiki/Robots exclusion standard"},
		{"refused/javascript", "javascript:void(0)"},
	}
	for _, ref := range refs {
		b.Run(ref.name+"/weburl", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = base.Resolve(ref.text)
			}
		})
		b.Run(ref.name+"/net_url", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if u, err := netBase.Parse(ref.text); err == nil {
					_ = u.String()
				}
			}
		})
	}
}

func BenchmarkHost(b *testing.B) {
	b.Run("RegistrableDomain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			RegistrableDomain("www.crawl.example.co.uk")
		}
	})
	b.Run("ReverseHost", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ReverseHost("www.crawl.example.co.uk")
		}
	})
}
