package fetch

import (
	"bufio"
	"errors"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// conn is one connection to one address. It carries one request at a time and
// belongs to the goroutine of that request, or to the pool.
type conn struct {
	key  connKey
	tcp  net.Conn // *net.TCPConn, unless Options.Dial returns another type
	wire *meter   // over tcp
	rw   net.Conn // wire, or TLS over it

	tap  *tap             // over rw; nil unless Options.Capture
	head *headReader      // over rw or tap
	br   *bufio.Reader    // over head; nil for HTTP/2 and while idle
	h2   *http.ClientConn // over frames; nil for HTTP/1.1

	frames *frames // over rw; HTTP/2 only
	reused bool    // has carried a request before

	// Guarded by pool.mu.
	in           *idleConns // pool.fresh or pool.kept; nil while in use
	older, newer *conn      // its neighbours there
	below        *conn      // the next older one with its key
	expiry       *time.Timer
}

// alive reports whether an idle connection can still be expected to work.
func (c *conn) alive() bool {
	if c.h2 != nil {
		return c.h2.Err() == nil && c.h2.Available() > 0
	}
	return c.silent()
}

// silent reports whether nothing has followed the last response: no end, no reset and no
// unsolicited bytes, whether they are in the kernel, in TLS or decrypted. Records of TLS itself,
// such as session tickets, are processed and do not count. It does not block.
func (c *conn) silent() bool {
	c.wire.instant = maxUnsolicited
	defer func() { c.wire.instant = 0 }()
	var b [1]byte
	n, err := c.rw.Read(b[:])
	return n == 0 && errors.Is(err, errNothing)
}

// close closes the connection at once.
func (c *conn) close() {
	if c.h2 != nil {
		_ = c.h2.Close()
	}
	c.wire.end()
	_ = c.tcp.Close()
}

// abort is close after a request that was broken off.
func (c *conn) abort() {
	c.wire.forget()
	c.close()
}

// meter counts the bytes that pass through a connection, below TLS.
type meter struct {
	net.Conn
	tcp           *net.TCPConn // the same; nil where Options.Dial returns another type
	read, written atomic.Int64

	bandwidth *bandwidth

	account atomic.Pointer[account] // of the request under way; nil: there is none
	once    sync.Once
	done    chan struct{} // closed when nothing is read any more

	// instant, while not 0, is how many bytes may still be read without blocking. A read beyond
	// what has arrived returns errNothing. It belongs to the owner of the connection.
	instant int
}

// maxUnasked bounds the bytes of TLS records that may wait on an idle connection.
const maxUnsolicited = 64 << 10

// nothing is the error of a read when nothing has arrived. It is temporary, so that TLS can read
// again.
type nothing struct{}

func (nothing) Error() string   { return "nothing has arrived" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

var (
	errNothing error = nothing{}
	// errUnasked ends the check of an idle connection on which the server sends more than it may.
	errUnsolicited = errors.New("data on an idle connection")
)

func newMeter(c net.Conn, b *bandwidth) *meter {
	tcp, _ := c.(*net.TCPConn)
	return &meter{Conn: c, tcp: tcp, bandwidth: b, done: make(chan struct{})}
}

// end ends the current wait for bandwidth, and all later ones.
func (m *meter) end() { m.once.Do(func() { close(m.done) }) }

// forget makes the kernel drop what it has not delivered when the connection is closed. Otherwise it goes on
// to send a request that was broken off: after an outage of the network, the server would receive it together
// with later ones.
func (m *meter) forget() {
	if m.tcp != nil {
		_ = m.tcp.SetLinger(0)
	}
}

// interrupt makes every pending and later read and write fail.
func (m *meter) interrupt() {
	m.end()
	m.forget() // HTTP/2 closes the connection itself when a read fails
	_ = m.SetDeadline(time.Unix(1, 0))
}

func (m *meter) Read(p []byte) (n int, err error) {
	if m.instant == 0 {
		return m.receive(p)
	} else if m.instant < 0 {
		return 0, errUnsolicited
	} else if m.tcp == nil {
		return 0, errNothing
	} else if n, err = readInstant(m.tcp, p); n > 0 {
		m.instant -= n
		if m.instant == 0 {
			m.instant = -1
		}
	}
	m.read.Add(int64(n))
	return n, err
}

// receive reads for the request under way.
func (m *meter) receive(p []byte) (int, error) {
	n, err := m.Conn.Read(p[:m.bandwidth.most(len(p))])
	m.read.Add(int64(n))
	if n > 0 {
		m.account.Load().take(n, m.done) // HTTP/2 may have waited since before the request
	}
	return n, err
}

// Write counts before it writes, so that a failed write counts as sent: a part of it may have left.
// An idle connection writes nothing. A request writes nothing without its permit, which is checked here
// because nothing that takes time comes between this and the kernel.
func (m *meter) Write(p []byte) (int, error) {
	if m.instant != 0 {
		return 0, errUnsolicited
	}
	if a := m.account.Load(); a != nil && a.permit != nil {
		if err := a.permit(); err != nil {
			return 0, err
		}
	}
	m.written.Add(int64(len(p)))
	return m.Conn.Write(p)
}

// errHeaderTooLarge ends the reading of a header that exceeds its bound.
var errHeaderTooLarge = errors.New("the response header exceeds its bound")

// headReader bounds the bytes that are read while a header is awaited. Its errors are permanent:
// some readers above drop the first.
type headReader struct {
	net.Conn
	left int64
	err  error
	pace *pace // of the response
}

// limit bounds the bytes to come to n.
func (h *headReader) limit(n int64) { h.left = n }

// unlimited lifts the bound, for the body.
func (h *headReader) unlimited() { h.left = math.MaxInt64 }

func (h *headReader) Read(p []byte) (int, error) {
	if h.err != nil {
		return 0, h.err
	}
	if h.left <= 0 {
		h.err = errHeaderTooLarge
		return 0, h.err
	}
	if int64(len(p)) > h.left {
		p = p[:h.left]
	}
	n, err := h.Conn.Read(p)
	h.left -= int64(n)
	if h.err = err; err == nil && h.pace != nil {
		h.err = h.pace.took(n)
	}
	return n, h.err
}
