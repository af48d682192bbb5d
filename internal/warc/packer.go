package warc

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/gzip"
)

// ErrLength means that a block does not have the length that its record announces.
var ErrLength = errors.New("warc: the block is not as long as announced")

// packFrom is the least length of a block that is compressed. Compression of a shorter one would
// save some two hundred bytes, and take as much time as that of a whole page.
const packFrom = 1 << 10

// Packer writes records, each as a gzip member of its own, so that a reader can begin at any of
// them. It must not be used concurrently.
type Packer struct {
	packing, storing *gzip.Writer
	scratch          []byte
}

// NewPacker returns a packer with a compression level, 1 (fast) to 9 (small). Short records are
// stored in their gzip member without compression.
func NewPacker(level int) (*Packer, error) {
	packing, err := gzip.NewWriterLevel(io.Discard, level)
	if err != nil {
		return nil, fmt.Errorf("warc: compression level %d: %w", level, err)
	}
	storing, err := gzip.NewWriterLevel(io.Discard, gzip.NoCompression)
	return &Packer{packing: packing, storing: storing}, err
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
	n, err := io.Copy(z, r)
	if err != nil {
		return err
	}
	if n != length {
		return fmt.Errorf("%w: %d bytes instead of %d", ErrLength, n, length)
	}
	return p.end(z)
}

// begin writes the header, and adds the length of the block to it.
func (p *Packer) begin(w io.Writer, h Header, length int64) (*gzip.Writer, error) {
	z := p.packing
	if length < packFrom {
		z = p.storing
	}
	z.Reset(w)
	h.Add(FieldLength, strconv.FormatInt(length, 10))
	p.scratch = h.append(p.scratch[:0])
	_, err := z.Write(p.scratch)
	return z, err
}

func (p *Packer) end(z *gzip.Writer) error {
	p.scratch = append(p.scratch[:0], "\r\n\r\n"...)
	if _, err := z.Write(p.scratch); err != nil {
		return err
	}
	return z.Close()
}
