package testweb

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// connServer serves connections that are handled as they are, without net/http.
type connServer struct {
	running sync.WaitGroup
	mu      sync.Mutex             // guards what follows
	open    map[io.Closer]struct{} // listeners and connections
	closed  bool
}

// serve handles connections to l until Close. A connection is closed when handle returns.
func (s *connServer) serve(l net.Listener, handle func(net.Conn)) error {
	if !s.enter(l, nil) {
		return l.Close()
	}
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // for example too many open files; later there may be fewer
			time.Sleep(10 * time.Millisecond)
		case !s.enter(c, func() { defer s.leave(c); handle(c) }):
			return c.Close()
		}
	}
}

// Close closes listeners and connections and waits for their goroutines.
func (s *connServer) Close() error {
	s.mu.Lock()
	s.closed = true
	var all error
	for c := range s.open {
		if err := c.Close(); !errors.Is(err, net.ErrClosed) { // a handler may have closed it
			all = errors.Join(all, err)
		}
	}
	s.mu.Unlock()
	s.running.Wait()
	return all
}

// enter registers c for Close, and starts serve, if it is not nil. It returns false once the server
// is closed.
func (s *connServer) enter(c io.Closer, serve func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.open == nil {
		s.open = make(map[io.Closer]struct{})
	}
	s.open[c] = struct{}{}
	if serve != nil {
		s.running.Go(serve)
	}
	return true
}

// leave closes c, unless Close did.
func (s *connServer) leave(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[c]; open && !s.closed {
		delete(s.open, c)
		_ = c.Close()
	}
}

// Serve adds a host with an address and a port of its own: handle has each of its connections until it
// returns, and the web keeps no record of them. With https in place of http, scheme is that of its URLs.
// Call it before the first request.
func (w *Web) Serve(scheme, host, address string, handle func(net.Conn)) error {
	l, err := w.listen("tcp", address)
	if err != nil {
		return fmt.Errorf("testweb: listen for %s: %w", host, err)
	}
	one := newSite(scheme, host, l.Addr(), nil)
	w.sites[host] = one
	w.SetAnswer(host, one.address)
	w.running.Go(func() { _ = w.conns.serve(l, handle) })
	return nil
}
