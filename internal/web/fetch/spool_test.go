package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
)

func newSpool(t testing.TB, above, budget int64) *spool.Pool {
	t.Helper()
	p := must.Get(spool.Open(spool.Options{Dir: t.TempDir(), Above: above, Budget: budget}))(t)
	t.Cleanup(func() {
		assert.True(t, p.Held() == 0 && p.Files() == 0, "%d bytes and %d files are still held", p.Held(), p.Files())
	})
	return p
}

func gzipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must.Get(io.WriteString(z, text))(t)
	must.Do(t, z.Close())
	return b.String()
}

// A body longer than the bound of one body is in a file, and so is a body for which no memory is
// left. Close frees everything.
func TestLargeBodiesAreInFiles(t *testing.T) {
	page := strings.Repeat("0123456789abcdef", 4096) // 64 KiB
	packed := gzipped(t, page)
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) != "" {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s",
				len(packed), packed)
		}
	})
	for name, tt := range map[string]struct {
		above, budget, max int64
		size               int
		inMemory           bool
	}{
		"room":            {1 << 20, 1 << 20, 1 << 20, 64 << 10, true},
		"larger than one": {32 << 10, 1 << 20, 1 << 20, 64 << 10, false},
		"no budget":       {1 << 20, 10 << 10, 1 << 20, 64 << 10, false},
		"none at all":     {1 << 20, 0, 1 << 20, 64 << 10, false},
		"cut in a file":   {32 << 10, 1 << 20, 50_000, 50_000, false},
		"cut in memory":   {1 << 20, 1 << 20, 50_000, 50_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			pool := newSpool(t, tt.above, tt.budget)
			c := newClient(t, quick(func(o *Options) { o.Spool, o.MaxBody = pool, tt.max }))
			r := must.Get(get(t, c, s))(t)
			defer r.Close()
			_, in := r.Body.Bytes()
			assert.True(t, in == tt.inMemory, "in memory: %v", in)
			assert.AtMost(t, pool.Held(), tt.budget, "bytes held of")
			if got := text(t, r); got != page[:tt.size] || r.Truncated != (tt.size < len(page)) {
				t.Errorf("%d bytes, truncated %v", len(got), r.Truncated)
			}
		})
	}
}

// Requests that fail within a body hold nothing afterwards, except the bytes captured until then if
// exchanges are kept.
func TestFailedBodies(t *testing.T) {
	part := strings.Repeat("x", 40<<10)
	for name, tt := range map[string]struct {
		answer         string
		chunked, whole bool
	}{
		"short":    {"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + part, false, false},
		"bad gzip": {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 40960\r\n\r\n" + part, false, true},
		"bad chunk": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na000\r\n" + part + "\r\nzz\r\n",
			true, false},
		"no body": {"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\n", false, false},
	} {
		for _, capture := range []bool{false, true} {
			s := serve(t, answer(tt.answer))
			c := newClient(t, quick(func(o *Options) { o.Spool, o.Capture = newSpool(t, 8<<10, 1<<20), capture }))
			r, err := get(t, c, s)
			if err == nil {
				r.Close()
				t.Fatalf("%s: no error", name)
			}
			var failure *Error
			must.True(t, errors.As(err, &failure) && (failure.Partial != nil) == capture, "%s: %+v", name, failure)
			if p := failure.Partial; p != nil {
				received, err := p.Wire.Response.Load(nil, 1<<20)
				assert.True(t, err == nil && strings.HasPrefix(tt.answer, string(received)) &&
					len(received) >= min(len(tt.answer), 4<<10), "%s: kept %d bytes of %d (%v)", name, len(received),
					len(tt.answer), err)
				assert.True(t, p.Truncated && p.Wire.Truncated != tt.whole && !p.Wire.Plain &&
					p.Wire.Chunked == tt.chunked && p.Status/100 != 0 && !p.Start.IsZero() &&
					!p.End.Before(p.FirstByte), "%s: %+v, %+v", name, p, p.Wire)
			}
			must.Do(t, failure.Partial.Close())
		}
	}
}

// A directory that cannot be written is a fault of this machine, not of the server.
func TestSpoolWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	pool := must.Get(spool.Open(spool.Options{Dir: dir + "/s", Above: 8 << 10, Budget: 1 << 20}))(t)
	must.Do(t, os.Remove(dir+"/s"))
	page := strings.Repeat("x", 40<<10)
	s := serve(t, answer(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(page), page)))
	for _, capture := range []bool{false, true} {
		_, err := get(t, newClient(t, quick(func(o *Options) { o.Spool, o.Capture = pool, capture })), s)
		wantKind(t, err, KindLocal)
		var full *spool.Error
		assert.True(t, errors.As(err, &full), "error %v does not say that it is the spool's", err)
		if failure := (*Error)(nil); errors.As(err, &failure) && failure.Partial != nil {
			t.Error("the start of the response is kept, as if the server had broken off")
			_ = failure.Partial.Close()
		}
	}
	assert.Equal(t, pool.Held(), 0, "bytes held")
}

// Wire has what the two sides exchanged, byte for byte, on a reused connection too.
func TestCapture(t *testing.T) {
	big := strings.Repeat("y", 50_000)
	responses := []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Odd:   spaces \r\n\r\nhello",
		"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: " +
			"t\r\n\r\n",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 50000\r\n\r\n" + big,
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" + gzipped(t, big),
		"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
	}
	responses[3] = fmt.Sprintf(responses[3], len(gzipped(t, big)))
	var mu sync.Mutex
	var heads []string
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		for i := 0; ; i++ {
			head := readHead(r)
			if head == "" {
				return
			}
			mu.Lock()
			heads = append(heads, head)
			mu.Unlock()
			fmt.Fprint(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", responses[i])
		}
	})
	c := newClient(t, quick(func(o *Options) { o.Spool, o.Capture = newSpool(t, 20_000, 1<<20), true }))
	for i, want := range responses {
		r := must.Get(c.Do(context.Background(), Request{URL: s.url(t, "/"), Address: loopback, ETag: `"x"`}))(t)
		sent, err := r.Wire.Request.Load(nil, 1<<20)
		received, err2 := r.Wire.Response.Load(nil, 1<<20)
		must.True(t, err == nil && err2 == nil, "%v %v", err, err2)
		mu.Lock()
		assert.Equal(t, string(sent), heads[i], i, "request", sent, "the server saw")
		mu.Unlock()
		assert.True(t, string(received) == want && !r.Wire.Truncated,
			"%d: %d bytes %.200q, the server sent %d bytes %.200q", i, len(received), received, len(want), want)
		body, err := r.Body.Load(nil, 1<<20)
		_, payload, _ := bytes.Cut(received, []byte("\r\n\r\n"))
		assert.Equal(t, r.Wire.Chunked, (i == 1), i, "chunked")
		assert.True(t, r.Wire.Plain == (r.Wire.Chunked || bytes.Equal(body, payload)) && err == nil,
			"%d: plain is %t, but the body has %d bytes, the payload %d; %v", i, r.Wire.Plain, len(body), len(payload),
			err)
		must.Do(t, r.Close())
	}
	assert.Equal(t, s.accepted(), 1, "connections")
}

// The capture of a response is bounded by the bounds of header and body, whatever its framing.
func TestCaptureIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		first, part string
		cut         bool
	}{
		"long": {"HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 5000), true},
		"tiny chunks": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
			strings.Repeat("1\r\nx\r\n", 1000), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, forever(tt.first, tt.part, 0))
			c := newClient(t, quick(func(o *Options) {
				o.Spool, o.Capture, o.MaxBody, o.MaxHeader = newSpool(t, 8<<10, 1<<20), true, 100_000, 1024
			}))
			r := must.Get(get(t, c, s))(t)
			defer r.Close()
			if n := r.Wire.Response.Size(); n < 50_000 || n > 101_024 || !r.Wire.Truncated || !r.Truncated {
				t.Errorf("%d bytes, truncated %v", n, r.Wire.Truncated)
			}
			assert.Equal(t, string(r.Wire.Response.Head(15)), "HTTP/1.1 200 OK", "begins with")
		})
	}
}

func BenchmarkDoSpooled(b *testing.B) {
	for _, size := range []int{16 << 10, 4 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) { benchDoSpooled(b, size) })
	}
}

func benchDoSpooled(b *testing.B, size int) {
	body := strings.Repeat("x", size)
	response := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
	s := serve(b, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) != "" {
			_, _ = io.WriteString(c, response)
		}
	})
	for _, capture := range []bool{false, true} {
		b.Run(fmt.Sprintf("capture=%v", capture), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			c := newClient(b, quick(func(o *Options) {
				o.Spool, o.Capture, o.MaxBody = newSpool(b, 1<<20, 64<<20), capture,
					10<<20
			}))
			u := s.url(b, "/")
			for b.Loop() {
				r := must.Get(c.Do(context.Background(), Request{URL: u, Address: loopback}))(b)
				r.Close()
			}
		})
	}
}

// Bytes that a server sends beyond the end of its response are not a part of it.
func TestCaptureEndsWithTheResponse(t *testing.T) {
	for _, want := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", // what looks like the end of a header is not
		"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n6\r\n\r\n\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
	} {
		s := serve(t, answer(want+"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"))
		c := newClient(t, quick(func(o *Options) { o.Spool, o.Capture = newSpool(t, 20_000, 1<<20), true }))
		r := must.Get(get(t, c, s))(t)
		received, err := r.Wire.Response.Load(nil, 1<<20)
		assert.True(t, err == nil && string(received) == want && strings.TrimSpace(text(t, r)) == "hello",
			"captured %q, %v, want %q", received, err, want)
		must.Do(t, r.Close())
	}
}
