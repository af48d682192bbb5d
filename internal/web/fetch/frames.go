package fetch

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
)

const (
	// maxOverhead bounds the bytes of an HTTP/2 connection that carry nothing: frames that are
	// empty, unknown or about the connection itself, and padding. net/http allows the chunks of
	// HTTP/1.1 as much. Content makes up for some of it, and a new request for all of it.
	maxOverhead = 16 << 10
	// overheadFrame and overheadByte are the overhead that a frame with content, and each byte of
	// it, make up for.
	overheadFrame, overheadByte = 16, 2
)

// errFlood ends an HTTP/2 connection that is full of frames that carry nothing.
var errFlood = errors.New("HTTP/2: too many frames that carry nothing")

// The frames that matter here (RFC 9113, section 6).
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameContinuation = 0x9

	flagEndHeaders = 0x4
	flagPadded     = 0x8
)

// frames reads along with HTTP/2, which net/http speaks over it, and bounds what a server may send:
// the bytes of headers, and the bytes that are neither header nor content. A server that sends more
// loses its connection, also while no request is under way.
type frames struct {
	net.Conn                           // below TLS. Its Close does not wait until TLS can say goodbye
	secured   atomic.Pointer[tls.Conn] // nil once it has ended: net/http keeps a closed connection for seconds
	maxHeader int64

	// The frame that is being read. These fields belong to the reader.
	head [10]byte // its header; for padded content also the length of the padding
	have int      // of head
	left int64    // payload to come
	err  error    // permanent

	mu       sync.Mutex // guards what follows
	stream   uint32     // of the request under way, or of the last one
	busy     bool       // a request is under way
	header   int64      // bytes of header frames since it began
	long     bool       // one of its headers did not fit into a frame
	overhead int64
}

// begin starts a request: the next stream.
func (f *frames) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stream += 2
	if f.stream == 2 {
		f.stream = 1
	}
	f.busy, f.header, f.long, f.overhead = true, 0, false, 0
}

// end ends the request. Nothing is expected after it.
func (f *frames) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = false
}

// explain names the error of a request. net/http reports a header longer than it accepts with the
// same error as many others.
func (f *frames) explain(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch err.Error() {
	case "connection error: PROTOCOL_ERROR", "connection error: COMPRESSION_ERROR":
		if f.long {
			return fmt.Errorf("%w: %w", errHeaderTooLarge, err)
		}
	}
	return err
}

// Read reads from the connection and counts what it read.
func (f *frames) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	secured := f.secured.Load()
	if secured == nil {
		return 0, net.ErrClosed
	}
	n, err := secured.Read(p)
	if err != nil {
		f.secured.Store(nil)
	}
	if f.err = f.advance(p[:n]); f.err != nil {
		return 0, f.err
	}
	return n, err
}

// Write writes to the connection.
func (f *frames) Write(p []byte) (int, error) {
	if secured := f.secured.Load(); secured != nil {
		return secured.Write(p)
	}
	return 0, net.ErrClosed
}

// advance takes the next bytes of the connection, wherever they begin and end.
func (f *frames) advance(b []byte) error {
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, int64(len(b)))
			f.left -= n
			b = b[n:]
			continue
		}
		n := copy(f.head[f.have:f.wanted()], b)
		f.have += n
		b = b[n:]
		if f.have < f.wanted() {
			continue
		}
		length := int64(f.head[0])<<16 | int64(f.head[1])<<8 | int64(f.head[2])
		f.left = length - int64(f.have-9)
		f.have = 0
		if err := f.count(length); err != nil {
			return err
		}
	}
	return nil
}

// wanted returns how many bytes of a frame must be known: its header, and one more for padded
// content.
func (f *frames) wanted() int {
	if f.have >= 9 && f.head[3] == frameData && f.head[4]&flagPadded != 0 && f.head[0]|f.head[1]|f.head[2] != 0 {
		return 10
	}
	return 9
}

// count counts the frame whose header is known, with length bytes of payload.
func (f *frames) count(length int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	stream := binary.BigEndian.Uint32(f.head[5:9]) & math.MaxInt32
	switch f.head[3] {
	case frameHeaders, frameContinuation:
		f.long = f.long || f.head[4]&flagEndHeaders == 0
		if f.header += 9 + length; f.header > f.maxHeader {
			return errHeaderTooLarge
		}
		return nil
	case frameData:
		content := length
		if f.head[4]&flagPadded != 0 {
			content = max(length-1-int64(f.head[9]), 0)
		}
		if content > 0 && f.busy && stream == f.stream {
			length -= content
			f.overhead = max(f.overhead-overheadFrame-overheadByte*content, 0)
		}
	}
	if f.overhead += 9 + length; f.overhead > maxOverhead {
		return errFlood
	}
	return nil
}
