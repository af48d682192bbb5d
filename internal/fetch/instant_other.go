//go:build !unix

package fetch

import "net"

// readInstant cannot look at a connection without a wait on this system: a connection that the server
// has closed is noticed by the next request, which then fails with KindLostOnReuse.
func readInstant(*net.TCPConn, []byte) (int, error) { return 0, errNothing }
