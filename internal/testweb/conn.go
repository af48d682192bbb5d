package testweb

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync/atomic"
)

// recordedListener hands out connections that time the requests on them.
type recordedListener struct {
	net.Listener
	recorder *recorder
}

func (l *recordedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.recorder.open.Add(1)
	address := c.LocalAddr().(*net.TCPAddr).IP.String()
	return &conn{Conn: c, recorder: l.recorder, address: address, number: l.recorder.conns.Add(1)}, nil
}

// conn notes when the bytes of a request come from the kernel and when those
// of its response go there. net/http reads from a goroutine of its own while
// a handler runs, hence the atomics.
type conn struct {
	net.Conn
	recorder *recorder
	address  string // the server's
	number   int64

	firstByte atomic.Int64          // when the first byte of the coming request was read; 0: not yet
	current   atomic.Pointer[entry] // the request being answered; nil between requests
	hijacked  atomic.Bool
	closed    atomic.Bool
}

// writePiece splits long writes, so that the time before the last piece is
// close to the time of the last byte even where the client reads slowly.
const writePiece = 32 << 10

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.firstByte.Load() == 0 {
		c.firstByte.Store(c.recorder.now())
	}
	// net/http ends its own background read by a deadline: no sign of the client.
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		if e := c.current.Load(); e != nil {
			e.gone.CompareAndSwap(0, c.recorder.now())
		}
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	e := c.current.Load()
	if e == nil {
		return c.Conn.Write(b)
	}
	e.noteStatus(b)
	written := 0
	for {
		piece := b[written:min(written+writePiece, len(b))]
		e.end.Store(c.recorder.now())
		n, err := c.Conn.Write(piece)
		written += n
		e.bytes.Add(int64(n))
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

// Close ends the request of a hijacked connection; any other was over before,
// or is ended by cut.
func (c *conn) Close() error {
	if c.hijacked.Load() {
		c.cut()
	}
	err := c.Conn.Close()
	c.finish()
	if !c.closed.Swap(true) {
		c.recorder.open.Add(-1)
	}
	return err
}

// begin makes e the request that reads and writes belong to.
func (c *conn) begin(e *entry) { c.current.Store(e) }

// cut notes that the connection is about to be closed under the response.
func (c *conn) cut() {
	if e := c.current.Load(); e != nil {
		e.end.Store(c.recorder.now())
	}
}

// finish ends the current request, if any: nothing more is written for it.
func (c *conn) finish() {
	if e := c.current.Swap(nil); e != nil {
		e.finish(c.recorder.now())
	}
}

// takeFirstByte is when the request now being handled began to arrive. One
// that arrived in the same read as the request before it arrived, at the
// latest, now.
func (c *conn) takeFirstByte() int64 {
	if first := c.firstByte.Swap(0); first != 0 {
		return first
	}
	return c.recorder.now()
}

type connKey struct{}

func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func connOf(ctx context.Context) *conn { return ctx.Value(connKey{}).(*conn) }

// connState is told by net/http when a connection has finished a request.
func connState(nc net.Conn, state http.ConnState) {
	c := nc.(*conn)
	switch state {
	case http.StateIdle, http.StateClosed:
		c.finish()
	case http.StateHijacked:
		c.hijacked.Store(true)
	}
}
