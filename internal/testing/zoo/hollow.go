package zoo

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"strings"
)

// hollow are servers whose compressed bodies take much memory or time to decode, and carry nothing.
func hollow() (all []server) {
	for _, h := range Hollow() {
		all = append(all, answers(h.Name, coded(h.Coding, h.Body)))
	}
	return all
}

// Coded is a body in a content coding.
type Coded struct{ Name, Coding, Body string }

// Hollow returns compressed bodies with almost no content. Those whose name begins with "wide" need
// a large window, the others take long to decode.
func Hollow() []Coded {
	frame := "\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00" // an empty frame of zstd: one segment, one raw block of no bytes
	skippable := string(binary.LittleEndian.AppendUint32([]byte("\x50\x2a\x4d\x18"), 0))
	member := pack(gzipTo, strings.NewReader(""))
	return []Coded{
		{"wide-br", "br", brotliWide()},
		{"wide-zstd", "zstd", "\x28\xb5\x2f\xfd\x00\x68\x09\x00\x00x"},
		{"wide-zstd-later", "zstd", frame + "\x28\xb5\x2f\xfd\x00\x68\x09\x00\x00x"},
		{"hollow-zstd", "zstd", strings.Repeat(frame, 200_000)},
		{"hollow-zstd-skippable", "zstd", strings.Repeat(skippable, 200_000)},
		{"hollow-zstd-blocks", "zstd", "\x28\xb5\x2f\xfd\x00\x68" + strings.Repeat("\x00\x00\x00", 500_000)},
		{"hollow-zstd-in-deflate", "zstd, deflate", deflated(strings.Repeat(frame, 500_000))},
		{"hollow-gzip", "gzip", strings.Repeat(member, 100_000)},
		{"hollow-gzip-in-deflate", "gzip, deflate", deflated(strings.Repeat(member, 200_000))},
		{"hollow-deflate", "deflate", strings.Repeat("\x00\x00\x00\xff\xff", 500_000)},
		{"hollow-br", "br", "\x0c" + strings.Repeat("\x06", 1_000_000)},
		{"hollow-br-tables", "br", brotliTables(100_000)},
	}
}

func deflated(text string) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed) // the level exists, and memory takes everything
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// bits writes brotli, whose fields start at the lowest bit (RFC 7932, section 1.5.1).
type bits struct {
	b []byte
	n uint
}

func (w *bits) put(value uint64, n uint) {
	for i := range n {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[len(w.b)-1] |= byte(value>>i&1) << (w.n % 8)
		w.n++
	}
}

// brotliWide returns the start of a brotli stream that has 16 MiB in a window of that size.
func brotliWide() string {
	w := &bits{}
	w.put(15, 4)       // a window of 16 MiB
	w.put(0, 1)        // not the last meta-block
	w.put(2, 2)        // 6 nibbles of length
	w.put(1<<24-1, 24) // 16 MiB
	w.put(1, 1)        // as they are
	return string(w.b) + "nearly all"
}

// brotliTables returns a brotli stream with one meta-block of one byte that has 768 prefix codes,
// followed by n empty ones (RFC 7932, section 9.2). Some decoders read the tables of the codes for
// each.
func brotliTables(n int) string {
	const (
		most   = 127<<4 | 7<<1 | 1 // 256 of something, in 11 bits
		simple = 1                 // a code of one symbol, in 4 bits
	)
	w := &bits{}
	w.put(0, 1)  // a window of 64 KiB
	w.put(0, 1)  // not the last meta-block
	w.put(0, 2)  // 4 nibbles of length
	w.put(0, 16) // 1 byte
	w.put(0, 1)  // compressed
	w.put(0, 1)  // one type of block for literals
	w.put(most, 11)
	w.put(simple, 4+9) // codes of types and lengths of blocks
	w.put(simple, 4+5)
	w.put(3, 2)
	w.put(0, 1)   // one type of block for distances
	w.put(60, 6)  // direct distances
	w.put(0, 2)   // the context mode of the literals
	for range 2 { // contexts of literals and of distances
		w.put(most, 11)
		w.put(0, 1) // no run lengths
		w.put(simple, 4+8)
		w.put(0, 1) // no move to front
	}
	for range 256 {
		w.put('A'<<4|simple, 4+8)
	}
	for range 256 {
		w.put(8<<4|simple, 4+10) // insert one literal
	}
	for range 256 {
		w.put(simple, 4+7)
	}
	for range n {
		w.put(3<<1, 6) // metadata, without any
		w.n = (w.n + 7) &^ 7
	}
	w.put(3, 2) // the last, and empty
	return string(w.b)
}
