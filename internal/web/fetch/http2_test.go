package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// After one request that a reused connection failed, without a fault of the server, each request
// has its own connection, over HTTP/2 as over HTTP/1.1, and a break there counts.
func TestBrokenHTTP2Connections(t *testing.T) {
	for name, tt := range map[string]struct {
		refuse func(f *http2.Framer, id uint32)
		fresh  Kind // of the same on a new connection
	}{
		"closes": {func(*http2.Framer, uint32) {}, KindClosed},
		"refused stream": {func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream) },
			KindReset},
		"protocol error": {func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeProtocol) },
			KindReset},
		"going away": {func(f *http2.Framer, id uint32) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil) }, KindClosed},
		"goes away, busy": {func(f *http2.Framer,
			id uint32) {
			_ = f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil)
		},
			KindClosed},
		"bad status": {func(f *http2.Framer, id uint32) { respond(f, id, ":status", "65736") }, KindBadResponse},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			failing := func(n int32) bool { return n == 2 || n >= 6 }
			s, trust := rawHTTP2(t, func(f *http2.Framer, id uint32) bool {
				if !failing(requests.Add(1)) {
					respond(f, id, ":status", "204")
					return true
				}
				tt.refuse(f, id)
				return name != "closes"
			})
			c := newClient(t, quick(trust))
			for n, want := range []Kind{0, KindLostOnReuse, 0, 0, 0, tt.fresh, tt.fresh} {
				_, err := getTLS(t, c, "example.com", int(s.port()), "/")
				var e *Error
				switch reset := errors.As(err, &e) && e.Kind == KindReset && want == KindClosed; {
				case reset: // the server closes with something unread
				case want != 0:
					wantKind(t, err, want)
				case err != nil:
					t.Errorf("request %d: %v", n, err)
				}
			}
			assert.Equal(t, requests.Load(), 7, "the server saw requests")
			assert.Equal(t, s.accepted(), 6, "connections")
		})
	}
}

// A refused first stream costs nothing once. A server that refuses all streams fails.
func TestRefusedOnNewConnections(t *testing.T) {
	for name, tt := range map[string]struct {
		refuse func(f *http2.Framer, id uint32)
		then   Kind
	}{
		"refused stream": {func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream) },
			KindReset},
		"going away": {func(f *http2.Framer, id uint32) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil) }, KindClosed},
	} {
		t.Run(name, func(t *testing.T) {
			s, trust := rawHTTP2(t, func(f *http2.Framer, id uint32) bool { tt.refuse(f, id); return true })
			c := newClient(t, quick(trust))
			for _, want := range []Kind{KindLostOnReuse, tt.then, tt.then} {
				_, err := getTLS(t, c, "example.com", int(s.port()), "/")
				wantKind(t, err, want)
			}
		})
	}
}

// A server that wants HTTP/1.1 for a request gets HTTP/1.1 from then on.
func TestHTTP11Required(t *testing.T) {
	for name, refuse := range map[string]func(*http2.Framer, uint32){
		"stream":     func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeHTTP11Required) },
		"connection": func(f *http2.Framer, _ uint32) { _ = f.WriteGoAway(0, http2.ErrCodeHTTP11Required, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s, trust := rawHTTP2(t, func(f *http2.Framer, id uint32) bool { refuse(f, id); return true })
			c := newClient(t, quick(trust))
			_, err := getTLS(t, c, "example.com", int(s.port()), "/")
			wantKind(t, err, KindLostOnReuse)
			for range 2 {
				r, err := getTLS(t, c, "example.com", int(s.port()), "/")
				must.True(t, err == nil && r.Proto == "HTTP/1.1", "%+v, %v", r, err)
			}
			assert.Equal(t, s.accepted(), 2, "connections")
		})
	}
}

// HTTP/2 refuses what HTTP/1.1 would refuse, with the same kind of error.
func TestHTTP2RefusesAsHTTP1(t *testing.T) {
	header := func(f *http2.Framer, id uint32, end bool, block string) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(block), EndHeaders: end})
	}
	big := make([]string, 0, 200)
	for i := range 50 {
		big = append(big, fmt.Sprintf("x-%d", i), strings.Repeat("v", 2000))
	}
	for name, tt := range map[string]struct {
		do   func(f *http2.Framer, id uint32)
		kind Kind
	}{
		"100 KB of header": {func(f *http2.Framer, id uint32) {
			respond(f, id,
				append([]string{":status", "200"}, big...)...)
		}, KindHeaderTooLarge},
		"a field of 100 KB": {func(f *http2.Framer, id uint32) {
			respond(f, id, ":status", "200", "x",
				strings.Repeat("v", 100_000))
		}, KindHeaderTooLarge},
		"an endless header": {func(f *http2.Framer, id uint32) {
			header(f, id, false, "")
			for f.WriteContinuation(id, false, []byte(strings.Repeat("\x00\x01x\x01y", 20))) == nil {
			}
		}, KindHeaderTooLarge},
		"empty continuations": {func(f *http2.Framer, id uint32) {
			header(f, id, false, "")
			for f.WriteContinuation(id, false, nil) == nil {
			}
		}, KindHeaderTooLarge},
		"interim responses": {func(f *http2.Framer, id uint32) {
			for range 40 {
				interimHTTP2(f, id, "link", "</a>")
			}
		}, KindBadResponse},
		"large interims": {func(f *http2.Framer, id uint32) {
			for range 12 {
				interimHTTP2(f, id, "link", strings.Repeat("v", 8000))
			}
		}, KindHeaderTooLarge},
		"status of five digits": {func(f *http2.Framer, id uint32) { respond(f, id, ":status", "65736") },
			KindBadResponse},
		"status 1000": {func(f *http2.Framer, id uint32) { respond(f, id, ":status", "1000") },
			KindBadResponse},
		"status below 100": {func(f *http2.Framer, id uint32) { respond(f, id, ":status", "099") },
			KindBadResponse},
		"status with a sign": {func(f *http2.Framer, id uint32) { respond(f, id, ":status", "+200") },
			KindBadResponse},
		"status of a word": {func(f *http2.Framer, id uint32) { respond(f, id, ":status", "ok") },
			KindBadResponse},
		"no status": {func(f *http2.Framer, id uint32) { respond(f, id, "x", "y") }, KindBadResponse},
		"two lengths": {func(f *http2.Framer, id uint32) {
			respond(f, id, ":status", "200", "content-length", "0", "content-length", "1")
		}, KindBadResponse},
		"length of a word": {func(f *http2.Framer,
			id uint32) {
			respond(f, id, ":status", "200", "content-length", "-1")
		},
			KindBadResponse},
		"shorter than said": {func(f *http2.Framer,
			id uint32) {
			respond(f, id, ":status", "200", "content-length", "5")
		},
			KindIncompleteBody},
		"reset": {func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeInternal) },
			KindReset},
	} {
		t.Run(name, func(t *testing.T) {
			s, trust := rawHTTP2(t, func(f *http2.Framer, id uint32) bool { tt.do(f, id); return true })
			_, err := getTLS(t, newClient(t, quick(trust)), "example.com", int(s.port()), "/")
			wantKind(t, err, tt.kind)
		})
	}
}

// The length of a 304 is that of the page it has not sent.
func TestNotModifiedHasALength(t *testing.T) {
	s, trust := rawHTTP2(t, func(f *http2.Framer, id uint32) bool {
		respond(f, id, ":status", "304", "content-length", "5")
		return true
	})
	c := newClient(t, quick(trust))
	for range 2 {
		r, err := c.Do(context.Background(), Request{URL: parseURL(t, fmt.Sprintf("https://example.com:%d/", s.port())),
			Address: loopback, ETag: `"x"`})
		must.True(t, err == nil && r.Status == 304 && r.Body.Size() == 0, "%+v, %v", r, err)
	}
	assert.Equal(t, s.accepted(), 1, "the connection was not kept")
}

// floods are frames that a server may send without end.
func floods() map[string]func(f *http2.Framer) error {
	return map[string]func(f *http2.Framer) error{
		"unknown":        func(f *http2.Framer) error { return f.WriteRawFrame(0xbe, 0, 0, nil) },
		"unknown, large": func(f *http2.Framer) error { return f.WriteRawFrame(0xbe, 0, 1, make([]byte, 4000)) },
		"ping":           func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) },
		"ping answers":   func(f *http2.Framer) error { return f.WritePing(true, [8]byte{}) },
		"settings":       func(f *http2.Framer) error { return f.WriteSettings() },
		"empty content":  func(f *http2.Framer) error { return f.WriteData(1, false, nil) },
		"other content":  func(f *http2.Framer) error { return f.WriteData(77, false, make([]byte, 10)) },
		"padding":        func(f *http2.Framer) error { return f.WriteDataPadded(1, false, nil, make([]byte, 255)) },
		"windows":        func(f *http2.Framer) error { return f.WriteWindowUpdate(0, 1) },
		"stream windows": func(f *http2.Framer) error { return f.WriteWindowUpdate(9, 1) },
		"priorities":     func(f *http2.Framer) error { return f.WritePriority(1, http2.PriorityParam{StreamDep: 3}) },
		"resets":         func(f *http2.Framer) error { return f.WriteRSTStream(99, http2.ErrCodeCancel) },
	}
}

// A server that floods a connection with frames that carry nothing loses the connection, whether a
// request is under way or not.
func TestHTTP2Floods(t *testing.T) {
	for name, flood := range floods() {
		for _, when := range []string{"header", "body", "idle"} {
			t.Run(name+"/"+when, func(t *testing.T) {
				t.Parallel()
				done := make(chan struct{})
				s, trust := rawHTTP2(t, func(f *http2.Framer, id uint32) bool {
					switch when {
					case "idle":
						respond(f, id, ":status", "200")
					case "body":
						_ = f.WriteHeaders(
							http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x88}, EndHeaders: true})
						_ = f.WriteData(id, false, []byte("some content"))
					}
					for flood(f) == nil {
					}
					close(done)
					return false
				})
				c := newClient(t, quick(trust, func(o *Options) {
					o.HeaderTimeout, o.BodyIdleTimeout, o.Timeout = time.Hour,
						time.Hour, time.Hour
				}))
				_, err := getTLS(t, c, "example.com", int(s.port()), "/")
				if when == "idle" && err != nil {
					t.Fatal(err)
				} else if when != "idle" {
					var e *Error
					unopened := name == "other content" && when == "body" // net/http ends the connection first
					assert.True(t, errors.As(err, &e) &&
						(e.Kind == KindBadResponse || unopened && e.Kind == KindIncompleteBody), "error %v", err)
				}
				<-done
			})
		}
	}
}

// Reasonable servers are not taken for floods: small pieces, some padding, occasional pings.
func TestHTTP2WithinReason(t *testing.T) {
	const pieces = 5000
	s, trust := rawHTTP2(t, func(f *http2.Framer, id uint32) bool {
		_ = f.WriteRawFrame(0xc, 0, 0, make([]byte, 2000)) // ORIGIN
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x88}, EndHeaders: true})
		for i := range pieces {
			_ = f.WriteData(id, i == pieces-1, []byte{'x'})
			if i%100 == 0 {
				_ = f.WritePing(false, [8]byte{})
				_ = f.WriteDataPadded(id, false, []byte(strings.Repeat("y", 150)), make([]byte, 200))
			}
		}
		return true
	})
	c := newClient(t, quick(trust))
	for range 3 {
		r, err := getTLS(t, c, "example.com", int(s.port()), "/")
		must.True(t, err == nil && r.Body.Size() == pieces+pieces/100*150, "%+v, %v", r, err)
	}
	assert.Equal(t, s.accepted(), 1, "the connection was not kept")
}

// The frames are counted the same however they are cut into pieces.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x05\x00\x08\x00\x00\x00\x01\x02ab\x00\x00\x00\x00\x02\x01\x04\x00\x00\x00\x01ok"), uint8(1))
	f.Add([]byte("\x00\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		type state struct {
			overhead, header, left int64
			have                   int
			err                    error
		}
		advance := func(size int) state {
			g := frames{maxHeader: 1000}
			g.begin()
			for piece := range slices.Chunk(b, size) {
				if err := g.advance(piece); err != nil {
					return state{overhead: g.overhead, header: g.header, err: err}
				}
			}
			return state{overhead: g.overhead, header: g.header, left: g.left, have: g.have}
		}
		assert.Equal(t, advance(max(len(b), 1)), advance(max(int(size), 1)), "in one in pieces")
	})
}

// serveTLS is serve behind TLS, and the options to trust it.
func serveTLS(t *testing.T, version uint16, handle func(net.Conn, *bufio.Reader)) (*server, func(*Options)) {
	t.Helper()
	certified, trust := secure(t, false, http.NotFoundHandler())
	config := &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: version, MaxVersion: version}
	return serve(t, func(c net.Conn, _ *bufio.Reader) {
		secured := tls.Server(c, config)
		handle(secured, bufio.NewReader(secured))
		_ = secured.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}), trust
}

// Bytes behind a response never become the response to the next request: neither those that TLS has
// decrypted, nor those that it has still to decrypt.
func TestUnaskedBytesOverTLS(t *testing.T) {
	const first, forged = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
	big := strings.Repeat("x", 12_000)
	large := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(big), big)
	for name, parts := range map[string][]string{
		"one record":           {first + forged},
		"two records":          {first, forged},
		"beyond the buffer":    {large + forged},
		"a length too small":   {strings.Replace(large, "12000", "11980", 1)},
		"records, and records": {large[:5000], large[5000:] + forged, forged},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(fmt.Sprintf("%s/%s", name, tls.VersionName(version)), func(t *testing.T) {
				s, trust := serveTLS(t, version, func(c net.Conn, r *bufio.Reader) {
					for readHead(r) != "" {
						for _, p := range parts {
							if _, err := io.WriteString(c, p); err != nil {
								return
							}
						}
					}
				})
				c := newClient(t, quick(trust))
				for n := range 3 {
					r := must.Get(getTLS(t, c, "example.com", int(s.port()), "/"))(t)
					must.True(t, text(t, r) != "forged", "an unsolicited response was taken")
					assert.True(t, arrived(c), "nothing has arrived behind the response")
					assert.Equal(t, s.accepted(), n+1, "connections for requests")
				}
			})
		}
	}
}

// arrived waits until each idle connection has something to read.
func arrived(c *Client) bool {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	for _, cn := range c.pool.idle {
		for ; cn != nil; cn = cn.below {
			for tries := 0; cn.silent(); tries++ {
				if tries == 300_000 {
					return false
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	return true
}

// Session tickets are no response: the connection is kept.
func TestTicketsDoNotEndAConnection(t *testing.T) {
	s, trust := serveTLS(t, tls.VersionTLS13, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) != "" {
			fmt.Fprint(c, okEmpty)
		}
	})
	c := newClient(t, quick(trust))
	for range 5 {
		must.Get(getTLS(t, c, "example.com", int(s.port()), "/"))(t)
	}
	assert.Equal(t, s.accepted(), 1, "connections")
}

// A bad response on a reused connection may be the rest of another: the request is excused, and on
// a new connection the failure counts.
func TestBadAnswersOnKeptConnections(t *testing.T) {
	var requests atomic.Int32
	s := serve(t, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) != "" {
			if n := requests.Add(1); n == 1 || n == 3 {
				fmt.Fprint(c, okEmpty)
			} else {
				fmt.Fprint(c, "</body></html>\n")
			}
		}
	})
	c := newClient(t, quick())
	for _, want := range []Kind{0, KindLostOnReuse, 0, KindBadResponse} {
		_, err := get(t, c, s)
		if want != 0 {
			wantKind(t, err, want)
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestClosedFramesHoldNoTLS holds that a connection that has ended gives its TLS back. net/http
// keeps the rest of a closed connection for up to five seconds.
func TestClosedFramesHoldNoTLS(t *testing.T) {
	ours, theirs := net.Pipe()
	f := &frames{Conn: ours, maxHeader: 1000}
	f.secured.Store(tls.Client(ours, &tls.Config{InsecureSkipVerify: true}))
	_ = theirs.Close()
	_, err := f.Read(make([]byte, 1))
	assert.True(t, err != nil && f.secured.Load() == nil, "read: %v, TLS is held: %t", err, f.secured.Load() != nil)
	assert.Fails(f.Write([]byte("x")))(t, net.ErrClosed, "write")
	must.Do(t, f.Close())
}
