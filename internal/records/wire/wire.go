// Package wire decodes the fields of stored bytes: database rows, log frames and the records of
// other packages. The bytes may be anything. A Decoder never reads beyond them, never allocates and
// remembers the first failure, so callers read all fields and check once at the end.
package wire

import (
	"encoding/binary"
	"errors"
)

// The failures that a Decoder finds by itself.
var (
	ErrShort = errors.New("bytes are missing")
	ErrRange = errors.New("a value is out of range")
	ErrRest  = errors.New("bytes are left over")
)

// Decoder reads fields from the front of a byte slice. After the first failure every read returns a
// zero value. The zero Decoder has no bytes. It must not be used concurrently.
type Decoder struct {
	b   []byte
	at  int // the offset of the next field
	err error
}

// NewDecoder returns a Decoder of b. The slices that its methods return are parts of b.
func NewDecoder(b []byte) Decoder { return Decoder{b: b} }

// Fail records a failure unless there is one already. Nothing is left to be read after it.
func (d *Decoder) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b, d.at = nil, 0
}

// Require fails with ErrRange unless a condition on the values read so far holds.
func (d *Decoder) Require(ok bool) {
	if !ok {
		d.Fail(ErrRange)
	}
}

// OK reports whether nothing has failed so far.
func (d *Decoder) OK() bool { return d.err == nil }

// Err returns the first failure, or nil.
func (d *Decoder) Err() error { return d.err }

// End returns the first failure, ErrRest if bytes are left, or nil.
func (d *Decoder) End() error {
	if d.err == nil && d.at < len(d.b) {
		return ErrRest
	}
	return d.err
}

// Rest returns the bytes that are left without reading them.
func (d *Decoder) Rest() []byte { return d.b[d.at:] }

// Len returns the number of bytes that are left.
func (d *Decoder) Len() int { return len(d.b) - d.at }

// Bytes reads n bytes. A negative n fails.
func (d *Decoder) Bytes(n int) []byte {
	if uint(n) > uint(len(d.b)-d.at) {
		d.Fail(ErrShort)
		return nil
	}
	d.at += n
	return d.b[d.at-n : d.at]
}

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	if d.at >= len(d.b) {
		d.Fail(ErrShort)
		return 0
	}
	d.at++
	return d.b[d.at-1]
}

// Uint16 reads a big-endian number of 16 bits.
func (d *Decoder) Uint16() uint16 {
	if len(d.b)-d.at < 2 {
		d.Fail(ErrShort)
		return 0
	}
	d.at += 2
	return binary.BigEndian.Uint16(d.b[d.at-2:])
}

// Uint32 reads a big-endian number of 32 bits.
func (d *Decoder) Uint32() uint32 {
	if len(d.b)-d.at < 4 {
		d.Fail(ErrShort)
		return 0
	}
	d.at += 4
	return binary.BigEndian.Uint32(d.b[d.at-4:])
}

// Uint64 reads a big-endian number of 64 bits.
func (d *Decoder) Uint64() uint64 {
	if len(d.b)-d.at < 8 {
		d.Fail(ErrShort)
		return 0
	}
	d.at += 8
	return binary.BigEndian.Uint64(d.b[d.at-8:])
}

// Uvarint reads an unsigned number as encoding/binary encodes it.
func (d *Decoder) Uvarint() uint64 {
	if d.at < len(d.b) && d.b[d.at] < 0x80 { // as most are
		d.at++
		return uint64(d.b[d.at-1])
	}
	return d.longUvarint()
}

func (d *Decoder) longUvarint() uint64 {
	v, n := binary.Uvarint(d.b[d.at:])
	return advance(d, v, n)
}

// Varint reads a signed number as encoding/binary encodes it.
func (d *Decoder) Varint() int64 {
	v, n := binary.Varint(d.b[d.at:])
	return advance(d, v, n)
}

// advance goes on behind a number of n bytes. As encoding/binary has it, n is not positive where
// there is no number.
func advance[T int64 | uint64](d *Decoder, v T, n int) T {
	switch {
	case n < 0:
		d.Fail(ErrRange)
		return 0
	case n == 0:
		d.Fail(ErrShort)
		return 0
	}
	d.at += n
	return v
}

// UvarintMax reads an unsigned number. One above most fails.
func (d *Decoder) UvarintMax(most uint64) uint64 {
	v := d.Uvarint()
	if v > most {
		d.Fail(ErrRange)
		return 0
	}
	return v
}

// Short reads bytes behind their length in one byte.
func (d *Decoder) Short() []byte { return d.Bytes(int(d.Byte())) }

// Long reads bytes behind their length in an unsigned number of variable size.
func (d *Decoder) Long() []byte {
	if d.at < len(d.b) && d.b[d.at] < 0x80 { // as Uvarint, without the call
		d.at++
		return d.Bytes(int(d.b[d.at-1]))
	}
	n := d.longUvarint()
	if n > uint64(d.Len()) {
		d.Fail(ErrShort)
		return nil
	}
	return d.Bytes(int(n))
}
