//go:build !core

package requestlog

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// The bounds of numbers. A value beyond its bound is replaced by the bound, by the writer and the
// reader alike: a response may have a Retry-After that no clock can hold, and one such field must
// not make a log unreadable.
const (
	maxDuration = math.MaxInt64 / 8 // so that the sum of a few durations is a duration, too
	maxOffset   = maxDuration / int64(time.Microsecond)
	maxTime     = math.MaxInt64
	maxNumber   = math.MaxInt32
	maxStatus   = 999
)

// coder writes the fields of a payload, or reads them from one. Each frame describes its fields
// once, in a method code that serves both directions, so the reader accepts whatever the writer
// produces. Fields behind a missing or impossible one are zero.
type coder struct {
	b     []byte // written so far
	reads bool
	in    wire.Decoder // left to be read
}

func newReader(payload []byte) coder { return coder{reads: true, in: wire.NewDecoder(payload)} }

func (c *coder) octet(v *byte) {
	if !c.reads {
		c.b = append(c.b, *v)
		return
	}
	*v = c.in.Byte()
}

func (c *coder) uvarint(v *uint64) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	*v = c.in.Uvarint()
}

// signed codes a number between -most and most.
func (c *coder) signed(v *int64, most int64) {
	if !c.reads {
		c.b = binary.AppendVarint(c.b, clamp(*v, -most, most))
		return
	}
	*v = clamp(c.in.Varint(), -most, most)
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

// text codes a text after its length.
func (c *coder) text(v *string) {
	if !c.reads {
		c.b = append(binary.AppendUvarint(c.b, uint64(len(*v))), *v...)
		return
	}
	*v = string(c.in.Long())
}

// fixed codes the bytes of v, without a length.
func (c *coder) fixed(v []byte) {
	if !c.reads {
		c.b = append(c.b, v...)
		return
	}
	copy(v, c.in.Bytes(len(v)))
}

// rest codes all remaining bytes. Bytes that are read are a part of the payload, not a copy.
func (c *coder) rest(v *[]byte) {
	if !c.reads {
		c.b = append(c.b, *v...)
		return
	}
	*v = c.in.Bytes(c.in.Len())
}

func clamp[T int | int64 | time.Duration](v, low, high T) T { return max(low, min(v, high)) }
