package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Content is a finished sequence of bytes, in memory or in a file. Any number of goroutines may
// read it until it is closed. A nil Content is empty.
type Content struct {
	pool *Pool
	mem  []byte   // everything while file is nil, else the head
	file *os.File // nil: in memory
	size int64
	held int64

	closed bool
}

// Of returns a content of bytes that are in memory anyway. It counts against no budget.
func Of(b []byte) *Content { return &Content{mem: b, size: int64(len(b))} }

// Size returns the number of bytes.
func (c *Content) Size() int64 {
	if c == nil {
		return 0
	}
	return c.size
}

// Bytes returns all bytes if they are in memory. They may not be changed, nor be used after Close.
// It returns false for a content in a file.
func (c *Content) Bytes() ([]byte, bool) {
	if c == nil {
		return nil, true
	}
	return c.mem, c.file == nil
}

// Head returns the first n bytes, or fewer if the content or [HeadBytes] is shorter. It reads no
// file. The bytes may not be changed, nor be used after Close.
func (c *Content) Head(n int) []byte {
	if c == nil {
		return nil
	}
	return c.mem[:min(n, len(c.mem), HeadBytes)]
}

// Load returns the first n bytes, or all if there are fewer: those in memory, or else read into
// buf, which grows if it is too small. An error is an *Error.
func (c *Content) Load(buf []byte, n int64) ([]byte, error) {
	n = min(n, c.Size())
	if n == 0 {
		return nil, nil
	}
	if c.file == nil || n <= int64(len(c.mem)) {
		return c.mem[:n], nil
	}
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := c.file.ReadAt(buf, 0); err != nil {
		return nil, &Error{err}
	}
	return buf, nil
}

// NewReader returns a reader of all bytes, with an offset of its own. It can read, read at an
// offset and seek.
func (c *Content) NewReader() *io.SectionReader {
	return io.NewSectionReader(c.readerAt(), 0, c.Size())
}

func (c *Content) readerAt() io.ReaderAt {
	switch {
	case c == nil:
		return bytes.NewReader(nil)
	case c.file == nil:
		return bytes.NewReader(c.mem)
	}
	return c.file
}

// WriteTo writes all bytes to w.
func (c *Content) WriteTo(w io.Writer) (int64, error) {
	if b, ok := c.Bytes(); ok {
		n, err := w.Write(b)
		return int64(n), err
	}
	return io.Copy(w, c.NewReader())
}

// errClosed is the error of a second Close.
var errClosed = errors.New("spool: the content is closed already")

// Close releases the memory and the file. No reader may be used afterwards.
func (c *Content) Close() error {
	if c == nil {
		return nil
	}
	if c.closed {
		return errClosed
	}
	c.pool.recycle(c.mem, c.held)
	var err error
	if c.file != nil {
		err = c.pool.discard(c.file)
	}
	*c = Content{closed: true}
	return err
}
