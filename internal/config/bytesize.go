package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes. In text it is a whole number and a unit: 10MiB, 500KB, 4096.
type ByteSize int64

// Binary units of a ByteSize.
const (
	KiB ByteSize = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

var errByteSize = errors.New("not a size")

// ParseByteSize reads a whole number of bytes with an optional unit: B, KiB, MiB, GiB, TiB (powers of 1024) or KB, MB,
// GB, TB (powers of 1000), in any case. It refuses negative numbers, fractions and what does not fit in 63 bits.
func ParseByteSize(text string) (ByteSize, error) {
	digits := 0
	for digits < len(text) && '0' <= text[digits] && text[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err != nil {
		return 0, errByteSize
	}
	unit, known := unitSize(strings.TrimLeft(text[digits:], " "))
	if !known || n > math.MaxInt64/unit {
		return 0, errByteSize
	}
	return ByteSize(n * unit), nil
}

func unitSize(unit string) (int64, bool) {
	switch strings.ToLower(unit) {
	case "", "b":
		return 1, true
	case "kb":
		return 1e3, true
	case "mb":
		return 1e6, true
	case "gb":
		return 1e9, true
	case "tb":
		return 1e12, true
	case "kib":
		return int64(KiB), true
	case "mib":
		return int64(MiB), true
	case "gib":
		return int64(GiB), true
	case "tib":
		return int64(TiB), true
	}
	return 0, false
}

// String writes the size in the largest binary unit that divides it, so that ParseByteSize reads back the same number.
func (b ByteSize) String() string {
	for _, unit := range []struct {
		size ByteSize
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if b != 0 && b%unit.size == 0 {
			return strconv.FormatInt(int64(b/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}
