package fetch

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

const impatient = 60 * time.Millisecond

// stall keeps the connection open and says nothing more.
func stall(_ net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) }

// forever writes part again and again until the client has gone.
func forever(first, part string, pause time.Duration) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		readHead(r)
		for p := first; ; p = part {
			if _, err := c.Write([]byte(p)); err != nil {
				return
			}
			time.Sleep(pause)
		}
	}
}

// then writes text after a request and goes on with next.
func then(text string, next func(net.Conn, *bufio.Reader)) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		readHead(r)
		fmt.Fprint(c, text)
		next(c, r)
	}
}

// reset ends the connection with RST. What was written before is acknowledged by then, for both ends
// are in one kernel, and the client reads it before it sees the error.
func reset(c net.Conn, _ *bufio.Reader) {
	_ = c.(*net.TCPConn).SetLinger(0)
}

func TestHostileServers(t *testing.T) {
	big := strings.Repeat("x", 64<<10)
	tests := []struct {
		name   string
		handle func(net.Conn, *bufio.Reader)
		kind   Kind
		op     string
	}{
		{"accepts and says nothing", stall, KindHeaderTimeout, "header"},
		{"header drips", forever("HTTP/1.1 200 OK\r\n", "X", 10*time.Millisecond), KindHeaderTimeout, "header"},
		{"header lines without end", forever("HTTP/1.1 200 OK\r\n", "X-Y: "+big[:1000]+"\r\n", 0), KindHeaderTooLarge,
			"header"},
		{"header line without end", forever("HTTP/1.1 200 OK\r\nX: ", big, 0), KindHeaderTooLarge, "header"},
		{"status line without end", forever("HTTP/1.1 200 ", big, 0), KindHeaderTooLarge, "header"},
		{"no line at all", forever("", big, 0), KindHeaderTooLarge, "header"},
		{"interim responses without end", forever("", "HTTP/1.1 103 Early Hints\r\n\r\n", 0),
			KindBadResponse, "header"},
		{"large interim responses", forever("", "HTTP/1.1 103 Early Hints\r\nLink: "+big[:30<<10]+"\r\n\r\n", 0),
			KindHeaderTooLarge, "header"},
		{"switches protocols", answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
			KindBadResponse, "header"},
		{"HTTP/0.9", answer("<html>old</html>\n"), KindBadResponse, "header"},
		{"speaks SSH", answer("SSH-2.0-OpenSSH_9.9\r\n"), KindBadResponse, "header"},
		{"another version", answer("HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"), KindBadResponse, "header"},
		{"bad status", answer("HTTP/1.1 2x0 OK\r\n\r\n"), KindBadResponse, "header"},
		{"status 99", answer("HTTP/1.1 099 OK\r\n\r\n"), KindBadResponse, "header"},
		{"two lengths", answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), KindBadResponse,
			"header"},
		{"negative length", answer("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), KindBadResponse, "header"},
		{"unknown transfer encoding", answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: xyz\r\n\r\n"),
			KindBadResponse, "header"},
		{"NUL in header", answer("HTTP/1.1 200 OK\r\nX\x00Y: z\r\n\r\n"), KindBadResponse, "header"},
		{"closes at once", func(net.Conn, *bufio.Reader) {}, KindReset, "header"},
		{"closes after the request", answer(), KindClosed, "header"},
		{"closes in the header", answer("HTTP/1.1 200 OK\r\nX:"), KindClosed, "header"},
		{"resets after the request", then("", reset), KindReset, "header"},
		{"resets in the header", then("HTTP/1.1 200", reset), KindReset, "header"},
		{"resets in the body", then("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", reset), KindReset, "body"},
		{"body stalls", then("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", stall), KindBodyTimeout, "body"},
		{"body shorter than announced", answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), KindIncompleteBody,
			"body"},
		{"half a chunk", answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc"), KindIncompleteBody,
			"body"},
		{"no last chunk", answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
			KindIncompleteBody,
			"body"},
		{"bad chunk length", answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n"),
			KindIncompleteBody,
			"body"},
		{"chunk extensions without end", forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
			"1;"+big[:3000]+"\r\nx\r\n", 0), KindIncompleteBody, "body"},
		{"trailers without end", forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
			"X: "+big[:3000]+"\r\n", 0), KindIncompleteBody, "body"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.handle)
			o := quick(short(impatient))
			if tt.kind != KindHeaderTimeout && tt.kind != KindBodyTimeout {
				o = quick() // a slow machine must not run into the short bounds
			}
			c := newClient(t, o)
			_, err := get(t, c, s)
			var e *Error
			if tt.name == "closes at once" { // what is seen depends on who is faster
				e, _ = err.(*Error)
				must.True(t, e != nil && (e.Kind == KindReset || e.Kind == KindClosed), "error %v", err)
			} else {
				e = wantKind(t, err, tt.kind)
				assert.Equal(t, e.Op, tt.op, "op")
				assert.True(t, e.Sent, "the request had been sent")
				covers := e.Kind == KindBadResponse || e.Kind == KindIncompleteBody
				if d := e.Detail(); covers != (d != "") || len(d) > maxDetail || strings.ContainsFunc(d, notPrintable) {
					t.Errorf("the detail is %q", d)
				}
			}
			assert.True(t, s.accepted() == 1 && c.pool.len() == 0, "%d connections, %d kept", s.accepted(),
				c.pool.len())
		})
	}
}

func notPrintable(r rune) bool { return r < ' ' || r > '~' }

func TestSlowlorisBodyEndsInTime(t *testing.T) {
	s := serve(t, forever("HTTP/1.1 200 OK\r\n\r\n", "x", time.Millisecond))
	c := newClient(t, quick(func(o *Options) { o.Timeout = 100 * time.Millisecond }))
	_, err := get(t, c, s)
	wantKind(t, err, KindBodyTimeout)
}

func TestEndlessBodyIsCut(t *testing.T) {
	for name, first := range map[string]string{
		"until close": "HTTP/1.1 200 OK\r\n\r\n",
		"huge length": "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n",
	} {
		s := serve(t, forever(first, strings.Repeat("x", 10_000), 0))
		c := newClient(t, quick(func(o *Options) { o.MaxBody = 300_000 }))
		r, err := get(t, c, s)
		must.True(t, err == nil && r.Body.Size() == 300_000 && r.Truncated, "%s: %v", name, err)
		assert.AtMost(t, cap(whole(t, r)), 2*300_000, name, "room for bytes")
	}
}

func TestConnectFailures(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	gone := &server{Listener: l}
	l.Close()
	_, err = get(t, newClient(t, quick()), gone)
	e := wantKind(t, err, KindRefused)
	assert.True(t, !e.Sent && e.Op == "connect", "%+v", e)
}

func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		okEmpty, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.0 200\r\n\r\nabc",
		"HTTP/1.1 103 E\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, br\r\n\r\n\x1f\x8b",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, response []byte) {
		s := serve(t, answer(string(response)))
		o := quick(short(5 * time.Second))
		o.MaxBody, o.MaxHeader, o.Capture = 4096, 2048, true
		c := newClient(t, o)
		r, err := get(t, c, s)
		switch {
		case err != nil:
			e := err.(*Error)
			assert.True(t, e.Kind != KindUnknown && e.Sent, "%+v", e)
		case r.Status < 200 || r.Body.Size() > o.MaxBody:
			t.Errorf("status %d, %d bytes", r.Status, r.Body.Size())
		default:
			wire, err := r.Wire.Response.Load(nil, 1<<20)
			assert.True(t, err == nil && bytes.Contains(response, wire) && bytes.HasPrefix(wire, []byte("HTTP/1.")) &&
				len(wire) <= 4096+2048, "captured %q, %v", wire, err)
		}
	})
}
