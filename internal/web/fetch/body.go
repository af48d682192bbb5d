package fetch

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/amble-crawler/amble/internal/web/spool"
)

// errWireLimit ends a body that is too long.
var errWireLimit = errors.New("the body exceeds its bound")

// wireBody is the body as it arrives, bounded in bytes and in the time between two pieces.
type wireBody struct {
	r     io.Reader
	w     *watch
	idle  time.Duration
	left  int64
	paced bool // here, and not below
}

func (b *wireBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errWireLimit
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if err == nil {
		b.w.progress(b.idle)
		if b.paced {
			err = b.w.pace.took(n)
		}
	}
	return n, err
}

// receive reads the body of resp off the wire without decoding it, at most limit bytes of it. A
// body is complete before it is decoded, so a slow server never holds the memory of a decoder. If
// the body is not cut, the connection is at the end of the response. If the tap of the connection
// keeps the body as it is, body is nil: see keptBody.
func (c *Client) receive(
	w *watch, cn *conn, resp *http.Response, limit int64,
) (body *spool.Content, cut bool, err error) {
	w.enter(phaseBody, c.o.BodyIdleTimeout)
	from := &wireBody{r: resp.Body, w: w, idle: c.o.BodyIdleTimeout, left: limit + 1, paced: resp.ProtoMajor == 2}
	if cn.tap != nil && len(resp.TransferEncoding) == 0 {
		cut, err = cn.tap.pass(from, cn.br, limit)
		return nil, cut, err
	} else if cn.tap != nil {
		cn.tap.keepAhead(cn.br)
	}
	into := c.o.Spool.NewWriter(min(sizeHint(resp.ContentLength), limit+1))
	defer into.Discard()
	if _, err = into.ReadFrom(from); err != nil && err != errWireLimit {
		return nil, false, err
	}
	cut = into.Size() > limit
	if err := into.Truncate(limit); err != nil {
		return nil, false, err
	}
	return into.Content(), cut, nil
}

// keptBody returns the body that a tap has kept in a response. In memory it is not copied, so it
// can be used until the response is closed.
func (c *Client) keptBody(t *tap, response *spool.Content) (*spool.Content, error) {
	if b, ok := response.Bytes(); ok {
		return spool.Of(b[t.first : t.first+t.length]), nil
	}
	into := c.o.Spool.NewWriter(t.length)
	defer into.Discard()
	_, err := into.ReadFrom(io.NewSectionReader(response.NewReader(), t.first, t.length))
	return into.Content(), err
}

// sizeHint returns the size of the first buffer: the announced length as far as it can be trusted,
// and one more byte to see the end.
func sizeHint(length int64) int64 {
	const most = 256 << 10
	if length < 0 {
		return 4 << 10
	}
	return min(length, most) + 1
}
