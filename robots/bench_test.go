package robots

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/temoto/robotstxt"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// benchFile is one of the three sizes of robots.txt that the targets are for.
type benchFile struct {
	name string
	body []byte
	uri  string
}

func benchFiles() []benchFile {
	return []benchFile{
		{"a", fileA(), "/products/shoes/42?colour=red&size=10"},
		{"b", fileB(), "/section-0777/archive/2024/05/item.html?page=2"},
		{"c", fileC(), "/" + strings.Repeat("abcdefghi/", 99) + "end.html"},
	}
}

// fileA has 25 rules in 1 KB, as a small shop writes them.
func fileA() []byte {
	var b bytes.Buffer
	b.WriteString("# robots.txt of a small shop; please be kind to our only server, it is old and " +
		"slow\n\nUser-agent: *\nCrawl-delay: 2\n")
	for _, p := range []string{
		"/admin/", "/cart", "/checkout/", "/account/", "/search?", "/*?sort=", "/*&filter=", "/tmp/", "/cgi-bin/",
		"/private/documents/",
		"/customer/account/login/", "/wishlist/index/add/", "/newsletter/manage/", "/review/product/list/", "/*.pdf$",
		"/sendfriend/",
		"/catalogsearch/result/", "/products/*/print", "/downloadable/download/", "/includes/", "/lib/", "/pkginfo/",
		"/report/",
	} {
		fmt.Fprintf(&b, "Disallow: %s\n", p)
	}
	b.WriteString("Allow: /products/\nAllow: /checkout/help\n\nUser-agent: BadBot\nUser-agent: " +
		"WorseBot\nDisallow: /\n\n")
	b.WriteString("Sitemap: https://shop.example.com/sitemap.xml\n# the end: ")
	for b.Len() < 1023 {
		b.WriteByte('.')
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// fileB has 2,000 rules in 48.5 KB. 1,250 of them are for our group, and 18 in 100 have a star, as
// in real files.
func fileB() []byte {
	var b bytes.Buffer
	rng := rand.New(rand.NewPCG(1, 2))
	write := func(agent string, rules int) {
		fmt.Fprintf(&b, "User-agent: %s\n", agent)
		for i := range rules {
			kind := "Disallow"
			if i%10 == 9 {
				kind = "Allow"
			}
			path := fmt.Sprintf("/section-%04d/x%d", rng.IntN(2000), i)
			if i%100 < 18 {
				path = fmt.Sprintf("/*/s%03d*%d.php", rng.IntN(1000), i)
			}
			fmt.Fprintf(&b, "%s: %s\n", kind, path[:min(len(path), 15)])
		}
		b.WriteByte('\n')
	}
	write("OtherBot", 750)
	write("amble", 1250)
	for b.Len() < 48_500 {
		b.WriteString("# filler\n")
	}
	return b.Bytes()
}

// fileC has 19,317 rules in 500 KiB, each with stars.
func fileC() []byte {
	var b bytes.Buffer
	b.WriteString("User-agent: *\n")
	for i := range 19_317 {
		fmt.Fprintf(&b, "Disallow: /*a*%05d*b%d$\n", i, i%1000)
	}
	return b.Bytes()[:min(b.Len(), MaxBody)]
}

func BenchmarkParse(b *testing.B) {
	for _, f := range benchFiles() {
		b.Run(f.name, func(b *testing.B) {
			b.SetBytes(int64(len(f.body)))
			b.ReportAllocs()
			var size int
			for b.Loop() {
				size = Compile(f.body, "amble").Size()
			}
			b.ReportMetric(float64(size), "retained-B")
		})
		b.Run(f.name+"/temoto", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must.Get(robotstxt.FromBytes(f.body))(b)
			}
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, f := range benchFiles() {
		r := Compile(f.body, "amble")
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Match(f.uri)
			}
		})
		data, err := robotstxt.FromBytes(f.body)
		must.Do(b, err)
		group := data.FindGroup("amble")
		b.Run(f.name+"/temoto", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				group.Test(f.uri)
			}
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	for _, f := range benchFiles() {
		r, _ := DefaultOptions().Next(Record{}, Outcome{URL: robotsURL, Status: 200, Body: f.body}, begin)
		stored, err := r.AppendBinary(nil)
		must.Do(b, err)
		b.Run("append/"+f.name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf, err = r.AppendBinary(buf[:0])
				must.True(b, err == nil, "%v", err)
			}
			b.ReportMetric(float64(len(stored)), "stored-B")
		})
		b.Run("decode/"+f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must.Get(DecodeRecord(stored))(b)
			}
		})
	}
}
