package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// secure starts a TLS server for "example.com", and returns it with the options to trust it.
func secure(t *testing.T, http2 bool, h http.Handler) (*httptest.Server, func(*Options)) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = http2
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, func(o *Options) { o.TLSConfig = &tls.Config{RootCAs: roots} }
}

func securePort(s net.Listener) int { return s.Addr().(*net.TCPAddr).Port }

func getTLS(t *testing.T, c *Client, host string, port int, path string) (*Response, error) {
	t.Helper()
	return c.Do(context.Background(), Request{URL: parseURL(t, fmt.Sprintf("https://%s:%d%s", host, port, path)),
		Address: loopback})
}

func TestTLS(t *testing.T) {
	for _, tt := range []struct {
		http2 bool
		proto string
	}{{false, "HTTP/1.1"}, {true, "HTTP/2.0"}} {
		t.Run(tt.proto, func(t *testing.T) {
			var clients sync.Map // by remote address: a connection each
			s, trust := secure(t, tt.http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				clients.Store(r.RemoteAddr, true)
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(encoded(t, "gzip", []byte(strings.Join([]string{r.RequestURI, r.Host, r.TLS.ServerName,
					r.UserAgent(), r.Header.Get("If-None-Match")}, " "))))
			}))
			c := newClient(t, quick(trust))
			port := securePort(s.Listener)
			for range 3 {
				r := must.Get(c.Do(context.Background(),
					Request{URL: parseURL(t, fmt.Sprintf("https://example.com:%d/a%%2f?b|c",
						port)), Address: loopback, ETag: `"e"`}))(t)
				want := fmt.Sprintf("/a%%2f?b|c example.com:%d example.com amble-test/1 (+https://amble.test/) \"e\"",
					port)
				assert.True(t, text(t, r) == want && r.Proto == tt.proto, "%s body %q, want %q", r.Proto, text(t, r),
					want)
				assert.True(t, r.WireBytes != 0 && !r.FirstByte.Before(r.Start), "%+v", r)
			}
			n := 0
			clients.Range(func(any, any) bool { n++; return true })
			assert.Equal(t, n, 1, "connections")
		})
	}
}

func TestHTTP2CanBeSwitchedOff(t *testing.T) {
	s, trust := secure(t, true, http.NotFoundHandler())
	c := newClient(t, quick(trust, func(o *Options) { o.HTTP2 = false }))
	r, err := getTLS(t, c, "example.com", securePort(s.Listener), "/")
	assert.True(t, err == nil && r.Proto == "HTTP/1.1", "%+v %v", r, err)
}

func TestTLSFailures(t *testing.T) {
	s, trust := secure(t, true, http.NotFoundHandler())
	port := securePort(s.Listener)
	t.Run("unknown authority", func(t *testing.T) {
		_, err := getTLS(t, newClient(t, quick()), "example.com", port, "/")
		e := wantKind(t, err, KindCertificate)
		assert.True(t, !e.Sent && e.Op == "tls", "%+v", e)
	})
	t.Run("another name", func(t *testing.T) {
		_, err := getTLS(t, newClient(t, quick(trust)), "other.test", port, "/")
		wantKind(t, err, KindCertificate)
	})
	t.Run("expired", func(t *testing.T) {
		c := newClient(t, quick(trust, func(o *Options) {
			o.TLSConfig.Time = func() time.Time {
				return time.Unix(1<<40,
					0)
			}
		}))
		_, err := getTLS(t, c, "example.com", port, "/")
		wantKind(t, err, KindCertificate)
	})
	t.Run("stalls", func(t *testing.T) {
		_, err := getTLS(t, newClient(t, quick(short(impatient))), "example.com", int(serve(t, stall).port()), "/")
		assert.True(t, !wantKind(t, err, KindTLSTimeout).Sent, "nothing had been sent")
	})
	t.Run("speaks HTTP", func(t *testing.T) {
		plain := serve(t, func(c net.Conn, r *bufio.Reader) {
			fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			stall(c, r)
		})
		_, err := getTLS(t, newClient(t, quick()), "example.com", int(plain.port()), "/")
		wantKind(t, err, KindTLS)
	})
	t.Run("closes", func(t *testing.T) {
		closing := serve(t, func(c net.Conn, r *bufio.Reader) { _, _ = r.Peek(200) })
		_, err := getTLS(t, newClient(t, quick()), "example.com", int(closing.port()), "/")
		var e *Error
		e, _ = err.(*Error)
		assert.True(t, e != nil && (e.Kind == KindTLS || e.Kind == KindReset), "%v", err)
	})
}

// rawHTTP2 is an HTTP/2 server that runs a function for each request; if that returns false, the
// connection ends. A client that offers HTTP/1.1 alone gets HTTP/1.1.
func rawHTTP2(t *testing.T, handle func(f *http2.Framer, stream uint32) bool) (*server, func(*Options)) {
	t.Helper()
	certified, trust := secure(t, false, http.NotFoundHandler())
	config := &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
	return serve(t, func(c net.Conn, _ *bufio.Reader) {
		conn := tls.Server(c, config)
		if conn.Handshake() != nil {
			return
		}
		if conn.ConnectionState().NegotiatedProtocol != "h2" {
			for r := bufio.NewReader(conn); readHead(r) != ""; {
				fmt.Fprint(conn, okEmpty)
			}
			return
		}
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(conn, preface); err != nil {
			return
		}
		f := http2.NewFramer(conn, conn)
		_ = f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = f.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				if !handle(f, frame.StreamID) {
					return
				}
			}
		}
	}), trust
}

// respond writes a response without a body.
func respond(f *http2.Framer, stream uint32, fields ...string) { writeHeader(f, stream, true, fields) }

// interimHTTP2 writes a 103.
func interimHTTP2(f *http2.Framer, stream uint32, fields ...string) {
	writeHeader(f, stream, false, append([]string{":status", "103"}, fields...))
}

func writeHeader(f *http2.Framer, stream uint32, end bool, fields []string) {
	var b strings.Builder
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSizeLimit(0)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	block := []byte(b.String())
	first := block[:min(len(block), 16<<10)]
	block = block[len(first):]
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: len(block) == 0,
		EndStream: end})
	for len(block) > 0 {
		n := min(len(block), 16<<10)
		_ = f.WriteContinuation(stream, n == len(block), block[:n])
		block = block[n:]
	}
}

func TestHostileHTTP2(t *testing.T) {
	t.Run("header stalls", func(t *testing.T) {
		s, trust := rawHTTP2(t, func(*http2.Framer, uint32) bool { return true })
		_, err := getTLS(t, newClient(t, quick(trust, func(o *Options) { o.HeaderTimeout = impatient })), "example.com",
			int(s.port()), "/")
		wantKind(t, err, KindHeaderTimeout)
	})
	t.Run("header too large", func(t *testing.T) {
		s, trust := secure(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := range 3 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 2000))
			}
		}))
		c := newClient(t, quick(trust, func(o *Options) { o.MaxHeader = 4096 }))
		_, err := getTLS(t, c, "example.com", securePort(s.Listener), "/")
		wantKind(t, err, KindHeaderTooLarge)
	})
	t.Run("endless body", func(t *testing.T) {
		s, trust := secure(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 10_000)); err != nil {
					return
				}
			}
		}))
		r, err := getTLS(t, newClient(t, quick(trust)), "example.com", securePort(s.Listener), "/")
		assert.True(t, err == nil && r.Truncated && r.Body.Size() == 1<<20, "%v", err)
	})
	t.Run("body stalls", func(t *testing.T) {
		s, trust := secure(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "x")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		_, err := getTLS(t, newClient(t, quick(trust, func(o *Options) { o.BodyIdleTimeout = impatient })),
			"example.com",
			securePort(s.Listener), "/")
		wantKind(t, err, KindBodyTimeout)
	})
	t.Run("closes", func(t *testing.T) {
		s, trust := secure(t, true, http.HandlerFunc(func(http.ResponseWriter,
			*http.Request) {
			panic(http.ErrAbortHandler)
		}))
		_, err := getTLS(t, newClient(t, quick(trust)), "example.com", securePort(s.Listener), "/")
		e, _ := err.(*Error)
		assert.True(t, e != nil && e.Kind.Temporary(), "error %v", err)
	})
}
