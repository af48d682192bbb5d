package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// maxInterim bounds the interim (1xx) responses before the one that counts.
const maxInterim = 16

// field is one line of a request header.
type field struct{ name, value string }

// fields returns the header of a request, less Host.
func (c *Client) fields(r Request) []field {
	fs := append(make([]field, 0, len(c.fixed)+2), c.fixed...)
	if r.ETag != "" && validHeaderValue(r.ETag) {
		fs = append(fs, field{"If-None-Match", r.ETag})
	}
	if r.LastModified != "" && validHeaderValue(r.LastModified) {
		fs = append(fs, field{"If-Modified-Since", r.LastModified})
	}
	return fs
}

// fixedFields are the header fields that every request carries.
func fixedFields(o Options) []field {
	fs := []field{{"User-Agent", o.UserAgent}}
	if o.From != "" {
		fs = append(fs, field{"From", o.From})
	}
	if o.Accept != "" {
		fs = append(fs, field{"Accept", o.Accept})
	}
	return append(fs, field{"Accept-Encoding", acceptEncoding})
}

// appendHead appends the request as HTTP/1.1 sends it (RFC 9112, section 3).
func (c *Client) appendHead(b []byte, r Request) []byte {
	b = append(b, "GET "...)
	b = append(b, r.URL.RequestURI()...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, r.URL.HostPort()...)
	for _, f := range c.fields(r) {
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

// exchange1 sends one request and awaits its header, over HTTP/1.1. limit is the
// bound of the body.
func (c *Client) exchange1(w *watch, cn *conn, r Request, limit int64) (resp *http.Response, firstByte time.Time, err error) {
	w.enter(phaseSend, c.o.HeaderTimeout)
	if _, err := cn.rw.Write(c.appendHead(nil, r)); err != nil {
		return nil, firstByte, err
	}
	w.enter(phaseHeader, 0)
	cn.head.limit(c.o.MaxHeader)
	if _, err := cn.br.Peek(1); err != nil {
		if cn.reused {
			err = &lostError{err}
		}
		return nil, firstByte, err
	}
	firstByte = c.now()
	for range maxInterim {
		if cn.tap != nil {
			cn.tap.begin(c.o.Spool, c.o.MaxHeader+limit, cn.br)
		}
		resp, err := http.ReadResponse(cn.br, nil)
		switch {
		case err != nil:
			return nil, firstByte, err
		case resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode < 100:
			return nil, firstByte, fmt.Errorf("status %d was not asked for", resp.StatusCode)
		case resp.StatusCode >= 200:
			cn.head.unlimited()
			return resp, firstByte, nil
		}
	}
	return nil, firstByte, errors.New("too many interim responses")
}
