package warcfiles

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// BenchmarkExchange makes the records of one exchange with a page of text and links, with each
// compression.
func BenchmarkExchange(b *testing.B) {
	for _, format := range []string{warc.FormatGzip, warc.FormatZstd} {
		for level := 1; level <= warc.MaxLevel(format); level++ {
			benchRecords(b, fmt.Sprintf("%s=%d", format, level), archive.Compression{Format: format, Level: level})
		}
	}
	dictionary := must.Get(os.ReadFile("../testdata/dictionary"))(b)
	benchRecords(b, "dictionary=1", archive.Compression{Format: warc.FormatZstd, Level: 1, Dictionary: dictionary})
}

func benchRecords(b *testing.B, name string, c archive.Compression) {
	for _, size := range []int{8 << 10, 30 << 10} {
		b.Run(fmt.Sprintf("%s/bytes=%d", name, size), func(b *testing.B) {
			o := options(b)
			o.Formats, o.Records = []string{Name}, c
			pool := must.Get(spool.Open(spool.Options{Dir: b.TempDir(), Above: 1 << 20, Budget: 64 << 20}))(b)
			e := must.Get(archive.NewEncoder(o, pool))(b)
			visit := &archive.Visit{Exchange: benchExchange(size)}
			b.ReportAllocs()
			for b.Loop() {
				item := mustEncode(b, e, visit)
				b.ReportMetric(float64(item.Size()), "B/page")
				must.Do(b, item.Close())
			}
		})
	}
}

// benchExchange returns an exchange with a page of size bytes: words of a small language, and
// links.
func benchExchange(size int) *archive.Exchange {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() []byte {
		letters := make([]byte, 2+random.IntN(8))
		for i := range letters {
			letters[i] = "etaoinshrdlucmfwypvbgkjqxz"[min(random.IntN(26), random.IntN(26))]
		}
		return append(letters, ' ')
	}
	words := make([][]byte, 700)
	for i := range words {
		words[i] = word()
	}
	body := []byte("<!DOCTYPE html>\n<html lang=\"en\"><head><title>A page of text</title></head><body>\n")
	for n := 0; len(body) < size; n++ {
		if n%60 == 59 {
			body = fmt.Appendf(body, "</p>\n<p><a href=\"/section-%d/story-%d.html\">Story %d</a> ", random.IntN(20),
				random.IntN(5000), n)
		}
		body = append(body, words[min(random.IntN(len(words)), random.IntN(len(words)))]...)
	}
	response := fmt.Appendf(nil,
		"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Fri, 20 Nov 2026 12:14:15 GMT\r\nContent-Type: text/html; "+
			"charset=utf-8\r\n"+
			"Content-Length: %d\r\nLast-Modified: Thu, 19 Nov 2026 08:00:00 GMT\r\nETag: \"6740b1c0-2000\"\r\n\r\n%s",
		len(body),
		body)
	request :=
		"GET /section-3/story-77.html HTTP/1.1\r\nHost: www.site-17.example\r\nUser-Agent: amble/1.0 " +
			"(+https://amble.example/)\r\n" +
			"Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.1\r\nAccept-Encoding: gzip\r\n\r\n"
	facts := archive.Facts{
		{Name: "via", Value: "https://www.site-17.example/section-3/"}, {Name: "depth", Value: "3"},
		{Name: "attempt", Value: "1"},
		{Name: "robots", Value: "allowed"}, {Name: "robots-reason", Value: "no rule"},
		{Name: "robots-version", Value: "sha256:" + strconv.Itoa(1<<40)},
		{Name: "delay", Value: "1s"}, {Name: "delay-reason", Value: "configured"}, {Name: "first-byte-ms", Value: "12"},
		{Name: "fetch-time-ms", Value: "15"},
	}
	return &archive.Exchange{
		URL: "https://www.site-17.example/section-3/story-77.html", At: startOfTime,
		Address: netip.MustParseAddr("192.0.2.7"),
		Request: spool.Of([]byte(request)), Response: spool.Of(response), Facts: facts,
	}
}
