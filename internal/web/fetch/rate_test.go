package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestMinRate: a response below the minimum rate over ten seconds ends then, in any phase, in
// virtual time. The time before its first byte does not count.
func TestMinRate(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	const chunked, hints = head + "Transfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n"
	many := func(n int) string { return strings.Repeat("x", n) }
	drip := func(begin, text string, every time.Duration) func(net.Conn) {
		return func(c net.Conn) {
			_, err := io.WriteString(c, begin)
			for err == nil {
				time.Sleep(every)
				_, err = io.WriteString(c, text)
			}
		}
	}
	line, s := memnet.Options{}, time.Second
	for _, tt := range []struct {
		name   string
		line   memnet.Options
		answer func(net.Conn)
		rate   int64
		kind   Kind
		after  time.Duration // the request lasts, to a second
	}{
		{"header drips", line, drip(head+"X: ", "y", s), 256, KindTooSlow, 10 * s},
		{"body drips", line, drip(head+"\r\n", "x", s), 256, KindTooSlow, 10 * s},
		{"interim responses drip", line, drip("", hints, s), 256, KindTooSlow, 11 * s},
		{"chunks drip", line, drip(chunked, "1\r\nx\r\n", s), 256, KindTooSlow, 10 * s},
		{"body that begins well drips", line, drip(head+"\r\n"+many(5000), "x", s), 256, KindTooSlow, 20 * s},
		{"just fast enough", line, drip(head+"Content-Length: 6000\r\n\r\n", many(300), s), 256, 0, 20 * s},
		{"thinks, then answers", line, func(c net.Conn) {
			time.Sleep(19 * s)
			_, _ = io.WriteString(c, head+"Content-Length: 2\r\n\r\nok")
		}, 256, 0, 19 * s},
		{"no minimum", line, drip(head+"Content-Length: 25\r\n\r\n", "x", s), 0, 0, 25 * s},
		{"the line is slow", memnet.Options{Rate: 100}, func(c net.Conn) {
			_, _ = io.WriteString(c, head+"Content-Length: 2000\r\n\r\n"+many(2000))
		}, 256, 0, 23 * s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New(tt.line)
				serveVirtually(t, network, tt.answer)
				c := newClient(t, quick(func(o *Options) { o.Dial, o.MinRate = network.Dial, tt.rate }))
				if tt.line.Rate > 0 {
					clog(t, network)
				}
				start := time.Now()
				resp, err := c.Do(context.Background(), virtualRequest(t, "http://a.test/"))
				if err == nil {
					defer resp.Close()
				}
				var failure *Error
				if errors.As(err, &failure); failure == nil && tt.kind != 0 || failure != nil &&
					failure.Kind != tt.kind {
					t.Errorf("%v, want kind %v", err, tt.kind)
				}
				if took := time.Since(start); took < tt.after || took > tt.after+2*time.Second {
					t.Errorf("it lasted %v, want %v", took, tt.after)
				}
			})
		})
	}
}

// virtualRequest is a request to the server of serveVirtually.
func virtualRequest(t *testing.T, u string) Request {
	t.Helper()
	return Request{URL: parseURL(t, u), Address: netip.MustParseAddr("198.51.100.1")}
}

// serveVirtually answers one request at 198.51.100.1:80.
func serveVirtually(t *testing.T, network *memnet.Network, answer func(net.Conn)) {
	t.Helper()
	l := must.Get(network.Listen("tcp", "198.51.100.1:80"))(t)
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		readHead(bufio.NewReader(c))
		answer(c)
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-served
	})
}

// clog keeps the line of a network busy, so that a round trip takes more than a second.
func clog(t *testing.T, network *memnet.Network) {
	t.Helper()
	l := must.Get(network.Listen("tcp", "198.51.100.9:80"))(t)
	near := must.Get(network.Dial(context.Background(), "tcp", "198.51.100.9:80"))(t)
	far := must.Get(l.Accept())(t)
	_, _ = far.Write(make([]byte, 150))
	t.Cleanup(func() { _ = errors.Join(near.Close(), far.Close(), l.Close()) })
}

// TestMinRateOverHTTP2: the body of a stream has the same minimum.
func TestMinRateOverHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 60 {
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			time.Sleep(time.Second)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	config := server.TLS
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig
	server.Close()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(server.Certificate().NotBefore)) // virtual time begins before it
		network := memnet.New(memnet.Options{})
		l, err := network.Listen("tcp", "198.51.100.1:443")
		must.Do(t, err)
		serving := &http.Server{Handler: server.Config.Handler, TLSConfig: config}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = serving.ServeTLS(l, "", "")
		}()
		defer func() {
			_ = serving.Close()
			<-served
			time.Sleep(time.Hour) // until the handler has seen that nothing listens
		}()
		c := newClient(t, quick(func(o *Options) { o.Dial, o.TLSConfig = network.Dial, roots }))
		start := time.Now()
		_, err = c.Do(context.Background(), virtualRequest(t, "https://example.com/"))
		wantKind(t, err, KindTooSlow)
		took := time.Since(start)
		assert.True(t, took >= rateWindow && took <= rateWindow+2*time.Second, "it lasted %v", took)
	})
}

// TestBrokenOff: a caller who aborts a request because others wait gives the reason, and can see
// how far the request was.
func TestBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Options{})
		serveVirtually(t, network, func(c net.Conn) {
			for _, text := range []string{"HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 3000), "y", "y", "y", "y"} {
				if _, err := io.WriteString(c, text); err != nil {
					return
				}
				time.Sleep(3 * time.Second)
			}
			_, _ = io.Copy(io.Discard, c)
		})
		c := newClient(t, quick(func(o *Options) { o.Dial = network.Dial }))
		ctx, breakOff := context.WithCancelCause(context.Background())
		progress := new(Progress)
		assert.True(t, !c.IsSlow(progress, time.Hour, 0), "slow before anything is known of the line")
		go func() {
			for at := 2 * time.Second; at < 15*time.Second; at += time.Second {
				time.Sleep(time.Second)
				if c.IsSlow(progress, at, 0) {
					if at < 11*time.Second || at > 13*time.Second { // 3000 bytes at 256 a second
						t.Errorf("slow after %v", at)
					}
					breakOff(ErrTooSlow)
					return
				}
			}
		}()
		r := virtualRequest(t, "http://a.test/")
		r.Progress = progress
		_, err := c.Do(ctx, r)
		wantKind(t, err, KindTooSlow)
		assert.True(t, !c.IsSlow(progress, time.Hour, 0), "slow after its end")
	})
}
