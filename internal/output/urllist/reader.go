package urllist

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/amble-crawler/amble/internal/rules/seeds"
)

// MaxLine is the largest length of a line, in bytes without its end. The longest line of an export
// is shorter.
const MaxLine = 64 << 10

// maxWindow is the largest window of a zstd stream, in bytes: zstd's own default limit.
const maxWindow = 128 << 20

// Item is one URL of a list.
type Item struct {
	seeds.Item
	Line int // from 1
}

// BadLine is the error of a line without a valid URL. The list continues after it.
type BadLine struct {
	Line   int    // from 1
	Text   string // its beginning
	Reason string // what is wrong, for people
}

// Error returns the number of the line, its text and the reason.
func (b *BadLine) Error() string {
	return fmt.Sprintf("line %d: read %q; %s", b.Line, b.Text, b.Reason)
}

// Reader reads one list. It is for one goroutine.
type Reader struct {
	// Objects reads the lines that are JSON objects in the caller's format, if it is not nil. Its
	// error says what is wrong with the line, as BadLine.Reason does.
	Objects func(line []byte) (seeds.Item, error)

	// Seeds: a line of text may have fields of a seed besides the priority. Otherwise it is bad: nobody would read
	// them.
	Seeds bool

	lines  *bufio.Reader
	line   int
	ended  bool
	unpack func() // frees what the decompression holds; nil: nothing is packed
}

// NewReader begins to read a list. The error is that of the stream, or of a compressed list with a
// damaged start.
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

// Lines returns the number of lines read so far.
func (r *Reader) Lines() int { return r.line }

// Buffered reports whether the next line, or a part of it, is in memory. If not, Next may have to
// wait for the stream.
func (r *Reader) Buffered() bool { return r.lines.Buffered() > 0 }

// Next returns the next URL. The error is a [*BadLine] if the line has no valid URL, and Next may
// be called again; io.EOF at the end; any other error is that of the stream, and final.
func (r *Reader) Next() (Item, error) {
	for !r.ended {
		line, length, err := r.readLine()
		if err != nil && err != io.EOF {
			return Item{}, fmt.Errorf("after line %d: %w", r.line, err)
		}
		r.ended = err == io.EOF
		r.line++
		if r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if length > MaxLine {
			return Item{}, r.bad(line, fmt.Sprintf("the line is too long (%d bytes), %d are allowed", length, MaxLine))
		}
		line = bytes.TrimSpace(line)
		isObject := len(line) > 0 && line[0] == '{'
		if !isObject {
			line = withoutComment(line)
		}
		switch {
		case len(line) == 0:
		case isObject && r.Objects != nil:
			return r.item(line, r.Objects)
		default:
			return r.item(line, parse)
		}
		if r.ended && length == 0 {
			r.line-- // the empty text after the last end of line is no line
		}
	}
	return Item{}, io.EOF
}

// item reads the item of a line.
func (r *Reader) item(line []byte, parse func([]byte) (seeds.Item, error)) (Item, error) {
	item, err := parse(line)
	if err != nil {
		return Item{}, r.bad(line, err.Error())
	}
	if !r.Seeds && line[0] != '{' && !item.IsZero() {
		return Item{}, r.bad(line, "has fields of a seed, which crawl.seeds and crawl.seeds_file take")
	}
	return Item{item, r.line}, nil
}

func parse(line []byte) (seeds.Item, error) { return seeds.ParseLine(string(line)) }

// readLine returns the next line, or its beginning and true length if it is too long. The bytes are
// valid until the next call.
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

// withoutComment cuts a comment. A # inside a word begins a fragment.
func withoutComment(line []byte) []byte {
	for i, c := range line {
		if c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return bytes.TrimSpace(line[:i])
		}
	}
	return line
}
