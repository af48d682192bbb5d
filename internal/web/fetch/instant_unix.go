//go:build unix

package fetch

import (
	"io"
	"net"
	"syscall"
)

// readInstant reads what has arrived on c without blocking. If nothing has arrived, its error is
// errNothing.
func readInstant(c *net.TCPConn, p []byte) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			if n, failed = syscall.Read(int(fd), p); failed != syscall.EINTR {
				return true
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case failed == syscall.EAGAIN || failed == syscall.EWOULDBLOCK:
		return 0, errNothing
	case failed != nil:
		return 0, failed
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
