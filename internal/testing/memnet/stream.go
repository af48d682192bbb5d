package memnet

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// stream is one direction of a connection.
type stream struct {
	arrival func(bytes int) time.Time // when bytes that are written now can be read

	mu       sync.Mutex // guards what follows
	moved    sync.Cond  // a field below has changed
	segments []segment  // written and not read, in order
	buffered int        // bytes in them
	ended    time.Time  // when the end arrives; zero: the stream has not ended
	failed   error      // of both ends
	gone     bool       // the reader has gone
	reader   deadline
	writer   deadline
}

// segment is the content of one packet.
type segment struct {
	at   time.Time // when it can be read
	data []byte
}

const (
	maxSegment  = 1448     // bytes of a packet
	maxBuffered = 64 << 10 // bytes that may be in flight before the writer waits
)

func newStream(arrival func(int) time.Time) *stream {
	s := &stream{arrival: arrival}
	s.moved.L = &s.mu
	return s
}

// deadline bounds a wait.
type deadline struct {
	at    time.Time // zero: none
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// set moves a deadline, and wakes the waiting goroutines when it has passed. A deadline in the past
// takes no timer: a timer that is due when it is made runs on the caller's thread, and with -race
// two of them at a time in one bubble of testing/synctest abort the process (golang/go#78156).
func (s *stream) set(d *deadline, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if !at.IsZero() && !d.passed() {
		d.timer = s.wakeLocked(at)
	}
	s.moved.Broadcast()
}

// wakeLocked wakes the waiting goroutines at an instant.
func (s *stream) wakeLocked(at time.Time) *time.Timer {
	return time.AfterFunc(time.Until(at), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.moved.Broadcast()
	})
}

func (s *stream) readBy(at time.Time)  { s.set(&s.reader, at) }
func (s *stream) writeBy(at time.Time) { s.set(&s.writer, at) }

// write waits for room and sends bytes.
func (s *stream) write(p []byte) (written int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case !s.ended.IsZero():
			return written, net.ErrClosed
		case s.writer.passed():
			return written, os.ErrDeadlineExceeded
		case s.failed != nil, s.gone:
			return written, os.NewSyscallError("write", syscall.EPIPE)
		case written == len(p):
			return written, nil
		case s.buffered >= maxBuffered:
			s.moved.Wait()
		default:
			n := min(len(p)-written, maxSegment)
			s.segments = append(s.segments, segment{at: s.arrival(n), data: bytes.Clone(p[written : written+n])})
			s.buffered += n
			written += n
			s.moved.Broadcast()
		}
	}
}

// read waits for bytes that have arrived.
func (s *stream) read(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.gone:
			return 0, net.ErrClosed
		case s.reader.passed():
			return 0, os.ErrDeadlineExceeded
		case s.failed != nil:
			return 0, s.failed
		case len(p) == 0:
			return 0, nil
		}
		now := time.Now()
		for len(s.segments) > 0 && n < len(p) && !s.segments[0].at.After(now) {
			n += s.takeLocked(p[n:])
		}
		next := s.ended
		switch {
		case n > 0:
			s.moved.Broadcast()
			return n, nil
		case len(s.segments) > 0:
			next = s.segments[0].at
		case !s.ended.IsZero() && !s.ended.After(now):
			return 0, io.EOF
		}
		s.waitLocked(next)
	}
}

// takeLocked moves bytes of the first segment into p.
func (s *stream) takeLocked(p []byte) int {
	first := &s.segments[0]
	n := copy(p, first.data)
	s.buffered -= n
	if first.data = first.data[n:]; len(first.data) == 0 {
		s.segments[0] = segment{}
		s.segments = s.segments[1:]
	}
	return n
}

// waitLocked waits until a field changes, or until an instant; zero: no instant.
func (s *stream) waitLocked(until time.Time) {
	if until.IsZero() {
		s.moved.Wait()
		return
	}
	timer := s.wakeLocked(until)
	s.moved.Wait()
	timer.Stop()
}

// end records that the writer has written everything.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.IsZero() {
		s.ended = s.arrival(0)
		s.moved.Broadcast()
	}
}

// fail breaks the stream. Bytes that were not read are lost.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed, s.segments, s.buffered = err, nil, 0
	s.moved.Broadcast()
}

// abandon records that the reader has gone.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone, s.segments, s.buffered = true, nil, 0
	s.moved.Broadcast()
}

// unread reports whether bytes are in flight that were not read.
func (s *stream) unread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffered > 0
}
