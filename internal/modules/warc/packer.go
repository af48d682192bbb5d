package warc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// ErrLength means that a block does not have the length that its record announces.
var ErrLength = errors.New("warc: the block is not as long as announced")

// packFrom is the least length of a record that is compressed at level 1 without a dictionary.
// Compression of a shorter one would save some four hundred bytes, and take half as much time as
// that of a page.
const packFrom = 3 << 9

// windowBytes is the window of a Zstandard encoder. A record that is longer is compressed in parts
// of that length that refer to each other; the encoder holds twice as much.
const windowBytes = 1 << 20

// Packer writes records, each compressed on its own, so that a reader can begin at any of them. It
// must not be used concurrently.
type Packer struct {
	packing, short compressor // short: for records below packFrom
	scratch        []byte
}

// compressor compresses one record after the other.
type compressor interface {
	begin(w io.Writer, size int64) // of a record of size bytes, its header included
	io.WriteCloser                 // Close ends the record
}

// NewPacker returns a packer. The error is that of [Compression.Validate].
func NewPacker(c Compression) (*Packer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	store := c.Level == 1 && c.Dictionary == nil
	newCompressor := newGzip
	if c.Format == FormatZstd {
		newCompressor = newZstd
	}
	packing, err := newCompressor(c, false)
	if err != nil {
		return nil, fmt.Errorf("warc: %s level %d: %w", c.Format, c.Level, err)
	}
	// Short records have an encoder of their own, even if it is not another one: after a long record
	// an encoder restores all tables of its dictionary.
	short, err := newCompressor(c, store)
	if err != nil {
		return nil, fmt.Errorf("warc: %s: %w", c.Format, err)
	}
	return &Packer{packing: packing, short: short}, nil
}

// gzipCompressor compresses records to gzip members.
type gzipCompressor struct{ *gzip.Writer }

func newGzip(c Compression, store bool) (compressor, error) {
	if store {
		return &storedMember{}, nil
	}
	z, err := gzip.NewWriterLevel(io.Discard, c.Level)
	if err == nil && c.Level == 1 {
		return newQuickGzip(gzipCompressor{z}), nil
	}
	return gzipCompressor{z}, err
}

func (z gzipCompressor) begin(w io.Writer, _ int64) { z.Reset(w) }

// storedMember writes records below packFrom to gzip members with one block that is not compressed.
type storedMember struct {
	w     io.Writer
	bytes []byte
	start int // of the content in bytes
}

func (m *storedMember) begin(w io.Writer, size int64) {
	m.w, m.bytes = w, append(m.bytes[:0], gzipHeader...)
	m.bytes = append(m.bytes, 1) // of type 0, the last one
	m.bytes = binary.LittleEndian.AppendUint16(m.bytes, uint16(size))
	m.bytes = binary.LittleEndian.AppendUint16(m.bytes, ^uint16(size))
	m.start = len(m.bytes)
}

func (m *storedMember) Write(p []byte) (int, error) {
	m.bytes = append(m.bytes, p...)
	return len(p), nil
}

func (m *storedMember) Close() error {
	m.bytes = appendGzipEnd(m.bytes, m.bytes[m.start:])
	_, err := m.w.Write(m.bytes)
	return err
}

// zstdCompressor compresses records to Zstandard frames. The IIPC demands that each has its content
// size and a checksum.
type zstdCompressor struct{ *zstd.Encoder }

func newZstd(c Compression, store bool) (compressor, error) {
	if store {
		return &rawFrame{}, nil
	}
	options := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.EncoderLevel(c.Level)), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithWindowSize(windowBytes), zstd.WithSingleSegment(true), // else a frame below 256 bytes has no size
	}
	if c.Dictionary != nil {
		options = append(options, zstd.WithEncoderDict(c.Dictionary))
	}
	z, err := zstd.NewWriter(nil, options...)
	return zstdCompressor{z}, err
}

func (z zstdCompressor) begin(w io.Writer, size int64) { z.ResetContentSize(w, size) }

// rawFrame writes records below packFrom to Zstandard frames with one block that is not compressed.
// The fastest level of the library takes several times as long, even for next to nothing.
type rawFrame struct {
	w     io.Writer
	bytes []byte
	start int // of the content in bytes
}

func (f *rawFrame) begin(w io.Writer, size int64) {
	h := zstd.Header{SingleSegment: true, HasFCS: true, FrameContentSize: uint64(size), HasCheckSum: true}
	f.bytes, _ = h.AppendTo(f.bytes[:0]) // no header with a size is refused
	block := size<<3 | 1                 // of type 0, the last one
	f.w, f.bytes = w, append(f.bytes, byte(block), byte(block>>8), byte(block>>16))
	f.start = len(f.bytes)
}

func (f *rawFrame) Write(p []byte) (int, error) {
	f.bytes = append(f.bytes, p...)
	return len(p), nil
}

func (f *rawFrame) Close() error {
	f.bytes = binary.LittleEndian.AppendUint32(f.bytes, uint32(xxhash.Sum64(f.bytes[f.start:])))
	_, err := f.w.Write(f.bytes)
	return err
}

// Write writes a record whose block is the concatenation of the parts.
func (p *Packer) Write(w io.Writer, h Header, parts ...[]byte) error {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	z, err := p.begin(w, h, int64(length))
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := z.Write(part); err != nil {
			return err
		}
	}
	return p.end(z)
}

// WriteFrom writes a record whose block is read from r, which must have exactly length bytes.
func (p *Packer) WriteFrom(w io.Writer, h Header, r io.Reader, length int64) error {
	z, err := p.begin(w, h, length)
	if err != nil {
		return err
	}
	n, err := io.Copy(onlyWriter{z}, r)
	if err != nil {
		return err
	}
	if n != length {
		return fmt.Errorf("%w: %d bytes instead of %d", ErrLength, n, length)
	}
	return p.end(z)
}

// onlyWriter hides ReadFrom, which would make the Zstandard encoder compress the header by itself.
type onlyWriter struct{ io.Writer }

// recordEnd follows each block.
const recordEnd = "\r\n\r\n"

// begin writes the header, and adds the length of the block to it.
func (p *Packer) begin(w io.Writer, h Header, length int64) (compressor, error) {
	h.Add(FieldLength, strconv.FormatInt(length, 10))
	p.scratch = h.append(p.scratch[:0])
	size := int64(len(p.scratch)) + length + int64(len(recordEnd))
	z := p.packing
	if size < packFrom {
		z = p.short
	}
	z.begin(w, size)
	_, err := z.Write(p.scratch)
	return z, err
}

func (p *Packer) end(z compressor) error {
	p.scratch = append(p.scratch[:0], recordEnd...)
	if _, err := z.Write(p.scratch); err != nil {
		return err
	}
	return z.Close()
}
