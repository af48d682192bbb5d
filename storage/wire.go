package storage

import (
	"time"

	"github.com/amble-crawler/amble/internal/wire"
)

// skipCounts passes over a number of keys of so many bytes, each with its count.
func skipCounts(d *wire.Decoder, key int) {
	for range int(d.Byte()) {
		d.Bytes(key)
		d.Uvarint()
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
