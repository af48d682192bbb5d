package fetch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// http2Window bounds the body bytes that a server may send ahead of the reader.
const http2Window = 1 << 20

// connOfContext is the context key under which overHTTP2 passes its connection to the transport.
type connOfContext struct{}

// newHTTP2 returns a transport that speaks HTTP/2 over connections that it is passed. It dials
// nothing and pools nothing: only its NewClientConn is used, whose RoundTrip sends a request once.
// It treats the connections as connections without TLS, because otherwise it would have to see the
// TLS itself.
func newHTTP2(maxHeader int64) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols:              &protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: http2Window,
			MaxReceiveBufferPerStream:     http2Window,
			WriteByteTimeout:              time.Minute,
		},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, ok := ctx.Value(connOfContext{}).(net.Conn)
			if !ok {
				return nil, errors.New("no connection was handed over")
			}
			return c, nil
		},
	}
}

// overHTTP2 starts HTTP/2 on a connection that negotiated it.
func overHTTP2(ctx context.Context, t *http.Transport, c net.Conn, host string) (*http.ClientConn, error) {
	ctx = context.WithValue(ctx, connOfContext{}, c)
	return t.NewClientConn(ctx, "http", net.JoinHostPort(serverName(host), "443"))
}

// exchange2 sends one request over HTTP/2 and reads the header of the response. limit is the bound of the body.
func (c *Client) exchange2(w *watch, cn *conn, r Request, fields []field, limit int64) (*http.Response, error) {
	w.enter(phaseHeader, c.o.HeaderTimeout)
	cn.frames.begin()
	req := &http.Request{
		Method: r.method(),
		URL:    opaque(r.URL),
		Host:   r.URL.HostPort(),
		Header: make(http.Header, 8),
	}
	for _, f := range fields {
		req.Header.Add(f.name, f.value)
	}
	if cn.tap != nil {
		cn.tap.request = c.requestHead(r, fields)
	}
	resp, err := cn.h2.RoundTrip(req.WithContext(httptrace.WithClientTrace(w.ctx, interim(c.o.MaxHeader))))
	if err != nil {
		return nil, cn.frames.explain(err)
	}
	if err := checkHTTP2(resp); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	if cn.tap != nil {
		cn.tap.beginWith(c.o.Spool, c.o.MaxHeader+limit, responseHead(resp))
	}
	return resp, nil
}

// responseHead returns the header of a response in the form of HTTP/1.1. net/http has checked the names and values of
// the fields, so that none of them ends a line.
func responseHead(resp *http.Response) []byte {
	b := fmt.Appendf(make([]byte, 0, 1024), "HTTP/1.1 %03d %s\r\n", resp.StatusCode, http.StatusText(resp.StatusCode))
	return append(AppendHeader(b, resp.Header), "\r\n"...)
}

// AppendHeader appends a header as HTTP/1.1 writes it, in the order of its names. None of its names and values may end
// a line.
func AppendHeader(b []byte, header http.Header) []byte {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			b = fmt.Appendf(b, "%s: %s\r\n", name, value)
		}
	}
	return b
}

// interim bounds the interim (1xx) responses before the final one.
func interim(maxHeader int64) *httptrace.ClientTrace {
	responses, left := 0, maxHeader
	return &httptrace.ClientTrace{Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
		for name, values := range header {
			for _, value := range values {
				left -= int64(len(name) + len(value))
			}
		}
		if responses++; responses >= maxInterim {
			return errInterim
		} else if left < 0 {
			return errHeaderTooLarge
		}
		return nil
	}}
}

// checkHTTP2 refuses a response that could not have come over HTTP/1.1. net/http accepts it.
func checkHTTP2(resp *http.Response) error {
	status, _, _ := strings.Cut(resp.Status, " ")
	if len(status) != 3 || resp.StatusCode < 200 || resp.StatusCode > 999 {
		return fmt.Errorf("unexpected status %.20q", status)
	}
	lengths := resp.Header["Content-Length"]
	for _, other := range lengths {
		if other != lengths[0] || strings.Trim(other, "0123456789") != "" || other == "" {
			return fmt.Errorf("Content-Length %.40q is not one number", lengths)
		}
	}
	if resp.StatusCode == http.StatusNotModified || resp.StatusCode == http.StatusNoContent {
		resp.Body = http.NoBody // its length is that of another response (RFC 9110, section 8.6)
	}
	return nil
}

// streamError is the error of one HTTP/2 stream. net/http does not export it, but fills in any type
// with the same fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string {
	return fmt.Sprintf("HTTP/2 stream error %d: %v", e.Code, e.Cause)
}

// The errors of HTTP/2 that matter here (RFC 9113, section 7).
const (
	codeRefusedStream = 0x7
	codeHTTP11        = 0xd
)

// fromPeer reports whether the server, and not net/http, reset the stream.
func (e streamError) fromPeer() bool {
	return e.Cause != nil && e.Cause.Error() == "received from peer"
}

// wantsHTTP1 reports whether err means that the server wants HTTP/1.1 (RFC 9113, section 9.2.3, has
// it for TLS renegotiation; IIS for Windows authentication). The error of a connection that ends
// for that reason has no type.
func wantsHTTP1(err error) bool {
	var stream streamError
	if errors.As(err, &stream) {
		return stream.fromPeer() && stream.Code == codeHTTP11
	}
	text := err.Error()
	return strings.Contains(text, "GOAWAY") && strings.Contains(text, "HTTP_1_1_REQUIRED")
}

// givenBack reports whether the server says that it has not processed the request: it refused the
// stream, or it is about to close and will not process this one (RFC 9113, section 8.7).
func isUnprocessed(err error) bool {
	var stream streamError
	if errors.As(err, &stream) {
		return stream.fromPeer() && stream.Code == codeRefusedStream
	}
	return strings.Contains(err.Error(), "graceful shutdown GOAWAY")
}

// kindOfHTTP2 names the errors of HTTP/2. Errors without a type are recognised by their text.
func kindOfHTTP2(err error) Kind {
	var stream streamError
	switch text := err.Error(); {
	case strings.Contains(text, "header list larger than"):
		return KindHeaderTooLarge
	case errors.As(err, &stream) && errors.Is(stream.Cause, errHeaderTooLarge):
		return KindHeaderTooLarge
	case errors.As(err, &stream) && stream.fromPeer():
		return KindReset
	case errors.As(err, &stream):
		return KindBadResponse
	case strings.Contains(text, "GOAWAY"), strings.Contains(text, "http2: client conn"):
		return KindClosed
	}
	return KindUnknown
}

// opaque returns u in the form that net/http sends byte for byte. A URL that is parsed and put
// together again could differ from the one that was checked against robots.txt.
func opaque(u weburl.URL) *url.URL {
	return &url.URL{Scheme: u.Scheme(), Host: u.HostPort(), Opaque: "//" + u.HostPort() + u.RequestURI()}
}
