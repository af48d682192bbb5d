package warc

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// gzipMembers reads records with a gzip member each.
type gzipMembers struct {
	source *bufio.Reader
	gzip   *gzip.Reader // nil: none was begun
}

func (m *gzipMembers) begin() (err error) {
	if m.gzip == nil {
		m.gzip, err = gzip.NewReader(m.source)
	} else {
		err = m.gzip.Reset(m.source)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // within its header
	}
	if err != nil {
		return gzipError(err)
	}
	m.gzip.Multistream(false)
	return nil
}

func (m *gzipMembers) Read(p []byte) (int, error) {
	n, err := m.gzip.Read(p)
	return n, gzipError(err)
}

func (m *gzipMembers) end() error {
	var next [1]byte
	switch n, err := io.ReadFull(m, next[:]); {
	case n > 0:
		return errMore
	case err == io.EOF: // the checksum is right
		return nil
	default:
		return err
	}
}

// gzipError wraps an error of the format; others are of the source, io.EOF among them.
func gzipError(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return err
}
