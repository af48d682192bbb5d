package fetch

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/amble-crawler/amble/internal/spool"
)

// errWireLimit ends a body that is too long before it is decoded.
var errWireLimit = errors.New("the encoded body exceeds its bound")

// wireBody is the body as it arrives: bounded in bytes, and in the time between
// two pieces.
type wireBody struct {
	r     io.Reader
	w     *watch
	idle  time.Duration
	left  int64
	eof   bool  // the end was seen
	over  bool  // there was more than may be read
	paced bool  // here, and not below
	err   error // of the connection, not of a decoder
}

func (b *wireBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.over = true
		return 0, errWireLimit
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	switch {
	case err == io.EOF:
		b.eof = true
	case err != nil:
		b.err = err
	default:
		b.w.progress(b.idle)
		if b.paced {
			err = b.w.pace.took(n)
			b.err = err
		}
	}
	return n, err
}

// readBody reads and decodes the body of resp into body, at most limit bytes of
// it both before and after decoding. ended reports that the connection stands at
// the end of the response.
func (c *Client) readBody(w *watch, resp *http.Response, limit int64) (body *spool.Content, truncated, ended bool, err error) {
	w.enter(phaseBody, c.o.BodyIdleTimeout)
	list, err := encodings(resp.Header)
	if err != nil {
		return nil, false, false, err
	}
	wire := &wireBody{r: resp.Body, w: w, idle: c.o.BodyIdleTimeout, left: limit + 1, paced: resp.ProtoMajor == 2}
	into := c.o.Spool.NewWriter(min(sizeHint(resp.ContentLength, len(list) > 0), limit+1))
	defer into.Discard()
	r, release, err := decode(wire, list)
	if err == nil {
		truncated, err = readUpTo(into, r, limit)
		release()
	}
	var full *spool.Error
	switch {
	case errors.As(err, &full):
		return nil, false, false, err
	case wire.err != nil: // what a decoder made of it does not matter
		return nil, false, false, wire.err
	case wire.over: // nor here
		return into.Content(), true, false, nil
	case err != nil:
		return nil, false, false, err
	}
	return into.Content(), truncated, !truncated && drained(wire), nil
}

// sizeHint is the room to start with: the announced length as far as it can be
// trusted, and one byte more to see the end.
func sizeHint(length int64, encoded bool) int64 {
	const most = 256 << 10
	switch {
	case length < 0:
		return 4 << 10
	case encoded:
		length = min(length, most) * 4
	}
	return min(length, most) + 1
}

// readUpTo reads r to its end, or limit bytes and no further.
func readUpTo(into *spool.Writer, r io.Reader, limit int64) (truncated bool, err error) {
	if _, err := into.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return false, err
	}
	return into.Size() > limit, into.Truncate(limit)
}

// drained reads the little that may follow the end of an encoded body and
// reports whether the end of the response was found.
func drained(wire *wireBody) bool {
	var b [512]byte
	for range 8 {
		if wire.eof {
			return true
		}
		if _, err := wire.Read(b[:]); err != nil {
			break
		}
	}
	return wire.eof
}
