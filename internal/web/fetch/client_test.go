package fetch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

const okEmpty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

func TestRequestOnTheWire(t *testing.T) {
	heads := make(chan string, 1)
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		heads <- readHead(r)
		fmt.Fprint(c, okEmpty)
	})
	c := newClient(t, quick(func(o *Options) { o.From = "crawl@amble.test"; o.Accept = "text/html" }))
	u := s.url(t, "/a/%7eb%2F;c='d'?e=f|g&%zz=")
	must.Get(c.Do(context.Background(), Request{URL: u, Address: loopback, ETag: `W/"x"`,
		LastModified: "Mon, 02 Jan 2006 15:04:05 GMT"}))(t)
	want := "GET " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.HostPort() + "\r\n" +
		"User-Agent: amble-test/1 (+https://amble.test/)\r\nFrom: crawl@amble.test\r\nAccept: text/html\r\n" +
		"Accept-Encoding: gzip, deflate, br, zstd\r\nIf-None-Match: W/\"x\"\r\nIf-Modified-Since: Mon, 02 Jan 2006 " +
		"15:04:05 GMT\r\n\r\n"
	assert.Equal(t, <-heads, want, "sent")
}

// A validator that a server slipped a line break into is not sent on.
func TestValidatorsCannotInjectHeaders(t *testing.T) {
	c := newClient(t, quick())
	r := Request{URL: parseURL(t, "http://a.test/"), ETag: "\"x\"\r\nX: y", LastModified: "a\nb"}
	head := string(c.requestHead(r, c.fields(r)))
	assert.True(t, !strings.Contains(head, "X: y") && !strings.Contains(head, "If-"), "head %q", head)
}

func TestResponse(t *testing.T) {
	s := serve(t,
		answer(
			"HTTP/1.1 404 Gone Fishing\r\nX-Robots-Tag: noindex\r\nX-Robots-Tag: nofollow\r\nTransfer-Encoding: "+
				"chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"))
	clock := time.Unix(1000, 0)
	var mu sync.Mutex
	c := must.Get(New(quick(), func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		clock = clock.Add(time.Second)
		return clock
	}))(t)
	defer c.Close()
	r := must.Get(c.Do(context.Background(), Request{URL: s.url(t, "/"), Address: loopback}))(t)
	assert.True(t, r.Status == 404 && r.Proto == "HTTP/1.1" && text(t, r) == "hello world" && !r.Truncated &&
		len(r.Header["X-Robots-Tag"]) == 2, "response %+v", r)
	assert.True(t, r.Start.Unix() > 1000 && r.Connected.After(r.Start) && r.FirstByte.After(r.Connected) &&
		r.End.After(r.FirstByte) && !r.End.After(clock), "times %v %v %v %v are not the client's clock", r.Start,
		r.Connected, r.FirstByte, r.End)
	assert.Equal(t, r.RemoteAddr, netip.AddrPortFrom(loopback, s.port()), "remote")
	assert.AtLeast(t, r.WireBytes, 100, "bytes on the wire")
}

func TestRedirectIsAResponse(t *testing.T) {
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) != "" {
			fmt.Fprint(c, "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")
		}
	})
	c := newClient(t, quick())
	for range 2 {
		r, err := get(t, c, s)
		must.True(t, err == nil && r.Status == 302 && r.Header.Get("Location") == "/elsewhere", "%+v %v", r, err)
	}
	assert.Equal(t, s.accepted(), 1, "connections")
}

func TestBodylessResponses(t *testing.T) {
	for _, status := range []string{"204 No Content", "304 Not Modified"} {
		s := serve(t, func(c net.Conn, r *bufio.Reader) {
			for readHead(r) != "" {
				fmt.Fprintf(c, "HTTP/1.1 %s\r\nETag: \"x\"\r\nContent-Encoding: gzip\r\n\r\n", status)
			}
		})
		c := newClient(t, quick())
		for range 2 {
			r, err := c.Do(context.Background(), Request{URL: s.url(t, "/"), Address: loopback, ETag: `"x"`})
			assert.True(t, err == nil && r.Body.Size() == 0, "%s: %+v %v", status, r, err)
		}
		assert.Equal(t, s.accepted(), 1, status, "connection not reused")
	}
}

// A 304 is valid only for a request with validators.
func TestUnaskedNotModified(t *testing.T) {
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) != "" {
			fmt.Fprint(c, "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n")
		}
	})
	c := newClient(t, quick())
	for _, tt := range []struct {
		etag, modified string
		kind           Kind
	}{{"", "", KindBadResponse}, {`"x"`, "", 0}, {"", "Fri, 20 Nov 2026 14:00:00 GMT", 0}} {
		r, err := c.Do(context.Background(), Request{URL: s.url(t, "/"), Address: loopback, ETag: tt.etag,
			LastModified: tt.modified})
		if tt.kind != 0 {
			wantKind(t, err, tt.kind)
		} else if err != nil || r.Status != 304 {
			t.Errorf("%+v %v", r, err)
		}
	}
}

// Of fields that count only once, the response has one line: the strictest.
func TestFieldsOnSeveralLines(t *testing.T) {
	s := serve(t,
		answer(
			"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nRetry-After: 120\r\nCache-Control: max-age=5\r\nCache-Control: "+
				"no-store\r\n"+
				"Content-Type: text/plain\r\nContent-Type: text/html\r\nLocation: /a\r\nLocation: /b\r\nX-Robots-Tag: "+
				"a\r\nX-Robots-Tag: b\r\nContent-Length: 0\r\n\r\n"))
	r := must.Get(get(t, newClient(t, quick()), s))(t)
	want := http.Header{"Retry-After": {"120"}, "Cache-Control": {"max-age=5, no-store"}, "Content-Type": {"text/html"},
		"X-Robots-Tag": {"a", "b"}, "Content-Length": {"0"}}
	assert.True(t, maps.EqualFunc(r.Header, want, slices.Equal), "%v, want %v", r.Header, want)
}

func TestMaxBody(t *testing.T) {
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) != "" {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n%s", strings.Repeat("x", 100))
		}
	})
	c := newClient(t, quick(func(o *Options) { o.MaxBody = 60 }))
	for _, tt := range []struct {
		limit     int64
		size      int
		truncated bool
	}{{0, 60, true}, {99, 99, true}, {100, 100, false}, {101, 100, false}, {1, 1, true}} {
		r, err := c.Do(context.Background(), Request{URL: s.url(t, "/"), Address: loopback, MaxBody: tt.limit})
		assert.True(t, err == nil && r.Body.Size() == int64(tt.size) && r.Truncated == tt.truncated,
			"limit %d: %d bytes, truncated %v, %v", tt.limit, r.Body.Size(), r.Truncated, err)
	}
}

func TestUnsupportedRequests(t *testing.T) {
	c := newClient(t, quick())
	for name, r := range map[string]Request{
		"no URL":           {Address: loopback},
		"negative MaxBody": {URL: parseURL(t, "http://a.test/"), Address: loopback, MaxBody: -1},
	} {
		_, err := c.Do(context.Background(), r)
		assert.True(t, !wantKind(t, err, KindUnsupported).Sent, "%s: sent", name)
	}
}

func TestCancel(t *testing.T) {
	received := make(chan struct{})
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		if readHead(r) == "" {
			return // the client had given up while connecting
		}
		close(received)
		readHead(r)
	})
	c := newClient(t, quick())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-received
		cancel()
	}()
	_, err := c.Do(ctx, Request{URL: s.url(t, "/"), Address: loopback})
	assert.True(t, wantKind(t, err, KindCanceled).Sent, "the request had been sent")
	_, err = c.Do(ctx, Request{URL: s.url(t, "/"), Address: loopback})
	assert.True(t, !wantKind(t, err, KindCanceled).Sent, "nothing had been sent")
}

func TestConcurrentRequests(t *testing.T) {
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		for {
			head := readHead(r)
			if head == "" {
				return
			}
			path := strings.Fields(head)[1]
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(path), path)
		}
	})
	c := newClient(t, quick(func(o *Options) { o.MaxIdleConns = 3 }))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 30 {
				path := fmt.Sprintf("/%d/%d", i, j)
				r, err := c.Do(context.Background(), Request{URL: s.url(t, path), Address: loopback})
				if err != nil || text(t, r) != path {
					t.Errorf("%s: %v", path, err)
					return
				}
			}
		})
	}
	wg.Wait()
	assert.AtMost(t, c.pool.len(), 3, "idle connections")
}

// TestUndelivered: what a request that was broken off has left in the kernel is not delivered later, when the
// server, or the network, takes data again. Other requests are made by then.
func TestUndelivered(t *testing.T) {
	ready, seen := make(chan struct{}), make(chan string, 1)
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		<-ready
		all, _ := io.ReadAll(r) // up to the end or the reset
		seen <- string(all)
	})
	c := newClient(t, quick(short(100*time.Millisecond), func(o *Options) {
		o.Dial = func(_ context.Context, network, address string) (net.Conn, error) {
			c, err := net.Dial(network, address)
			if err != nil {
				return nil, err
			}
			const more = 256 << 10 // than the other end takes without being read
			err = c.(*net.TCPConn).SetWriteBuffer(2 * more)
			if err == nil {
				_, err = c.Write(make([]byte, more))
			}
			return c, err
		}
	}))
	_, err := get(t, c, s)
	assert.True(t, wantKind(t, err, KindHeaderTimeout).Sent, "nothing of the request was handed to the kernel")
	close(ready)
	assert.True(t, !strings.Contains(<-seen, "GET / "), "the server has received the request after it was broken off")
}

// len returns the number of idle connections.
func (p *pool) len() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		for ; c != nil; c = c.below {
			n++
		}
	}
	return n
}

// TestHeaderOnly: no byte of a body is waited for, after a HEAD on a connection that stays open, after a GET on one
// that does not. What the header says of the body does not matter.
func TestHeaderOnly(t *testing.T) {
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		for head := readHead(r); head != ""; head = readHead(r) {
			fmt.Fprint(c, "HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\nContent-Length: 1000000000\r\n\r\n")
			if strings.HasPrefix(head, "GET") {
				fmt.Fprint(c, "ab")
			}
		}
	})
	c := newClient(t, quick())
	for n, isHead := range []bool{true, true, false, true} {
		r, err := c.Do(t.Context(), Request{URL: s.url(t, "/"), Address: loopback, HeaderOnly: true, Head: isHead})
		must.True(t, err == nil && r.Status == 404 && r.Body.Size() <= 0, "request %d: %+v %v", n, r, err)
		_ = r.Close()
	}
	assert.Equal(t, s.accepted(), 2, "connections")
}
