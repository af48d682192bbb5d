package memnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conn is one end of a connection.
type Conn struct {
	in, out       *stream
	local, remote *net.TCPAddr

	once   sync.Once
	abrupt bool // Close resets
}

// Read is net.Conn's.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.blame("read", err)
}

// Write is net.Conn's.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.blame("write", err)
}

func (c *Conn) blame(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Close ends the connection: what was written before still arrives, unless SetLinger(0) says
// otherwise.
func (c *Conn) Close() error {
	err := c.blame("close", net.ErrClosed)
	c.once.Do(func() {
		err = nil
		if c.abrupt || c.in.unread() {
			c.out.fail(reset())
		} else {
			c.out.end()
		}
		c.in.abandon()
	})
	return err
}

// CloseWrite ends the direction to the other end alone.
func (c *Conn) CloseWrite() error {
	c.out.end()
	return nil
}

// SetLinger makes Close reset the connection where it is 0, as that of net.TCPConn does.
func (c *Conn) SetLinger(seconds int) error {
	c.abrupt = seconds == 0
	return nil
}

// reset ends the connection as a machine does that knows nothing of it.
func (c *Conn) reset() {
	c.abrupt = true
	_ = c.Close()
}

func reset() error { return os.NewSyscallError("read", syscall.ECONNRESET) }

// LocalAddr is net.Conn's, a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is net.Conn's, a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is net.Conn's.
func (c *Conn) SetDeadline(t time.Time) error {
	c.in.readBy(t)
	c.out.writeBy(t)
	return nil
}

// SetReadDeadline is net.Conn's.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.readBy(t)
	return nil
}

// SetWriteDeadline is net.Conn's.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.writeBy(t)
	return nil
}
