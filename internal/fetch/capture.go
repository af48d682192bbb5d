package fetch

import (
	"bufio"
	"errors"
	"io"
	"net"

	"github.com/amble-crawler/amble/internal/spool"
)

// Wire is one exchange as HTTP/1.1 carried it, inside of TLS if there is any.
type Wire struct {
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
	into *spool.Writer // nil: closed
	seen int64         // bytes since begin
	most int64         // that are kept
	last int64         // bytes of the last response: a guess for the next
	err  error         // of keeping

	first, length int64 // of the body within the response: see pass
}

// Read reads from the connection and keeps what it read.
func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.keep(p[:n])
	return n, err
}

func (t *tap) keep(p []byte) {
	if t.into == nil || t.err != nil {
		return
	}
	room := max(t.most-t.seen, 0)
	t.seen += int64(len(p))
	_, t.err = t.into.Write(p[:min(int64(len(p)), room)])
}

// begin starts a response. The bytes that br has read ahead belong to it.
func (t *tap) begin(pool *spool.Pool, most int64, br *bufio.Reader) {
	if t.into != nil {
		t.into.Discard()
	}
	t.into, t.seen, t.most, t.err = pool.NewWriter(min(t.last+t.last/8, most)), 0, most, nil
	ahead, _ := br.Peek(br.Buffered())
	t.keep(ahead)
}

// passed returns how many bytes of the response br has passed on.
func (t *tap) passed(br *bufio.Reader) int64 { return t.seen - int64(br.Buffered()) }

// pass reads a body that br passes on as it came, at most limit bytes of it, and notes where in the
// response it is.
func (t *tap) pass(body io.Reader, br *bufio.Reader, limit int64) (cut bool, err error) {
	t.first = t.passed(br)
	n, err := io.Copy(io.Discard, body)
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
