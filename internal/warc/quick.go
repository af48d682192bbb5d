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
	head    bitWriter
	code    quickCode
	out     bitWriter
	earlier [1 << hashBits]uint16 // positions by the hash of the four bytes there
}

const hashBits = 13

func newQuickGzip(behind gzipCompressor) *quickGzip {
	q := &quickGzip{gzipCompressor: behind, code: newQuickCode()}
	q.head.bytes = append(q.head.bytes, gzipHeader...)
	q.code.appendTo(&q.head)
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
	q.out.bytes = append(q.out.bytes[:0], q.head.bytes...)
	q.out.pending, q.out.n = q.head.pending, q.head.n
	q.deflate()
	q.out.flush()
	q.out.bytes = appendGzipEnd(q.out.bytes, q.in)
	_, err := q.w.Write(q.out.bytes)
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
	for len(a)-n >= 64 && bytes.Equal(a[n:n+64], b[n:n+64]) { // several times as fast
		n += 64
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

// literals writes bytes as they are.
func (q *quickGzip) literals(b []byte) {
	out, codes := q.out, &q.code.symbols
	for ; len(b) >= 2; b = b[2:] {
		first, second := codes[b[0]], codes[b[1]]
		out.add(first.and(second.bits, second.n))
	}
	if len(b) > 0 {
		out.add(codes[b[0]])
	}
	q.out = out
}

// match writes a repetition of n bytes, in pieces of at most the longest that there is a symbol for.
func (q *quickGzip) match(n, distance int) {
	d := q.code.distance(distance)
	for n > 0 {
		piece := min(n, maxMatch)
		if rest := n - piece; 0 < rest && rest < minMatch {
			piece -= minMatch
		}
		q.out.add(q.code.lengths[piece-minMatch])
		q.out.add(d)
		n -= piece
	}
}

// bitString is at most 28 bits, the first of them lowest.
type bitString struct {
	bits uint32
	n    uint8
}

// and returns s followed by n bits.
func (s bitString) and(b uint32, n uint8) bitString { return bitString{s.bits | b<<s.n, s.n + n} }

// bitWriter puts bits together to bytes.
type bitWriter struct {
	bytes   []byte
	pending uint64 // less than 32 bits
	n       uint8
}

func (w *bitWriter) add(s bitString) {
	w.pending |= uint64(s.bits) << w.n
	if w.n += s.n; w.n >= 32 {
		w.bytes = binary.LittleEndian.AppendUint32(w.bytes, uint32(w.pending))
		w.pending >>= 32
		w.n -= 32
	}
}

// flush ends the last byte.
func (w *bitWriter) flush() {
	for ; w.n > 0; w.n -= min(w.n, 8) {
		w.bytes = append(w.bytes, byte(w.pending))
		w.pending >>= 8
	}
}
