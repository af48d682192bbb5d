package fetch

import "github.com/klauspost/compress/zstd"

// zstdWindow is the largest window a decoder has to support (RFC 8878,
// section 3.1.1.1.2; RFC 9659).
const zstdWindow = 8 << 20

// The memory of decoders besides their windows: tables and buffers, as measured and rounded up.
const (
	inflateRoom = 96 << 10 // with the window, which is 32 KiB
	brotliRoom  = 3 << 20  // three times 256 prefix codes, which some hundred bytes of a stream can define
	zstdRoom    = 1 << 20
)

// roomFor returns how many bytes a decoder of an encoding may hold for a stream with such a head. A
// nil head means any stream.
func roomFor(name string, head []byte) int64 {
	switch name {
	case "br":
		bits := uint(24)
		if len(head) > 0 {
			bits = windowBits(head[0])
		}
		return brotliRoom + 3<<bits/2 // while the window grows there are two of them
	case "zstd":
		window := uint64(zstdWindow)
		if head != nil {
			window = windowOf(head)
		}
		return zstdRoom + int64(window)
	}
	return inflateRoom
}

// windowBits returns the logarithm of the window of a brotli stream (RFC 7932, section 9.1). A
// first byte that no stream has needs no window.
func windowBits(first byte) uint {
	switch {
	case first&1 == 0:
		return 16
	case first>>1&7 != 0:
		return 17 + uint(first>>1&7)
	case first>>4&7 == 0:
		return 17
	}
	return 8 + uint(first>>4&7)
}

// windowOf returns the window of the first frame of a zstd stream, at most zstdWindow. It is
// zstdWindow if the stream does not begin with a frame header.
func windowOf(head []byte) uint64 {
	var h zstd.Header
	if err := h.Decode(head); err != nil || h.Skippable {
		return zstdWindow
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	return min(max(window, zstd.MinWindowSize), zstdWindow)
}
