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
)

// BenchmarkDo compares a request on a kept connection with net/http's.
func BenchmarkDo(b *testing.B) {
	body := strings.Repeat("x", 16<<10)
	response := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
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
			if _, err := c.Do(context.Background(), Request{URL: u, Address: loopback}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		var t http.Transport
		defer t.CloseIdleConnections()
		client := http.Client{Transport: &t}
		for b.Loop() {
			r, err := client.Get("http://" + s.Addr().String() + "/")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadAll(r.Body); err != nil {
				b.Fatal(err)
			}
			r.Body.Close()
		}
	})
}
