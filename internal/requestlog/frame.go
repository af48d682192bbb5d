package requestlog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"

	"github.com/amble-crawler/amble/robots"
)

// The types of frames.
const (
	frameHeader = iota
	frameRequest
	frameContext
	framePolicy
	frameBody
	frameLost
	frameOpen
)

const (
	magic   = "amble-requests"
	version = 1
)

// maxPayload bounds what a reader believes: a body, and a little.
const maxPayload = robots.MaxBody + 64<<10

// checksumBytes is the length of the checksum behind a payload.
const checksumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends a payload as a frame.
func appendFrame(b, payload []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(payload)))
	b = append(b, payload...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
}

// pack makes a body shorter where that is possible.
func pack(body []byte) []byte {
	var packed bytes.Buffer
	if err := flate.StatelessDeflate(&packed, body, true, nil); err != nil || packed.Len() >= len(body) {
		return body
	}
	return packed.Bytes()
}

// unpack is the inverse of pack, for a body of a known size.
func unpack(packed []byte, size int) ([]byte, bool) {
	if len(packed) == size {
		return packed, true
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(flate.NewReader(bytes.NewReader(packed)), body); err != nil {
		return nil, false
	}
	return body, true
}

// decoder reads the parts of a payload. After the first that is missing it returns zeros and is bad.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) fail() {
	d.bad, d.b = true, nil
}

func (d *decoder) octet() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// number reads a number of at most most.
func (d *decoder) number(most uint64) int {
	v := d.uvarint()
	if v > most {
		d.fail()
		return 0
	}
	return int(v)
}

// bytes reads n bytes; they are those of the payload, not a copy.
func (d *decoder) bytes(n int) []byte {
	if n > len(d.b) {
		d.fail()
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) text() string { return string(d.bytes(d.number(uint64(len(d.b))))) }

// complete tells whether the payload was read to its end and nothing was missing.
func (d *decoder) complete() bool { return !d.bad && len(d.b) == 0 }

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
