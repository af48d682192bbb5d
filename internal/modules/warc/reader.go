package warc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
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

// maxBlock bounds the block of a record in bytes. A few kilobytes of a hostile file can stand for as
// many, which somebody has to decompress.
const maxBlock = 16 << 30

// Record is a record that was read. Its block can be read until the next call of Next.
type Record struct {
	Header Header
	Offset int64 // of its gzip member or Zstandard frame, from where the reader began
	Size   int64 // of the block
	Block  io.Reader
}

// Type returns the WARC-Type.
func (r *Record) Type() string { return r.Header.Get(FieldType) }

// Reader reads the records of a file one after the other, whether they are compressed with gzip or
// with Zstandard. It holds no block in memory. A hostile file can make it use 8 MiB for a window and
// three times as much for a dictionary.
type Reader struct {
	source  *countingReader
	buffer  *bufio.Reader
	members members       // nil: nothing was read yet
	content *bufio.Reader // of the current record
	block   io.LimitedReader
	record  bool // one was begun and has not ended
}

// members are what the records of a file are compressed to: gzip members or Zstandard frames.
type members interface {
	// begin goes to the next record. The error is io.EOF if there is none.
	begin() error
	// Read reads the content of the record, and nothing behind it.
	io.Reader
	// end checks that the record ends here. The error is errMore if it does not.
	end() error
}

// errMore means that a record goes on behind its block.
var errMore = fmt.Errorf("%w: something follows it in its gzip member or frame", ErrFormat)

// NewReader returns a reader of a file. It begins at the start of the file, where the dictionary is
// if there is one, or at a record of a file without a dictionary; see also [Reader.Goto].
func NewReader(r io.Reader) *Reader {
	source := &countingReader{r: r}
	return &Reader{source: source, buffer: bufio.NewReaderSize(source, 64<<10),
		content: bufio.NewReaderSize(nil, 4<<10)}
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

// start finds out how the file is compressed, and reads its dictionary.
func (r *Reader) start() (err error) {
	if r.members != nil {
		return nil
	}
	first, err := r.buffer.Peek(1)
	if err != nil {
		return err // io.EOF of an empty file
	}
	if !isZstd(first[0]) {
		r.members = &gzipMembers{source: r.buffer}
		return nil
	}
	f, err := newFrames(r.buffer)
	if err == nil {
		r.members = f
	}
	return err
}

// Goto goes to the record at an offset, before the first call of Next. The reader must have begun at
// the start of the file. If its source can seek, what lies between is not read.
func (r *Reader) Goto(offset int64) error {
	if offset == 0 {
		return nil
	}
	if err := r.start(); err != nil {
		return packed(err)
	}
	if seeker, ok := r.source.r.(io.Seeker); ok {
		if _, err := seeker.Seek(offset, io.SeekStart); err != nil {
			return err
		}
		r.source.n = offset
		r.buffer.Reset(r.source)
		return nil
	}
	_, err := io.CopyN(io.Discard, r.buffer, offset-r.Offset())
	return packed(err)
}

// Next goes to the next record. It skips the rest of the last one, and checks it as far as the
// checksum goes. The error is io.EOF at the end of the file. Other errors wrap [ErrTorn] or
// [ErrFormat], or come from the file; nothing behind them can be read.
func (r *Reader) Next() (*Record, error) {
	if r.record {
		if err := r.Skip(); err != nil {
			return nil, err
		}
	}
	rec := &Record{Offset: r.Offset()}
	if _, err := r.buffer.Peek(1); err != nil {
		return nil, err // io.EOF between records
	}
	err := r.start()
	if err == nil {
		err = r.members.begin()
	}
	if err == io.EOF {
		return nil, err // behind what is no record
	}
	if err == nil {
		err = r.open(rec)
	}
	if err != nil {
		return nil, fmt.Errorf("record at %d: %w", rec.Offset, packed(err))
	}
	r.record = true
	return rec, nil
}

// open reads the header of the record that was begun.
func (r *Reader) open(rec *Record) (err error) {
	r.content.Reset(r.members)
	if rec.Header, err = readHeader(r.content); err != nil {
		return err
	}
	rec.Size, err = strconv.ParseInt(rec.Header.Get(FieldLength), 10, 64)
	if err != nil || rec.Size < 0 || rec.Size > maxBlock {
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
	for _, want := range []byte(recordEnd) {
		switch c, err := r.content.ReadByte(); {
		case err != nil && err != io.EOF:
			return packed(err)
		case err == io.EOF || c != want:
			return fmt.Errorf("%w: two line ends do not follow its block", ErrFormat)
		}
	}
	if r.content.Buffered() > 0 {
		return errMore
	}
	return packed(r.members.end())
}

// packed names the error of a gzip member or of a frame.
func packed(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", ErrTorn, io.ErrUnexpectedEOF)
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
