package requestlog

import (
	"encoding/binary"
	"math"
	"time"
)

// The bounds of numbers. A value beyond its bound is the bound, for the writer and the reader
// alike: an answer may ask for a Retry-After that no clock can hold, and one such field must not
// make a log unreadable.
const (
	maxDuration = math.MaxInt64 / 8 // so that the sum of a few durations is a duration, too
	maxOffset   = maxDuration / int64(time.Microsecond)
	maxTime     = math.MaxInt64
	maxNumber   = math.MaxInt32
	maxStatus   = 999
)

// coder writes the fields of a payload, or reads them. Each frame describes its fields once, in a
// method code that serves both directions, so the reader accepts whatever the writer produces.
type coder struct {
	b     []byte // written so far, or left to be read
	reads bool
	bad   bool // a field is missing or impossible; all fields behind it are zero
}

func (c *coder) fail() { c.bad, c.b = true, nil }

// complete reports whether the payload was read to its end and nothing was missing.
func (c *coder) complete() bool { return !c.bad && len(c.b) == 0 }

func (c *coder) octet(v *byte) {
	switch {
	case !c.reads:
		c.b = append(c.b, *v)
	case len(c.b) == 0:
		*v = 0
		c.fail()
	default:
		*v, c.b = c.b[0], c.b[1:]
	}
}

func (c *coder) uvarint(v *uint64) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	n := 0
	if *v, n = binary.Uvarint(c.b); n <= 0 {
		*v = 0
		c.fail()
		return
	}
	c.b = c.b[n:]
}

// signed codes a number between -most and most.
func (c *coder) signed(v *int64, most int64) {
	if !c.reads {
		c.b = binary.AppendVarint(c.b, clamp(*v, -most, most))
		return
	}
	read, n := binary.Varint(c.b)
	if *v = 0; n <= 0 {
		c.fail()
		return
	}
	*v, c.b = clamp(read, -most, most), c.b[n:]
}

// number codes a number between 0 and most.
func (c *coder) number(v *int, most int) {
	u := uint64(clamp(*v, 0, most))
	c.uvarint(&u)
	*v = int(min(u, uint64(most)))
}

// duration codes a duration between 0 and maxDuration.
func (c *coder) duration(v *time.Duration) {
	u := uint64(clamp(*v, 0, maxDuration))
	c.uvarint(&u)
	*v = time.Duration(min(u, maxDuration))
}

// text codes a text behind its length.
func (c *coder) text(v *string) {
	n := uint64(len(*v))
	c.uvarint(&n)
	switch {
	case !c.reads:
		c.b = append(c.b, *v...)
	case n > uint64(len(c.b)):
		*v = ""
		c.fail()
	default:
		*v, c.b = string(c.b[:n]), c.b[n:]
	}
}

// fixed codes as many bytes as v has.
func (c *coder) fixed(v []byte) {
	switch {
	case !c.reads:
		c.b = append(c.b, v...)
	case len(c.b) < len(v):
		c.fail()
	default:
		c.b = c.b[copy(v, c.b):]
	}
}

// rest codes all that is left. What is read is a part of the payload, not a copy.
func (c *coder) rest(v *[]byte) {
	if !c.reads {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = c.b, nil
}

func clamp[T int | int64 | time.Duration](v, low, high T) T { return max(low, min(v, high)) }
