package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"

	"github.com/amble-crawler/amble/internal/web/spool"
)

// Wire is one exchange as HTTP/1.1 carried it, inside of TLS if there is any. One over HTTP/2 has the form that
// HTTP/1.1 would have given it, as web archives write it: names of fields as usual there, in alphabetical order; no
// trailer.
type Wire struct {
	// Protocol is the name of the protocol by ALPN (RFC 7301) if it was not HTTP/1.1: h2.
	Protocol string
	// Request is the request as sent: request line, header and empty line. Credentials are left
	// out, so that no archive reveals them.
	Request *spool.Content
	// Response is the response as received: status line, header and body. The body is still in its
	// content encodings and in chunks. Interim (1xx) responses before it are left out.
	Response *spool.Content
	// Chunked means that the body in Response is in chunks.
	Chunked bool
	// Plain means that the body in Response, apart from the chunks, is the content itself: neither
	// encoded nor cut.
	Plain bool
	// Truncated means that Response is incomplete: the body was longer than MaxBody, or body and
	// framing were longer than MaxBody and Options.MaxHeader together, or the request failed within
	// the body.
	Truncated bool
}

// close frees what the exchange holds.
func (w *Wire) close() error {
	if w == nil {
		return nil
	}
	return errors.Join(w.Request.Close(), w.Response.Close())
}

// tap keeps the bytes that pass through a connection while it is open.
type tap struct {
	net.Conn
	request []byte        // the header as sent, secrets included
	into    *spool.Writer // nil: closed
	seen    int64         // bytes since begin
	most    int64         // that are kept
	last    int64         // bytes of the last response: a guess for the next
	whole   bool          // into has the response and nothing beyond it: HTTP/2
	passing bool          // the body is kept as br passes it on
	err     error         // of keeping

	first, length int64 // of the body within the response: see pass
}

// Read reads from the connection and keeps what it read.
func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if !t.passing {
		t.keep(p[:n])
	}
	t.seen += int64(n)
	return n, err
}

// keep keeps bytes, which follow those in into.
func (t *tap) keep(p []byte) {
	if t.into == nil || t.err != nil {
		return
	}
	room := max(t.most-t.into.Size(), 0)
	_, t.err = t.into.Write(p[:min(int64(len(p)), room)])
}

// begin starts a response. The bytes that br has read ahead belong to it. Of them it keeps the
// header; the caller goes on with keepAhead or pass.
func (t *tap) begin(pool *spool.Pool, most int64, br *bufio.Reader) {
	t.abandon()
	t.into, t.most, t.passing, t.err = pool.NewWriter(min(t.last+t.last/8, most)), most, false, nil
	ahead, _ := br.Peek(br.Buffered())
	t.seen = int64(len(ahead))
	if end := bytes.Index(ahead, []byte(headEnd)); end >= 0 {
		ahead = ahead[:end+len(headEnd)]
	}
	t.keep(ahead)
}

// beginWith starts a response whose header has already been read; only its body follows, with pass.
func (t *tap) beginWith(pool *spool.Pool, most int64, head []byte) {
	t.abandon()
	t.into, t.most, t.whole, t.err = pool.NewWriter(min(t.last+t.last/8, most)), most, true, nil
	t.keep(head)
}

// headEnd ends a header. One that ends otherwise is kept with all that is there.
const headEnd = "\r\n\r\n"

// keepAhead keeps what br has read ahead of the body, which follows as it comes over the wire.
func (t *tap) keepAhead(br *bufio.Reader) {
	ahead, _ := br.Peek(br.Buffered())
	t.keep(ahead[min(t.into.Size()-t.passed(br), int64(len(ahead))):])
}

// passed returns how many bytes of the response br has passed on, or are kept.
func (t *tap) passed(br *bufio.Reader) int64 {
	if t.whole {
		return t.into.Size()
	}
	return t.seen - int64(br.Buffered())
}

// pass reads a body that br passes on as it came, at most limit bytes of it, and notes where in the
// response it is.
func (t *tap) pass(body io.Reader, br *bufio.Reader, limit int64) (cut bool, err error) {
	t.first, t.passing = t.passed(br), true
	if t.err == nil {
		t.err = t.into.Truncate(t.first)
	}
	if t.err != nil {
		return false, t.err
	}
	n, err := t.into.ReadFrom(body)
	if errors.As(err, new(*spool.Error)) {
		t.err = err
	}
	if err != nil && err != errWireLimit {
		return false, err
	}
	t.length = min(n, limit)
	return n > limit, nil
}

// end returns the response, without what br has read beyond it, and whether it is cut.
func (t *tap) end(br *bufio.Reader) (response *spool.Content, cut bool, err error) {
	length := t.passed(br)
	if t.err == nil {
		t.err = t.into.Truncate(length)
	}
	if t.err != nil {
		return nil, false, t.err
	}
	response, t.into, t.last = t.into.Content(), nil, length
	return response, length > t.most, nil
}

// abandon discards a response that end has not returned.
func (t *tap) abandon() {
	if t != nil && t.into != nil {
		t.into.Discard()
		t.into = nil
	}
}
