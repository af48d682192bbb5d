package warc

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/gzip"
)

// ErrLength says that a block is not as long as its record says.
var ErrLength = errors.New("warc: the block is not as long as announced")

// Packer writes records, each as a gzip member of its own, so that a reader can begin at any of them. It may not be
// used concurrently.
type Packer struct {
	gzip    *gzip.Writer
	scratch []byte
}

// NewPacker returns a packer of a compression level, 1 (fast) to 9 (small).
func NewPacker(level int) (*Packer, error) {
	w, err := gzip.NewWriterLevel(io.Discard, level)
	if err != nil {
		return nil, fmt.Errorf("warc: compression level %d: %w", level, err)
	}
	return &Packer{gzip: w}, nil
}

// Write writes a record whose block is the bytes.
func (p *Packer) Write(w io.Writer, h Header, block []byte) error {
	if err := p.begin(w, h, int64(len(block))); err != nil {
		return err
	}
	if _, err := p.gzip.Write(block); err != nil {
		return err
	}
	return p.end()
}

// WriteFrom writes a record whose block is what r has, which must be as many bytes as length says.
func (p *Packer) WriteFrom(w io.Writer, h Header, r io.Reader, length int64) error {
	if err := p.begin(w, h, length); err != nil {
		return err
	}
	n, err := io.Copy(p.gzip, r)
	if err != nil {
		return err
	}
	if n != length {
		return fmt.Errorf("%w: %d bytes instead of %d", ErrLength, n, length)
	}
	return p.end()
}

// begin writes the header, to which it adds the length of the block.
func (p *Packer) begin(w io.Writer, h Header, length int64) error {
	p.gzip.Reset(w)
	h.Add(FieldLength, strconv.FormatInt(length, 10))
	p.scratch = h.append(p.scratch[:0])
	_, err := p.gzip.Write(p.scratch)
	return err
}

func (p *Packer) end() error {
	if _, err := p.gzip.Write([]byte("\r\n\r\n")); err != nil {
		return err
	}
	return p.gzip.Close()
}
