package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http says there what hostile servers do over HTTP/2
	goleak.VerifyTestMain(m)
}

var loopback = netip.MustParseAddr("127.0.0.1")

// quick are options for tests: loopback allowed, and bounds short enough that a
// test of each of them ends soon.
func quick(change ...func(*Options)) Options {
	o := DefaultOptions()
	o.UserAgent = "amble-test/1 (+https://amble.test/)"
	o.AllowPrivate = true
	o.MaxBody = 1 << 20
	for _, c := range change {
		c(&o)
	}
	return o
}

// short makes every phase end after d.
func short(d time.Duration) func(*Options) {
	return func(o *Options) {
		o.ConnectTimeout, o.TLSTimeout, o.HeaderTimeout, o.BodyIdleTimeout, o.ResolveTimeout = d, d, d, d, d
	}
}

func newClient(t testing.TB, o Options) *Client {
	t.Helper()
	c := must.Get(New(o, time.Now))(t)
	t.Cleanup(c.Close)
	return c
}

// server runs handle for each connection, one after another on its own
// goroutine, and counts connections.
type server struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

func serve(t testing.TB, handle func(net.Conn, *bufio.Reader)) *server {
	return serveOn(t, "127.0.0.1:0", handle)
}

func serveOn(t testing.TB, address string, handle func(net.Conn, *bufio.Reader)) *server {
	t.Helper()
	l := must.Get(net.Listen("tcp", address))(t)
	s := &server{Listener: l}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			s.wg.Go(func() {
				defer c.Close()
				handle(c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

// accepted is the number of connections so far.
func (s *server) accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *server) port() uint16 { return uint16(s.Addr().(*net.TCPAddr).Port) }

// url is a URL of the server under a name that does not resolve.
func (s *server) url(t testing.TB, path string) weburl.URL {
	return parseURL(t, fmt.Sprintf("http://site.test:%d%s", s.port(), path))
}

func parseURL(t testing.TB, s string) weburl.URL {
	t.Helper()
	return must.Get(weburl.Parse(s))(t)
}

// readHead reads a request up to its empty line; "" at the end of the connection.
func readHead(r *bufio.Reader) string {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return ""
		}
		head.WriteString(line)
		if line == "\r\n" {
			return head.String()
		}
	}
}

// answer reads one request and writes the given text.
func answer(parts ...string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		if readHead(r) == "" {
			return
		}
		for _, p := range parts {
			if _, err := c.Write([]byte(p)); err != nil {
				return
			}
		}
	}
}

// get fetches "/" from s.
func get(t testing.TB, c *Client, s *server) (*Response, error) {
	t.Helper()
	return c.Do(context.Background(), Request{URL: s.url(t, "/"), Address: loopback})
}

// wantKind checks that err is an Error of that kind and is complete.
func wantKind(t *testing.T, err error, kind Kind) *Error {
	t.Helper()
	var e *Error
	must.True(t, errors.As(err, &e), "error %v, want kind %v", err, kind)
	assert.Equal(t, e.Kind, kind, "kind", err)
	assert.True(t, !e.Start.IsZero() && !e.End.Before(e.Start) && e.Op != "" && e.Err != nil, "incomplete error %+v", e)
	return e
}

// whole is the body of r.
func whole(t testing.TB, r *Response) []byte {
	t.Helper()
	return must.Get(r.Body.Load(nil, r.Body.Size()))(t)
}

func text(t testing.TB, r *Response) string {
	t.Helper()
	return string(whole(t, r))
}
