//go:build !unix

package fetch

import "net"

// readInstant cannot check a connection without blocking on this system. The next request notices a
// connection that the server has closed, and fails with KindLostOnReuse.
func readInstant(*net.TCPConn, []byte) (int, error) { return 0, errNothing }
