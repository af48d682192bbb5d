package routes

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// conn is one end of a connection between two nodes: the user's end of a pipe, whose other end two
// goroutines of the package serve. Deadlines are those of the pipe.
type conn struct {
	net.Conn
	r        *Routes
	inner    net.Conn // the other end of the pipe
	id       string
	node     string // the other one
	incoming bool   // the other node has opened it; guarded by Routes.mu
	peer     string // subject of the other end

	in       chan []byte   // data that was received, and nil at its end
	credit   chan struct{} // acked has grown
	accepted chan struct{} // closed when the other side has accepted
	done     chan struct{} // closed when the connection is over
	silent   atomic.Int32  // ticks since a message was received
	acked    atomic.Uint32 // data messages that the other side has taken
	sent     atomic.Uint32 // data messages
	taken    atomic.Uint32 // data messages that the user has read

	received uint32 // data messages; of the goroutine that takes messages
	ended    bool   // kindEnd was received; likewise

	mu  sync.Mutex
	err error // why the connection is over; set before done is closed
}

func newConn(r *Routes, id, node, peer string) *conn {
	user, inner := net.Pipe()
	return &conn{
		Conn: user, r: r, inner: inner, id: id, node: node, peer: peer,
		in: make(chan []byte, window+1), credit: make(chan struct{}, 1),
		accepted: make(chan struct{}), done: make(chan struct{}),
	}
}

// Read reads what the other node has written. The error says why the connection was broken.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.cause(err)
}

// Write writes to the other node. It returns when a goroutine of the package has taken all of b.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.cause(err)
}

// cause returns why the connection was broken in place of the error of the pipe.
func (c *conn) cause(err error) error {
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil && !errors.Is(c.err, net.ErrClosed) {
		return fmt.Errorf("the connection to node %s: %w", c.node, c.err)
	}
	return err
}

// finish ends the connection; the first error counts. net.ErrClosed: nothing has gone wrong.
func (c *conn) finish(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.mu.Unlock()
	if first {
		close(c.done)
		_ = c.inner.Close() // a pipe
		c.r.forget(c)
	}
}

// publish sends a message.
func (c *conn) publish(f frame) error { return c.r.publish(c.peer, c.id, f) }

// send sends what the user writes, until the user closes the connection or it is broken.
func (c *conn) send() {
	buffer := make([]byte, maxData)
	for {
		n, err := c.inner.Read(buffer)
		if n > 0 && !c.sendData(buffer[:n]) {
			return
		}
		if err != nil {
			_ = c.publish(frame{kind: kindEnd, number: c.sent.Load()}) // otherwise the other side waits in vain
			c.finish(net.ErrClosed)
			return
		}
	}
}

// sendData sends data when the other side has room. It reports whether the connection goes on.
func (c *conn) sendData(data []byte) bool {
	for c.sent.Load()-c.acked.Load() >= window {
		select {
		case <-c.credit:
		case <-c.done:
			return false
		}
	}
	if err := c.publish(frame{kind: kindData, number: c.sent.Add(1) - 1, data: data}); err != nil {
		c.finish(err)
		return false
	}
	return true
}

// deliver gives the user what was received.
func (c *conn) deliver() {
	for {
		var data []byte
		select {
		case data = <-c.in:
		case <-c.done:
			return
		}
		if data == nil {
			_ = c.inner.Close() // the user reads io.EOF
			return
		}
		if _, err := c.inner.Write(data); err != nil {
			return // send notices it too
		}
		if n := c.taken.Add(1); n%(window/2) == 0 {
			_ = c.sayTaken() // it is said again
		}
	}
}

// sayTaken sends how many data messages were taken.
func (c *conn) sayTaken() error { return c.publish(frame{kind: kindCredit, number: c.taken.Load()}) }

var (
	errLost    = errors.New("messages were lost")
	errRefused = errors.New("the other node has closed it, or has no room for it")
	errSilent  = errors.New("the other node is silent")
)

// take takes a message of the other side. It must not block.
func (c *conn) take(f frame) {
	c.silent.Store(0)
	switch f.kind {
	case kindOpen:
		_ = c.publish(frame{kind: kindAccept}) // the other node sends it until it is answered
	case kindAccept:
		select {
		case <-c.accepted:
		default:
			close(c.accepted)
		}
	case kindData, kindEnd:
		if f.number != c.received || c.ended {
			c.finish(errLost)
			return
		}
		if f.kind == kindEnd {
			c.ended, f.data = true, nil
		} else {
			c.received++
		}
		select {
		case c.in <- f.data:
		default:
			c.finish(errFrame) // more than it may send
		}
	case kindCredit:
		c.takeCredit(f.number)
	case kindRefuse:
		c.finish(errRefused)
	}
}

// takeCredit takes the number of data messages that the other side has taken. An older one may come
// late.
func (c *conn) takeCredit(taken uint32) {
	acked := c.acked.Load()
	if newer := taken - acked; newer == 0 || newer > window {
		return
	}
	if taken-acked > c.sent.Load()-acked {
		c.finish(errFrame) // more than was sent
		return
	}
	c.acked.Store(taken)
	select {
	case c.credit <- struct{}{}:
	default:
	}
}
