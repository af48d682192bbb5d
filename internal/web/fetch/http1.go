package fetch

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// maxInterim bounds the interim (1xx) responses before the one that counts.
const maxInterim = 16

// errInterim ends a response with more interim responses than maxInterim.
var errInterim = errors.New("too many interim responses")

// requestHead returns the request as HTTP/1.1 sends it (RFC 9112, section 3).
func (c *Client) requestHead(r Request, fields []field) []byte {
	b := append(append(make([]byte, 0, 512), r.method()...), ' ')
	if c.proxy.forwards(r.URL.Scheme()) { // the absolute form (RFC 9112, section 3.2.2)
		b = append(b, r.URL.Scheme()...)
		b = append(b, "://"...)
		b = append(b, r.URL.HostPort()...)
	}
	b = append(b, r.URL.RequestURI()...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, r.URL.HostPort()...)
	for _, f := range fields {
		b = append(b, "\r\n"...)
		b = append(b, f.name...)
		b = append(b, ": "...)
		b = append(b, f.value...)
	}
	if c.o.MaxIdleConns == 0 {
		b = append(b, "\r\nConnection: close"...)
	}
	return append(b, "\r\n\r\n"...)
}

// readerSize is the size of the buffers of responses: a page of usual size needs one read of the
// connection, and over TLS one record fits.
const readerSize = 16 << 10

// lendReader gives cn a buffer for the response. An idle connection has none: nothing may arrive.
func (c *Client) lendReader(cn *conn) {
	br, ok := c.readers.Get().(*bufio.Reader)
	if !ok {
		br = bufio.NewReaderSize(nil, readerSize)
	}
	br.Reset(cn.head)
	cn.br = br
}

// takeReader takes the buffer back. Nobody may read the body of the response after it.
func (c *Client) takeReader(cn *conn) {
	if cn.br == nil {
		return
	}
	cn.br.Reset(nil)
	c.readers.Put(cn.br)
	cn.br, cn.head.pace = nil, nil
}

// exchange1 sends one request over HTTP/1.1 and reads the header of the response. limit is the
// bound of the body.
func (c *Client) exchange1(w *watch, cn *conn, r Request, fields []field,
	limit int64) (resp *http.Response, firstByte time.Time, err error) {
	c.lendReader(cn)
	w.enter(phaseSend, c.o.HeaderTimeout)
	head := c.requestHead(r, fields)
	if cn.tap != nil {
		cn.tap.request = head
	}
	if _, err := cn.rw.Write(head); err != nil {
		return nil, firstByte, err
	}
	w.enter(phaseHeader, 0)
	cn.head.limit(c.o.MaxHeader)
	cn.head.pace = &w.pace
	trip := w.trip()
	if _, err := cn.br.Peek(1); err != nil {
		return nil, firstByte, err
	}
	firstByte = c.now()
	c.line.trip(trip())
	w.pace.begin(cn.br.Buffered())
	var asked *http.Request // nil: a GET
	if r.Head {
		asked = &http.Request{Method: http.MethodHead}
	}
	for range maxInterim {
		if cn.tap != nil {
			cn.tap.begin(c.o.Spool, c.o.MaxHeader+limit, cn.br)
		}
		resp, err := http.ReadResponse(cn.br, asked)
		switch {
		case err != nil:
			return nil, firstByte, err
		case resp.ProtoMajor != 1:
			return nil, firstByte, fmt.Errorf("unexpected protocol %s", resp.Proto)
		case resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode < 100:
			return nil, firstByte, fmt.Errorf("unexpected status %d", resp.StatusCode)
		case resp.StatusCode >= 200:
			cn.head.unlimited()
			return resp, firstByte, nil
		}
	}
	return nil, firstByte, errInterim
}
