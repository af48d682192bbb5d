package warc

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/bits"
)

// quickMax is the longest record that a quickGzip compresses by itself: a position in it fits into
// the table, and any two are as close as DEFLATE demands.
const quickMax = 32 << 10

// quickGzip compresses short records to gzip members, with one Huffman code for all of them. Half
// of the time that another encoder takes for a record of 16 KB is the search for the best code,
// which is nearly the same for all pages in a Latin script. Other records go to the encoder behind
// it.
type quickGzip struct {
	gzipCompressor
	w       io.Writer
	in      []byte // the record; empty: it goes to the encoder behind
	quick   bool   // the record is at hand as a whole
	code    quickCode
	out     bitWriter
	start   bitEnd                // of the symbols in out: what is before them is the same for all records
	earlier [1 << hashBits]uint16 // positions by the hash of the four bytes there
}

const hashBits = 13

func newQuickGzip(behind gzipCompressor) *quickGzip {
	q := &quickGzip{gzipCompressor: behind, code: newQuickCode()}
	q.out.bytes = make([]byte, 2*quickMax) // no byte takes more than 13 bits
	q.out.end.at = copy(q.out.bytes, gzipHeader)
	q.code.appendTo(&q.out)
	q.start = q.out.end
	return q
}

func (q *quickGzip) begin(w io.Writer, size int64) {
	q.w, q.in, q.quick = w, q.in[:0], size <= quickMax
	if !q.quick {
		q.gzipCompressor.begin(w, size)
	}
}

func (q *quickGzip) Write(p []byte) (int, error) {
	if !q.quick {
		return q.gzipCompressor.Write(p)
	}
	q.in = append(q.in, p...)
	return len(p), nil
}

func (q *quickGzip) Close() error {
	if !q.quick {
		return q.gzipCompressor.Close()
	}
	if !isLatin(q.in) {
		q.gzipCompressor.begin(q.w, int64(len(q.in)))
		if _, err := q.gzipCompressor.Write(q.in); err != nil {
			return err
		}
		return q.gzipCompressor.Close()
	}
	q.out.end = q.start
	q.deflate()
	_, err := q.w.Write(appendGzipEnd(q.out.finish(), q.in))
	return err
}

// gzipHeader is what a gzip member begins with (RFC 1952): no time, fastest, unknown system.
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"

// appendGzipEnd appends what a gzip member ends with: the checksum and the length of its content.
func appendGzipEnd(b, content []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(content))
	return binary.LittleEndian.AppendUint32(b, uint32(len(content)))
}

// isLatin reports whether the code suits a record, by one byte of 32: few of them are beyond ASCII.
// Of another script and of a body in a content encoding many are.
func isLatin(b []byte) bool {
	others := 0
	for i := 0; i < len(b); i += 32 {
		others += int(b[i] >> 7)
	}
	return others*32*16 <= len(b)
}

// deflate writes the symbols of the record, to the end of the block. A match is looked for at each
// position, and less often the longer there was none.
func (q *quickGzip) deflate() {
	in := q.in
	clear(q.earlier[:])
	from, end := 0, len(in)-8
	for i := 1; i < end; {
		next := binary.LittleEndian.Uint32(in[i:])
		hash := next * 2654435761 >> (32 - hashBits)
		at := int(q.earlier[hash])
		q.earlier[hash] = uint16(i)
		if binary.LittleEndian.Uint32(in[at:]) != next {
			i += 1 + (i-from)>>6
			continue
		}
		n := 4 + sameBytes(in[i+4:], in[at+4:])
		for i > from && at > 0 && in[i-1] == in[at-1] {
			i, at, n = i-1, at-1, n+1
		}
		q.literals(in[from:i])
		q.match(n, i-at)
		i += n
		from = i
		if i < end {
			last := binary.LittleEndian.Uint32(in[i-2:])
			q.earlier[last*2654435761>>(32-hashBits)] = uint16(i - 2)
		}
	}
	q.literals(in[from:])
	q.out.add(q.code.symbols[endOfBlock])
}

// sameBytes returns how many bytes at the start of a and b are the same. b is at least as long as a.
func sameBytes(a, b []byte) (n int) {
	for _, piece := range [...]int{1 << 10, 64} { // several times as fast
		for len(a)-n >= piece && bytes.Equal(a[n:n+piece], b[n:n+piece]) {
			n += piece
		}
	}
	for ; len(a)-n >= 8; n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// literals writes bytes as they are, four at a time: their codes have up to 52 bits.
func (q *quickGzip) literals(b []byte) {
	end, out, codes := q.out.end, q.out.bytes, &q.code.symbols
	for ; len(b) >= 4; b = b[4:] {
		end = end.and(codes[b[0]]).and(codes[b[1]]).and(codes[b[2]]).and(codes[b[3]]).store(out)
	}
	for _, c := range b {
		end = end.and(codes[c]).store(out)
	}
	q.out.end = end
}

// match writes a repetition of n bytes, in pieces of at most the longest that there is a symbol for.
func (q *quickGzip) match(n, distance int) {
	end, out, d := q.out.end, q.out.bytes, q.code.distance(distance)
	for n > 0 {
		piece := min(n, maxMatch)
		if rest := n - piece; 0 < rest && rest < minMatch {
			piece -= minMatch
		}
		end = end.and(q.code.lengths[piece-minMatch]).and(d).store(out)
		n -= piece
	}
	q.out.end = end
}

// bitString is at most 28 bits, the first of them lowest.
type bitString struct {
	bits uint32
	n    uint8
}

// and returns s followed by n bits.
func (s bitString) and(b uint32, n uint8) bitString { return bitString{s.bits | b<<s.n, s.n + n} }

// bitWriter puts bits together to bytes. The memory has room for all of them and for another eight
// bytes, so that nothing is checked for each symbol.
type bitWriter struct {
	bytes []byte
	end   bitEnd
}

func (w *bitWriter) add(s bitString) { w.end = w.end.and(s).store(w.bytes) }

// finish ends the last byte, and returns all.
func (w *bitWriter) finish() []byte {
	w.add(bitString{0, -w.end.n & 7})
	return w.bytes[:w.end.at]
}

// bitEnd is where bits were added last.
type bitEnd struct {
	at      int    // of the next byte
	pending uint64 // what is not in a byte yet
	n       uint8  // how many bits of pending
}

// and adds a string. At most 56 bits may be added from one store to the next.
func (e bitEnd) and(s bitString) bitEnd {
	return bitEnd{e.at, e.pending | uint64(s.bits)<<(e.n&63), e.n + s.n}
}

// store writes what is pending, and keeps the bits of the last byte if it is not whole.
func (e bitEnd) store(into []byte) bitEnd {
	binary.LittleEndian.PutUint64(into[e.at:], e.pending)
	return bitEnd{e.at + int(e.n>>3), e.pending >> (e.n & 56), e.n & 7}
}
