package storage

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/amble-crawler/amble/internal/wire"
)

// ErrorCount is how often something went wrong with URLs of a host, over all
// runs, attempts that were made again included.
type ErrorCount struct {
	Reason Reason
	Count  uint32
}

// errorCounts are the counts of one host, by rising reason.
type errorCounts []ErrorCount

// counted reports whether an outcome is one of those that are counted.
func (o *Outcome) counted() bool {
	if o.State != Failed && o.State != Retrying {
		return false
	}
	switch o.Reason {
	case ReasonStatus, ReasonRedirects, ReasonLocation, ReasonLoop:
		return true
	}
	return o.Reason >= ReasonFetch
}

func (c errorCounts) add(reason Reason) errorCounts {
	i, found := slices.BinarySearchFunc(c, reason, func(e ErrorCount, r Reason) int { return int(e.Reason) - int(r) })
	if !found {
		return slices.Insert(c, i, ErrorCount{reason, 1})
	}
	if c[i].Count < math.MaxUint32 {
		c[i].Count++
	}
	return c
}

func (c errorCounts) append(b []byte) []byte {
	b = append(b, byte(len(c)))
	for _, e := range c {
		b = binary.AppendUvarint(append(b, byte(e.Reason)), uint64(e.Count))
	}
	return b
}

// decodeErrors decodes counts into those given. Counts out of order make d bad.
func decodeErrors(d *wire.Decoder, c errorCounts) errorCounts {
	c = c[:0]
	last := ReasonNone
	for range int(d.Byte()) {
		e := ErrorCount{Reason: Reason(d.Byte())}
		n := d.UvarintMax(math.MaxUint32)
		if d.Require(e.Reason > last && n > 0); !d.OK() {
			return c[:0]
		}
		last, e.Count = e.Reason, uint32(n)
		c = append(c, e)
	}
	return c
}
