package warc

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// dictionaryMagic begins the frame with the dictionary of a file. It is skippable for readers of
// plain Zstandard.
const dictionaryMagic = 0x184D2A5D

// The sizes that a reader of .warc.zst files has to support. Larger ones are refused.
const (
	maxWindow     = 8 << 20
	maxDictionary = 8 << 20
)

// isZstd reports whether a file with a first byte can consist of Zstandard frames.
func isZstd(first byte) bool { return first == 0x28 || first&0xf0 == 0x50 }

// frames reads records with one Zstandard frame or more each. Frames that Zstandard skips may lie
// between them.
type frames struct {
	source  *bufio.Reader
	frame   frame
	decoder *zstd.Decoder
}

// newFrames begins at the start of a file, and reads its dictionary.
func newFrames(source *bufio.Reader) (*frames, error) {
	f := &frames{source: source, frame: frame{source: source}}
	options := []zstd.DOption{
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow),
	}
	dictionary, err := readDictionary(source)
	if err != nil {
		return nil, err
	}
	if dictionary != nil {
		options = append(options, zstd.WithDecoderDicts(dictionary))
	}
	if f.decoder, err = zstd.NewReader(nil, options...); err != nil {
		return nil, fmt.Errorf("%w: its dictionary: %v", ErrFormat, err) // not torn, whatever the library calls it
	}
	return f, nil
}

// ReadDictionary returns the dictionary at the start of a file; nil: it has none.
func ReadDictionary(r io.Reader) ([]byte, error) {
	dictionary, err := readDictionary(bufio.NewReader(r))
	return dictionary, packed(err)
}

// readDictionary reads the frame with the dictionary, if the file begins with one. The dictionary
// may be compressed, in a frame of its own.
func readDictionary(source *bufio.Reader) ([]byte, error) {
	var h zstd.Header
	start, err := source.Peek(zstd.HeaderMaxSize)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if err := h.Decode(start); err != nil || !h.Skippable || h.SkippableID != dictionaryMagic&0xf {
		return nil, nil // frames find out what it is
	}
	if h.SkippableSize > maxDictionary {
		return nil,
			fmt.Errorf("%w: its dictionary takes %d bytes, more than %d", ErrFormat, h.SkippableSize, maxDictionary)
	}
	stored := make([]byte, h.SkippableSize)
	source.Discard(h.HeaderSize) // the buffer has them
	if _, err := io.ReadFull(source, stored); err != nil {
		return nil, unexpected(err)
	}
	if h.Decode(stored) != nil || h.Skippable {
		return stored, nil
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderMaxMemory(maxDictionary))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	dictionary, err := decoder.DecodeAll(stored, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: its dictionary: %v", ErrFormat, err) // not torn, whatever the library calls it
	}
	return dictionary, nil
}

// begin goes to the first frame of the next record.
func (f *frames) begin() error {
	for {
		if err := f.next(); err != nil {
			return err
		}
		if !f.frame.header.HasFCS || f.frame.header.FrameContentSize > 0 {
			return nil
		}
		if err := f.end(); err != nil { // an empty one belongs to no record
			return err
		}
	}
}

// next goes to the next frame. The error is io.EOF if there is none.
func (f *frames) next() error {
	if err := f.frame.begin(); err != nil {
		return err
	}
	return f.decoder.Reset(&f.frame)
}

// Read reads the content of a record, and begins its next frame where one ends.
func (f *frames) Read(p []byte) (int, error) {
	for {
		n, err := f.decode(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		if err := f.next(); err != nil {
			return 0, unexpected(err)
		}
	}
}

// decode reads the content of a frame.
func (f *frames) decode(p []byte) (int, error) {
	n, err := f.decoder.Read(p)
	switch {
	case f.frame.err != nil: // the decoder does not say it as it is
		err = f.frame.err
	case err != nil && err != io.EOF:
		err = fmt.Errorf("%w: %v", ErrFormat, err) // not torn: the whole block was there
	case err == io.EOF && !f.frame.ended():
		err = fmt.Errorf("%w: something follows the content of its frame", ErrFormat)
	}
	return n, err
}

// end checks that the frame ends here.
func (f *frames) end() error {
	var next [1]byte
	for {
		switch n, err := f.decode(next[:]); {
		case n > 0:
			return errMore
		case err == io.EOF: // the checksum is right
			return nil
		case err != nil:
			return err
		}
	}
}

// frame is the source of the decoder: the bytes of one Zstandard frame (RFC 8878, section 3.1.1). A
// decoder would read on behind it.
type frame struct {
	source *bufio.Reader
	header zstd.Header
	left   int64 // bytes of the header or of the block that were not passed on yet
	last   bool  // there is no other block
	err    error // of the source; io.ErrUnexpectedEOF at its end
}

// The header of a block: three bytes that contain, from the lowest bit, whether it is the last one
// (1 bit), its type (2 bits) and its size.
const (
	blockHeader   = 3
	blockRLE      = 1 // a byte that stands for as many as the size
	blockReserved = 3
)

// checksumBytes is the length of the checksum behind the last block.
const checksumBytes = 4

// begin goes to the next frame behind those that are skipped. The error is io.EOF if there is none.
func (f *frame) begin() error {
	for {
		start, err := f.source.Peek(zstd.HeaderMaxSize)
		if len(start) == 0 || err != nil && err != io.EOF {
			return err
		}
		if err = f.header.Decode(start); err != nil {
			return frameError(err)
		}
		if !f.header.Skippable {
			break
		}
		if f.header.SkippableID == dictionaryMagic&0xf {
			return fmt.Errorf("%w: a dictionary that is not at the start of the file", ErrFormat)
		}
		size := int64(f.header.HeaderSize) + int64(f.header.SkippableSize)
		if _, err := io.CopyN(io.Discard, f.source, size); err != nil {
			return unexpected(err)
		}
	}
	window := f.header.WindowSize
	if f.header.SingleSegment {
		window = f.header.FrameContentSize
	}
	if window > maxWindow {
		return fmt.Errorf("%w: its frame needs a window of %d bytes, more than %d", ErrFormat, window, maxWindow)
	}
	f.left, f.last, f.err = int64(f.header.HeaderSize), false, nil
	return nil
}

// ended reports whether the whole frame was passed on.
func (f *frame) ended() bool { return f.last && f.left == 0 }

func (f *frame) Read(p []byte) (int, error) {
	if f.ended() {
		return 0, io.EOF
	}
	if f.left == 0 {
		if f.err = f.nextBlock(); f.err != nil {
			return 0, f.err
		}
	}
	n, err := f.source.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	if err != nil {
		f.err = unexpected(err)
	}
	return n, f.err
}

// nextBlock reads the header of the next block, which is passed on with it.
func (f *frame) nextBlock() error {
	b, err := f.source.Peek(blockHeader)
	if err != nil {
		return unexpected(err)
	}
	bits := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
	kind, size := bits>>1&3, bits>>3
	switch kind {
	case blockRLE:
		size = 1
	case blockReserved:
		return fmt.Errorf("%w: a block of its frame has no known type", ErrFormat)
	}
	f.left, f.last = blockHeader+size, bits&1 == 1
	if f.last && f.header.HasCheckSum {
		f.left += checksumBytes
	}
	return nil
}

// frameError wraps the error of a header. Its only other cause is that the file ends within it.
func frameError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

// unexpected replaces io.EOF where more must follow.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
