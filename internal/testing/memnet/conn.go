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

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.blame("read", err)
}

// Write implements net.Conn.
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

// Close ends the connection. Bytes written before still arrive, unless SetLinger(0) was called.
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

// CloseWrite ends the direction to the other end.
func (c *Conn) CloseWrite() error {
	c.out.end()
	return nil
}

// SetLinger(0) makes Close reset the connection, as for net.TCPConn.
func (c *Conn) SetLinger(seconds int) error {
	c.abrupt = seconds == 0
	return nil
}

// reset ends the connection like a machine that does not know it.
func (c *Conn) reset() {
	c.abrupt = true
	_ = c.Close()
}

func reset() error { return os.NewSyscallError("read", syscall.ECONNRESET) }

// LocalAddr implements net.Conn. It returns a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn. It returns a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.in.readBy(t)
	c.out.writeBy(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.readBy(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.writeBy(t)
	return nil
}
