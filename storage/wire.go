package storage

import (
	"encoding/binary"
	"time"
)

// decoder reads the fields of a row. After the first short or impossible field
// it returns zeros and remembers; the caller asks bad once at the end.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) u8() uint8 {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *decoder) u16() uint16 {
	if v := d.take(2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if v := d.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if v := d.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	if len(d.b) > 0 && d.b[0] < 0x80 { // as most are
		v := uint64(d.b[0])
		d.b = d.b[1:]
		return v
	}
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// long reads bytes behind their length.
func (d *decoder) long() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	return d.take(int(n))
}

// short reads a string of at most 255 bytes behind its length.
func (d *decoder) short() []byte { return d.take(int(d.u8())) }

// skipCounts passes over a number of keys of so many bytes, each with its count.
func (d *decoder) skipCounts(key int) {
	for range int(d.u8()) {
		d.take(key)
		d.uvarint()
	}
}

func appendShort(b []byte, s string) []byte {
	return append(append(b, byte(len(s))), s...)
}

// seconds is a time as the rows hold it: Unix seconds in 32 bits, 0 for none.
func seconds(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(min(max(t.Unix(), 1), 1<<32-1))
}

// secondsUp rounds up, for instants that must not come early.
func secondsUp(t time.Time) uint32 {
	s := seconds(t)
	if s != 0 && t.Nanosecond() > 0 && s != 1<<32-1 {
		s++
	}
	return s
}

func fromSeconds(s uint32) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(s), 0)
}
