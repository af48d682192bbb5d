package testweb

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync/atomic"
)

// recordedListener accepts connections that time the requests on them.
type recordedListener struct {
	net.Listener
	recorder *recorder
	max      int64 // connections that are open at a time; 0: any number
	site     *site // whose clients need not name it; nil: they do
}

func (l *recordedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	for err == nil && l.recorder.open.Add(1) > l.max && l.max > 0 {
		l.recorder.open.Add(-1)
		_ = c.Close()
		c, err = l.Listener.Accept()
	}
	if err != nil {
		return nil, err
	}
	address := c.LocalAddr().(*net.TCPAddr).IP.String()
	return &conn{
		Conn: c, recorder: l.recorder, site: l.site, address: address, number: l.recorder.conns.Add(1),
	}, nil
}

// countedListener counts the connections that it accepts.
type countedListener struct {
	net.Listener
	accepted *atomic.Int64
}

// Accept accepts a connection.
func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return c, err
}

// conn records when the bytes of a request come from the kernel and when those of its response go
// there. net/http reads in a goroutine of its own while a handler runs, so the fields are atomic.
type conn struct {
	net.Conn
	recorder *recorder
	site     *site  // nil: the request names it
	address  string // the server's
	number   int64

	firstByte atomic.Int64          // when the first byte of the next request was read; 0: not yet
	current   atomic.Pointer[entry] // the request being handled; nil between requests
	hijacked  atomic.Bool
	closed    atomic.Bool
}

// writePiece splits long writes, so that the time before the last piece is close to the time of the
// last byte even if the client reads slowly.
const writePiece = 32 << 10

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.firstByte.Load() == 0 {
		c.firstByte.Store(c.recorder.now())
	}
	// net/http ends its own background read by a deadline: this is not from the client.
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

// Close ends the request of a hijacked connection. Any other request has ended before, or cut ends
// it.
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

// begin makes e the request of the following reads and writes.
func (c *conn) begin(e *entry) { c.current.Store(e) }

// cut records that the connection will be closed before the end of the response.
func (c *conn) cut() {
	if e := c.current.Load(); e != nil {
		e.end.Store(c.recorder.now())
	}
}

// finish ends the current request, if any.
func (c *conn) finish() {
	if e := c.current.Swap(nil); e != nil {
		e.finish(c.recorder.now())
	}
}

// takeFirstByte returns when the request that is now handled began to arrive. If it arrived in the
// same read as the request before it, the result is now.
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

// connState is called by net/http when a connection has finished a request.
func connState(nc net.Conn, state http.ConnState) {
	c := nc.(*conn)
	switch state {
	case http.StateIdle, http.StateClosed:
		c.finish()
	case http.StateHijacked:
		c.hijacked.Store(true)
	}
}
