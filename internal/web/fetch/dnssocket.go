package fetch

import (
	"net"
	"sync"
	"time"
)

// Bounds of the sockets of DNS queries. A name server's answer counts if it comes to the port of the
// query and has its identifier. Somebody who can learn the port has only the identifier left to
// guess (RFC 5452, section 9.2), so no port is in use for long, and no two queries under way share
// one. A port on a network serves one query.
const (
	maxSocketQueries = 32
	maxSocketAge     = 10 * time.Second
	maxIdleSockets   = 64
)

// querySockets keeps UDP sockets to name servers of this machine for later queries: to make and to
// close one takes longer than the query. It is safe for concurrent use.
type querySockets struct {
	now func() time.Time

	mu     sync.Mutex // guards what follows; nothing blocks under it
	idle   []*querySocket
	closed bool
}

// querySocket is one socket. It belongs to one query, or to the querySockets.
type querySocket struct {
	*net.UDPConn
	address string // that it was dialled to
	made    time.Time
	queries int
}

// take returns a socket to an address for one more query; nil if there is none.
func (s *querySockets) take(address string) *querySocket {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := s.now().Add(-maxSocketAge)
	for i := len(s.idle) - 1; i >= 0; i-- {
		c := s.idle[i]
		if c.address != address && c.made.After(oldest) {
			continue
		}
		s.idle = append(s.idle[:i], s.idle[i+1:]...)
		if c.made.After(oldest) {
			return c
		}
		_ = c.Close() // it has nothing left to say
	}
	return nil
}

// put takes a socket back after a query that was answered.
func (s *querySockets) put(c *querySocket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.closed || c.queries >= maxSocketQueries || len(s.idle) >= maxIdleSockets
	if full || !isLocal(c.RemoteAddr()) || c.SetDeadline(time.Time{}) != nil {
		return c.Close()
	}
	s.idle = append(s.idle, c)
	return nil
}

// isLocal reports whether an address is one of loopback, which no other machine can send from.
func isLocal(a net.Addr) bool {
	udp, ok := a.(*net.UDPAddr)
	return ok && udp.IP.IsLoopback()
}

// closeIdle closes the idle sockets and reports whether there was one.
func (s *querySockets) closeIdle() bool {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
	return len(idle) > 0
}

// close closes the idle sockets, and every one that is put later.
func (s *querySockets) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.closeIdle()
}
