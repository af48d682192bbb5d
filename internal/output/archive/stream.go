package archive

import (
	"bufio"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// bufferBytes is how many bytes are gathered before they are written.
const bufferBytes = 256 << 10

// The compressions of lines, Options.Compress.
const (
	CompressNone = "none"
	CompressGzip = "gzip"
	CompressZstd = "zstd"
)

// The extensions of compressed files.
const (
	extensionGzip = ".gz"
	extensionZstd = ".zst"
)

// Packer compresses what is written to it into frames. Consecutive frames can be read as one.
type Packer interface {
	io.Writer
	Reset(io.Writer) // begin a frame
	Close() error    // end it
}

// newPacker returns the packer of a compression, nil if there is none, and the extension of the files.
func newPacker(compression string) (p Packer, extension string, err error) {
	switch compression {
	case CompressGzip:
		p, err = gzip.NewWriterLevel(nil, gzip.DefaultCompression)
		return p, extensionGzip, err
	case CompressZstd:
		p, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20),
			zstd.WithLowerEncoderMem(true))
		return p, extensionZstd, err
	}
	return nil, "", nil
}

// stream is the file being written. What was written and not flushed stays in memory.
type stream struct {
	file   File
	buffer *bufio.Writer
	packer Packer // nil: records are written as they are
	frame  bool   // one was begun
	length int64  // of the file with its buffer; within a frame, of the packer's output so far
}

// use continues with a file of a length.
func (s *stream) use(f File, length int64) {
	s.file, s.length, s.frame = f, length, false
	if s.buffer == nil {
		s.buffer = bufio.NewWriterSize(f, bufferBytes)
		return
	}
	s.buffer.Reset(f)
}

// counted is the stream behind the packer.
type counted struct{ s *stream }

func (c counted) Write(p []byte) (int, error) {
	n, err := c.s.buffer.Write(p)
	c.s.length += int64(n)
	return n, err
}

// write adds a record.
func (s *stream) write(r *Record) error {
	if s.packer == nil {
		return r.writeTo(counted{s})
	}
	if !s.frame {
		s.packer.Reset(counted{s})
		s.frame = true
	}
	return r.writeTo(s.packer)
}

// flush ends the frame and makes the file survive a power cut.
func (s *stream) flush() error {
	if s.frame {
		s.frame = false
		if err := s.packer.Close(); err != nil {
			return err
		}
	}
	if err := s.buffer.Flush(); err != nil {
		return err
	}
	return s.file.Sync()
}

// drop closes the file without what was not flushed.
func (s *stream) drop() {
	if s.file != nil {
		s.file.Close() // its last bytes are about to be cut: an error does not matter
		s.file = nil
	}
}
