package hostsort

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/amble-crawler/amble/internal/web/spool"
)

// A run is the sorted records of one sorter's memory. It is a sequence of groups, one for each host
// in order: the length of the reversed name, the name, the number of records, and for each record
// its length and its bytes. Numbers are unsigned varints.
//
// A run never outlives its process, so it has neither a version nor a checksum. The reader still
// bounds what it takes from a damaged one.

// The sizes of the buffers of runs.
const (
	readBytes  = 32 << 10
	writeBytes = 256 << 10
)

// maxHost is the largest length of a host's name, as weburl bounds it by the length of a URL.
const maxHost = 4 << 10

// errDamaged says that a run does not hold what was written.
var errDamaged = errors.New("a sorted run is damaged")

// runWriter writes a run. The first error stays.
type runWriter struct {
	to     *spool.Writer
	buffer *bufio.Writer
	number []byte
}

func newRunWriter(pool *spool.Pool) *runWriter {
	w := &runWriter{to: pool.NewWriter(0)}
	w.buffer = bufio.NewWriterSize(w.to, writeBytes)
	return w
}

func (w *runWriter) uvarint(n int) {
	w.number = binary.AppendUvarint(w.number[:0], uint64(n))
	_, _ = w.buffer.Write(w.number) // the buffer keeps its first error
}

func (w *runWriter) group(host string, count int) {
	w.uvarint(len(host))
	_, _ = w.buffer.WriteString(host)
	w.uvarint(count)
}

func (w *runWriter) record(record []byte) {
	w.uvarint(len(record))
	_, _ = w.buffer.Write(record)
}

// content returns what was written, or the first error.
func (w *runWriter) content() (*spool.Content, error) {
	if err := w.buffer.Flush(); err != nil {
		w.to.Discard()
		return nil, err
	}
	return w.to.Content(), nil
}

// source is sorted records. After next has returned a group, record returns its records one by one.
type source interface {
	// next returns the next host, reversed, and the number of its records. The error is io.EOF
	// behind the last one.
	next() (host string, count int, err error)
	// record returns the next record, which is valid until the next call.
	record() ([]byte, error)
}

// runReader reads a run.
type runReader struct {
	from   *bufio.Reader
	buffer []byte
}

func newRunReader(r io.Reader) *runReader { return &runReader{from: bufio.NewReaderSize(r, readBytes)} }

func (r *runReader) next() (host string, count int, err error) {
	if _, err := r.from.Peek(1); err != nil {
		return "", 0, err
	}
	name, err := r.bytes(maxHost)
	if err != nil {
		return "", 0, err
	}
	host = string(name)
	n, err := r.uvarint(math.MaxInt32)
	return host, n, err
}

func (r *runReader) record() ([]byte, error) { return r.bytes(MaxRecord) }

// bytes reads a length and as many bytes.
func (r *runReader) bytes(most int) ([]byte, error) {
	n, err := r.uvarint(most)
	if err != nil {
		return nil, err
	}
	if cap(r.buffer) < n {
		r.buffer = make([]byte, n)
	}
	_, err = io.ReadFull(r.from, r.buffer[:n])
	return r.buffer[:n], inside(err)
}

func (r *runReader) uvarint(most int) (int, error) {
	n, err := binary.ReadUvarint(r.from)
	if err == nil && n > uint64(most) {
		err = errDamaged
	}
	return int(n), inside(err)
}

// inside returns the error of a read that must not meet the end.
func inside(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errDamaged
	}
	return err
}

// memorySource is the records in the memory of a sorter.
type memorySource struct {
	sorter *Sorter
	groups []group // those that are left
	at     uint32  // of the next record
}

func (m *memorySource) next() (host string, count int, err error) {
	if len(m.groups) == 0 {
		return "", 0, io.EOF
	}
	g := &m.groups[0]
	m.groups, m.at = m.groups[1:], g.first
	return g.host, g.count, nil
}

func (m *memorySource) record() ([]byte, error) {
	b := m.sorter.at(m.at)
	m.at = binary.LittleEndian.Uint32(b)
	size, n := binary.Uvarint(b[linkBytes:])
	return b[linkBytes+n:][:size], nil
}
