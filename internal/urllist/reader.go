package urllist

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/amble-crawler/amble/internal/weburl"
)

// MaxLine is how long a line may be, in bytes without its end. An export's longest line is shorter.
const MaxLine = 64 << 10

// maxWindow is the most memory that a zstd stream may ask for, in bytes: what zstd itself grants by default.
const maxWindow = 128 << 20

// Item is one URL of a list.
type Item struct {
	URL      weburl.URL
	Depth    uint16 // links from a seed
	Priority int8   // higher ones are asked first
	Line     int    // from 1
}

// BadLine is the error of a line that holds no URL. The list goes on behind it.
type BadLine struct {
	Line   int    // from 1
	Text   string // its beginning
	Reason string // what is wrong, for people
}

// Error says where the line is, what it holds and what is wrong.
func (b *BadLine) Error() string {
	return fmt.Sprintf("line %d: read %q; %s", b.Line, b.Text, b.Reason)
}

// Reader reads one list. It is for one goroutine.
type Reader struct {
	lines  *bufio.Reader
	line   int
	ended  bool
	unpack func() // frees what the decompression holds; nil: nothing is packed
}

// NewReader begins to read a list. The error is that of the stream, or of a packed one that is damaged from its begin.
func NewReader(r io.Reader) (*Reader, error) {
	plain := bufio.NewReaderSize(r, MaxLine+2) // with the line's end
	magic, err := plain.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		unpacked, err := gzip.NewReader(plain)
		if err != nil {
			return nil, fmt.Errorf("unpack gzip: %w", err)
		}
		return packed(unpacked, func() { _ = unpacked.Close() }), nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		unpacked, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("unpack zstd: %w", err)
		}
		return packed(unpacked, unpacked.Close), nil
	}
	return &Reader{lines: plain}, nil
}

func packed(r io.Reader, unpack func()) *Reader {
	return &Reader{lines: bufio.NewReaderSize(r, MaxLine+2), unpack: unpack}
}

// Close frees what the reader holds. It does not close the stream.
func (r *Reader) Close() {
	if r.unpack != nil {
		r.unpack()
	}
}

// Lines is how many lines were read so far.
func (r *Reader) Lines() int { return r.line }

// Next returns the next URL. The error is a [*BadLine] where the line holds none, and Next may be called again; io.EOF at the end;
// any other is that of the stream, and final.
func (r *Reader) Next() (Item, error) {
	for !r.ended {
		line, length, err := r.readLine()
		if err != nil && err != io.EOF {
			return Item{}, fmt.Errorf("behind line %d: %w", r.line, err)
		}
		r.ended = err == io.EOF
		r.line++
		if r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if length > MaxLine {
			return Item{}, r.bad(line, fmt.Sprintf("the line is too long (%d bytes), %d are allowed", length, MaxLine))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' {
			return r.object(line)
		}
		if line = withoutComment(line); len(line) > 0 {
			return r.text(line)
		}
		if r.ended && length == 0 {
			r.line-- // nothing behind the last end of line is no line
		}
	}
	return Item{}, io.EOF
}

// readLine returns the next line, or its beginning and true length where it is too long. The bytes hold until the next call.
func (r *Reader) readLine() (line []byte, length int, err error) {
	line, err = r.lines.ReadSlice('\n')
	length = len(line)
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line[:shownText])
		for errors.Is(err, bufio.ErrBufferFull) {
			var more []byte
			more, err = r.lines.ReadSlice('\n')
			length += len(more)
		}
		return line, max(length, MaxLine+1), err
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	return line, len(line), err
}

// withoutComment cuts a comment. A # inside of a word begins a fragment.
func withoutComment(line []byte) []byte {
	for i, c := range line {
		if c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return bytes.TrimSpace(line[:i])
		}
	}
	return line
}
