package warc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// Errors of a [Reader].
var (
	// ErrTorn means that the file ends within a record.
	ErrTorn = errors.New("warc: the file ends within a record")
	// ErrFormat means that something is no record.
	ErrFormat = errors.New("warc: not a record")
)

// maxHeader bounds the header of a record in bytes, maxFields the number of its fields.
const (
	maxHeader = 256 << 10
	maxFields = 1000
)

// Record is a record that was read. Its block can be read until the next call of Next.
type Record struct {
	Header Header
	Offset int64 // of its gzip member, from where the reader began
	Size   int64 // of the block
	Block  io.Reader
}

// Type returns the WARC-Type.
func (r *Record) Type() string { return r.Header.Get(FieldType) }

// Reader reads the records of a file one after the other. It holds no block in memory.
type Reader struct {
	source  *countingReader
	buffer  *bufio.Reader
	gzip    *gzip.Reader
	content *bufio.Reader // of the gzip member
	block   io.LimitedReader
	record  bool // one was begun and has not ended
}

// NewReader returns a reader of records with a gzip member each.
func NewReader(r io.Reader) *Reader {
	source := &countingReader{r: r}
	return &Reader{source: source, buffer: bufio.NewReaderSize(source, 64<<10), content: bufio.NewReaderSize(nil, 4<<10)}
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Offset returns where the next record begins, once the last one has been read to its end or Next
// has been called.
func (r *Reader) Offset() int64 { return r.source.n - int64(r.buffer.Buffered()) }

// Next goes to the next record. It skips the rest of the last one, and checks it as far as the gzip
// checksum goes. The error is io.EOF at the end of the file. Other errors wrap [ErrTorn] or
// [ErrFormat], or come from the file; nothing behind them can be read.
func (r *Reader) Next() (*Record, error) {
	if r.record {
		if err := r.Skip(); err != nil {
			return nil, err
		}
	}
	if _, err := r.buffer.Peek(1); err != nil {
		return nil, err // io.EOF between records
	}
	rec := &Record{Offset: r.Offset()}
	if err := r.open(rec); err != nil {
		return nil, fmt.Errorf("record at %d: %w", rec.Offset, err)
	}
	r.record = true
	return rec, nil
}

// open begins a gzip member and reads the header in it.
func (r *Reader) open(rec *Record) (err error) {
	if r.gzip == nil {
		r.gzip, err = gzip.NewReader(r.buffer)
	} else {
		err = r.gzip.Reset(r.buffer)
	}
	if err != nil {
		return packed(err)
	}
	r.gzip.Multistream(false)
	r.content.Reset(r.gzip)
	if rec.Header, err = readHeader(r.content); err != nil {
		return err
	}
	rec.Size, err = strconv.ParseInt(rec.Header.Get(FieldLength), 10, 64)
	if err != nil || rec.Size < 0 {
		return fmt.Errorf("%w: its Content-Length is %.40q", ErrFormat, rec.Header.Get(FieldLength))
	}
	r.block = io.LimitedReader{R: r.content, N: rec.Size}
	rec.Block = blockReader{r}
	return nil
}

// blockReader reads the block of the current record.
type blockReader struct{ r *Reader }

func (b blockReader) Read(p []byte) (int, error) {
	n, err := b.r.block.Read(p)
	switch {
	case err == io.EOF && b.r.block.N > 0:
		err = fmt.Errorf("%w: %d bytes of its block are missing", ErrFormat, b.r.block.N)
	case err != nil && err != io.EOF:
		err = packed(err)
	}
	return n, err
}

// Skip reads the current record to its end and checks that it ends correctly. Next does the same.
func (r *Reader) Skip() error {
	r.record = false
	if _, err := io.Copy(io.Discard, blockReader{r}); err != nil {
		return err
	}
	for _, want := range []byte("\r\n\r\n") {
		switch c, err := r.content.ReadByte(); {
		case err != nil && err != io.EOF:
			return packed(err)
		case err == io.EOF || c != want:
			return fmt.Errorf("%w: two line ends do not follow its block", ErrFormat)
		}
	}
	switch _, err := r.content.ReadByte(); err {
	case io.EOF: // the checksum is right
		return nil
	case nil:
		return fmt.Errorf("%w: something follows it in its gzip member", ErrFormat)
	default:
		return packed(err)
	}
}

// packed names the error of a gzip member.
func packed(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", ErrTorn, io.ErrUnexpectedEOF)
	}
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return err
}

// readHeader reads the header of a record and the empty line behind it.
func readHeader(r *bufio.Reader) (Header, error) {
	left := maxHeader
	version, err := readLine(r, &left)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(version, "WARC/1.") {
		return nil, fmt.Errorf("%w: it begins with %.40q", ErrFormat, version)
	}
	h := make(Header, 0, 16)
	for {
		line, err := readLine(r, &left)
		if err != nil {
			return nil, err
		}
		if line == "" {
			return h, nil
		}
		if len(h) == maxFields {
			return nil, fmt.Errorf("%w: more than %d fields", ErrFormat, maxFields)
		}
		if line[0] == ' ' || line[0] == '\t' { // a value continues
			if len(h) == 0 {
				return nil, fmt.Errorf("%w: its header begins with a space", ErrFormat)
			}
			h[len(h)-1].Value += " " + strings.Trim(line, " \t")
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if !found || name == "" {
			return nil, fmt.Errorf("%w: %.40q is no field", ErrFormat, line)
		}
		h = append(h, Field{name, strings.Trim(value, " \t")})
	}
}

// readLine reads a line that ends in CRLF, or in LF alone.
func readLine(r *bufio.Reader, left *int) (string, error) {
	var long []byte
	for {
		part, err := r.ReadSlice('\n')
		if *left -= len(part); *left < 0 {
			return "", fmt.Errorf("%w: its header is longer than %d bytes", ErrFormat, maxHeader)
		}
		switch {
		case err == bufio.ErrBufferFull:
			long = append(long, part...)
			continue
		case err == io.EOF:
			return "", fmt.Errorf("%w: its header has no end", ErrFormat)
		case err != nil:
			return "", packed(err)
		}
		if long != nil {
			part = append(long, part...)
		}
		return strings.TrimSuffix(string(part[:len(part)-1]), "\r"), nil
	}
}
