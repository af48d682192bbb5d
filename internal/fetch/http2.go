package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
)

// http2Window bounds the body bytes that a server may send ahead of the reader.
const http2Window = 1 << 20

// secureConnKey is the context key under which overHTTP2 hands its connection
// to the transport.
type secureConnKey struct{}

// newHTTP2 returns a transport that speaks HTTP/2 over connections it is
// handed. It dials nothing and pools nothing: only its NewClientConn is used,
// whose RoundTrip sends a request once.
func newHTTP2(maxHeader int64) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	return &http.Transport{
		Protocols:              &protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: http2Window,
			MaxReceiveBufferPerStream:     http2Window,
			WriteByteTimeout:              time.Minute,
		},
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, ok := ctx.Value(secureConnKey{}).(*tls.Conn)
			if !ok {
				return nil, errors.New("no connection was handed over")
			}
			return c, nil
		},
	}
}

// overHTTP2 starts HTTP/2 on a connection that negotiated it.
func overHTTP2(ctx context.Context, t *http.Transport, c *tls.Conn, host string) (*http.ClientConn, error) {
	ctx = context.WithValue(ctx, secureConnKey{}, c)
	return t.NewClientConn(ctx, "https", net.JoinHostPort(serverName(host), "443"))
}

// exchange2 sends one request and awaits its header, over HTTP/2.
func (c *Client) exchange2(w *watch, cn *conn, r Request, fields []field) (*http.Response, error) {
	w.enter(phaseHeader, c.o.HeaderTimeout)
	req := &http.Request{
		Method: http.MethodGet,
		URL:    opaque(r.URL),
		Host:   r.URL.HostPort(),
		Header: make(http.Header, 8),
	}
	for _, f := range fields {
		req.Header.Add(f.name, f.value)
	}
	return cn.h2.RoundTrip(req.WithContext(w.ctx))
}

// streamError is the error of one HTTP/2 stream, which net/http does not export
// but fills in for a type of the same fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string {
	return fmt.Sprintf("HTTP/2 stream error %d: %v", e.Code, e.Cause)
}

// kindOfHTTP2 names the errors of HTTP/2. Those that have no type are told by
// their text.
func kindOfHTTP2(err error) Kind {
	var stream streamError
	switch text := err.Error(); {
	case strings.Contains(text, "header list larger than"):
		return KindHeaderTooLarge
	case errors.As(err, &stream):
		return KindReset
	case strings.Contains(text, "GOAWAY"), strings.Contains(text, "http2: client conn"):
		return KindClosed
	}
	return KindUnknown
}

// opaque is u in the form that net/http sends byte for byte: a URL that was
// taken apart and put together again could differ from the one robots.txt was
// asked about.
func opaque(u weburl.URL) *url.URL {
	return &url.URL{Scheme: u.Scheme(), Host: u.HostPort(), Opaque: "//" + u.HostPort() + u.RequestURI()}
}
