package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestCaptureHTTP2: an exchange over HTTP/2 is captured in the form of HTTP/1.1, with the body as it came, on a kept
// connection too, and within the bounds of header and body.
func TestCaptureHTTP2(t *testing.T) {
	big := strings.Repeat("y", 50_000)
	packed := gzipped(t, big)
	s, trust := secure(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Date", "Sat, 28 Nov 2026 12:00:00 GMT")
		switch r.URL.Path {
		case "/plain":
			h["Content-Type"] = []string{"text/plain"}
			h["X-Odd"] = []string{"one", "two"}
			_, _ = io.WriteString(w, "hello")
		case "/packed":
			h.Set("Content-Type", "text/plain")
			h.Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, packed)
		case "/gone":
			h.Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusGone)
		case "/same":
			h.Set("Etag", `"x"`)
			w.WriteHeader(http.StatusNotModified)
		case "/long":
			h.Set("Content-Type", "text/plain")
			for range 100 {
				_, _ = io.WriteString(w, big)
			}
		case "/broken":
			h.Set("Content-Type", "text/plain")
			h.Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	c := newClient(t, quick(trust, func(o *Options) {
		o.Spool, o.Capture, o.MaxBody = newSpool(t, 20_000, 1<<20), true, 100_000
	}))
	const date = "Date: Sat, 28 Nov 2026 12:00:00 GMT\r\n"
	text := "Content-Type: text/plain\r\n" + date
	for _, tt := range []struct {
		path, want  string
		plain, part bool
	}{
		{"/plain", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" + text + "X-Odd: one\r\nX-Odd: two\r\n\r\nhello", true,
			false},
		{"/packed", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n" +
			fmt.Sprintf("Content-Length: %d\r\n", len(packed)) + text + "\r\n" + packed, false, false},
		{"/gone", "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n" + text + "\r\n", true, false},
		{"/same", "HTTP/1.1 304 Not Modified\r\n" + date + "Etag: \"x\"\r\n\r\n", true, false},
		{"/long", "HTTP/1.1 200 OK\r\n" + text + "\r\n" + big + big, false, true},
		{"/plain", "", true, false},
		{"/broken", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n" + text + "\r\nhalf", false, true},
	} {
		u := parseURL(t, fmt.Sprintf("https://example.com:%d%s", securePort(s.Listener), tt.path))
		r, err := c.Do(context.Background(), Request{URL: u, Address: loopback, ETag: `"x"`})
		var failure *Error
		if errors.As(err, &failure) {
			r = failure.Partial
		}
		must.True(t, r != nil && r.Wire != nil && (err != nil) == (tt.path == "/broken"), "%v %v", tt.path, err)
		sent, _ := r.Wire.Request.Load(nil, 1<<20)
		assert.True(t, strings.HasPrefix(string(sent), ("GET "+tt.path+" HTTP/1.1\r\nHost: example.com:")) &&
			strings.HasSuffix(string(sent), "\r\n\r\n"), "%s: request %q", tt.path, sent)
		received := must.Get(r.Wire.Response.Load(nil, 1<<20))(t)
		if tt.part && tt.path == "/long" {
			received = received[:min(len(received), len(tt.want))]
		}
		assert.True(t, tt.want == "" || string(received) == tt.want, "%s: %d bytes %.300q, want %d bytes %.300q",
			tt.path, len(received), received, len(tt.want), tt.want)
		assert.True(t, r.Wire.Protocol == "h2" && !r.Wire.Chunked && r.Wire.Plain == tt.plain &&
			r.Wire.Truncated == tt.part, "%s: %+v", tt.path, r.Wire)
		body, err := r.Body.Load(nil, 1<<20)
		assert.True(t, tt.path != "/packed" || err == nil && bytes.Equal(body, []byte(big)),
			"%s: the body has %d bytes, %v", tt.path, len(body), err)
		must.Do(t, r.Close())
	}
}
