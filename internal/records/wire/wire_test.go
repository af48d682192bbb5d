package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestFields(t *testing.T) {
	b := []byte{7, 1, 2, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8}
	b = binary.AppendUvarint(b, 300)
	b = binary.AppendVarint(b, -300)
	b = binary.AppendUvarint(b, 5)
	b = append(b, "\x02ab\x03cdefg"...)
	d := NewDecoder(b)
	assert.Equal(t, d.Byte(), 7, "byte")
	assert.Equal(t, d.Uint16(), 0x0102, "16 bits")
	assert.Equal(t, d.Uint32(), 0x01020304, "32 bits")
	assert.Equal(t, d.Uint64(), 0x0102030405060708, "64 bits")
	u, v, n := d.Uvarint(), d.Varint(), d.UvarintMax(5)
	assert.True(t, u == 300 && v == -300 && n == 5, "numbers %d, %d and %d", u, v, n)
	short, long := d.Short(), d.Long()
	assert.True(t, string(short) == "ab" && string(long) == "cde", "texts %q and %q", short, long)
	if err := d.End(); !d.OK() || d.Err() != nil || !errors.Is(err, ErrRest) || d.Len() != 2 {
		t.Errorf("before the end: %v, %v, %d bytes left", d.Err(), err, d.Len())
	}
	if v := d.Bytes(2); string(v) != "fg" || d.End() != nil {
		t.Errorf("bytes %q, then %v", v, d.End())
	}
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name string
		b    []byte
		read func(*Decoder)
		want error
	}{
		{"no byte", nil, func(d *Decoder) { d.Byte() }, ErrShort},
		{"16 bits", []byte{1}, func(d *Decoder) { d.Uint16() }, ErrShort},
		{"32 bits", []byte{1, 2, 3}, func(d *Decoder) { d.Uint32() }, ErrShort},
		{"64 bits", make([]byte, 7), func(d *Decoder) { d.Uint64() }, ErrShort},
		{"too few bytes", []byte{1, 2}, func(d *Decoder) { d.Bytes(3) }, ErrShort},
		{"negative length", []byte{1, 2}, func(d *Decoder) { d.Bytes(-1) }, ErrShort},
		{"no number", nil, func(d *Decoder) { d.Uvarint() }, ErrShort},
		{"half a number", []byte{0x80}, func(d *Decoder) { d.Uvarint() }, ErrShort},
		{"half a signed number", []byte{0x80}, func(d *Decoder) { d.Varint() }, ErrShort},
		{"a number of more than 64 bits", bytes.Repeat([]byte{0xff}, 11), func(d *Decoder) { d.Uvarint() }, ErrRange},
		{"a signed one", bytes.Repeat([]byte{0xff}, 11), func(d *Decoder) { d.Varint() }, ErrRange},
		{"a number above its bound", []byte{6}, func(d *Decoder) { d.UvarintMax(5) }, ErrRange},
		{"a short text", []byte{2, 'a'}, func(d *Decoder) { d.Short() }, ErrShort},
		{"a long text", []byte{2, 'a'}, func(d *Decoder) { d.Long() }, ErrShort},
		{"a text longer than memory", binary.AppendUvarint(nil, math.MaxUint64),
			func(d *Decoder) { d.Long() }, ErrShort},
		{"a condition", []byte{1}, func(d *Decoder) { d.Require(d.Byte() == 2) }, ErrRange},
		{"the first of two", nil, func(d *Decoder) { d.Byte(); d.Require(false) }, ErrShort},
	}
	for _, test := range tests {
		d := NewDecoder(test.b)
		test.read(&d)
		assert.True(t, errors.Is(d.Err(), test.want) && d.End() == d.Err() && !d.OK(), "%s: %v, at the end %v",
			test.name, d.Err(), d.End())
		assert.True(t, d.Len() == 0 && d.Byte() == 0 && d.Uvarint() == 0 && d.Bytes(0) == nil &&
			errors.Is(d.Err(), test.want), "%s: something is read after the failure", test.name)
	}
}

// FuzzDecoder reads fields in any order from any bytes and compares each with what encoding/binary
// and slices of the bytes give.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8}, []byte("\x01\x02\x03abcdefghijklmnopqrstuvwxyz\x80\x80"))
	f.Add([]byte{4, 8, 5}, binary.AppendVarint(binary.AppendUvarint(nil, math.MaxUint64), math.MinInt64))
	f.Add([]byte{7, 7}, append(binary.AppendUvarint(nil, 200), make([]byte, 201)...))
	f.Fuzz(func(t *testing.T, reads, b []byte) {
		d := NewDecoder(b)
		at, failed := 0, false
		// expect tells how many bytes a field takes, 0 for one that cannot be read.
		expect := func(what string, size int, same bool) {
			if failed = failed || size <= 0 || size > len(b)-at; failed {
				must.True(t, !d.OK() && d.Len() == 0, "%s at %d: no failure", what, at)
				return
			}
			if at += size; !same || !d.OK() || d.Len() != len(b)-at {
				t.Fatalf("%s before %d: %v, %d bytes left of %d", what, at, d.Err(), d.Len(), len(b))
			}
		}
		for _, read := range reads {
			rest := b[at:]
			word := append(bytes.Clone(rest), make([]byte, 8)...) // zeros behind the end
			u, un := binary.Uvarint(rest)
			s, sn := binary.Varint(rest)
			switch read % 9 {
			case 0:
				expect("byte", 1, d.Byte() == word[0])
			case 1:
				expect("16 bits", 2, d.Uint16() == binary.BigEndian.Uint16(word))
			case 2:
				expect("32 bits", 4, d.Uint32() == binary.BigEndian.Uint32(word))
			case 3:
				expect("64 bits", 8, d.Uint64() == binary.BigEndian.Uint64(word))
			case 4:
				expect("number", un, d.Uvarint() == u)
			case 5:
				expect("signed number", sn, d.Varint() == s)
			case 6:
				n := int(word[0])
				expect("short", 1+n, bytes.Equal(d.Short(), word[1:1+min(n, len(word)-1)]))
			case 7:
				got := d.Long()
				if un <= 0 || u > uint64(len(rest)-un) {
					un, u = 0, 0
				}
				expect("long", un+int(u), bytes.Equal(got, rest[max(un, 0):max(un, 0)+int(u)]))
			case 8:
				n := int(read)
				expect("bytes", n, bytes.Equal(d.Bytes(n), word[:min(n, len(word))]))
			}
			if failed {
				at = len(b)
			}
		}
		if (d.End() == nil) != (!failed && at == len(b)) {
			t.Fatalf("end: %v", d.End())
		}
	})
}
