package fetch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// BenchmarkDo compares a request on a kept connection with net/http's.
func BenchmarkDo(b *testing.B) {
	body := strings.Repeat("x", 16<<10)
	response := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
	s := serve(b, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) != "" {
			_, _ = io.WriteString(c, response)
		}
	})
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		c := newClient(b, quick())
		u := s.url(b, "/")
		for b.Loop() {
			must.Get(c.Do(context.Background(), Request{URL: u, Address: loopback}))(b)
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		var t http.Transport
		defer t.CloseIdleConnections()
		client := http.Client{Transport: &t}
		for b.Loop() {
			r := must.Get(client.Get("http://" + s.Addr().String() + "/"))(b)
			must.Get(io.ReadAll(r.Body))(b)
			r.Body.Close()
		}
	})
}

// A page in each of the encodings.
func BenchmarkDoEncoded(b *testing.B) {
	page := []byte(
		strings.Repeat(
			"<p>a page of the web, and <a href=/x>another</a> one, of some length and little noise 0123456789", 600))
	for _, name := range []string{"identity", "gzip", "br", "zstd"} {
		b.Run(name, func(b *testing.B) {
			s := serveEncoded(b, name, encoded(b, name, page))
			c := newClient(b, quick(func(o *Options) { o.Spool = newSpool(b, 1<<20, 64<<20) }))
			u := s.url(b, "/")
			b.ReportAllocs()
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				r, err := c.Do(context.Background(), Request{URL: u, Address: loopback})
				must.True(b, err == nil && r.Body.Size() == int64(len(page)), "%v", err)
				_ = r.Close()
			}
		})
	}
}
