package storage

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/amble-crawler/amble/internal/wire"
)

// The number of keys in the tallies of a host's row.
const (
	queryKeys  = 16
	digestKeys = 8
)

// tally counts the most frequent of any number of keys in little room, by the algorithm of Misra
// and Gries (1982): a count may be too low, never too high.
type tally []tallyItem

type tallyItem struct {
	key   uint64
	count uint32
}

func (t tally) count(key uint64) uint32 {
	for i := range t {
		if t[i].key == key {
			return t[i].count
		}
	}
	return 0
}

// add counts a key. If there is no room for a new key, the count of every other key falls by one.
func (t tally) add(key uint64, keys int) tally {
	for i := range t {
		if t[i].key == key {
			if t[i].count < math.MaxUint32 {
				t[i].count++
			}
			return t
		}
	}
	if len(t) < keys {
		return append(t, tallyItem{key, 1})
	}
	kept := t[:0]
	for _, item := range t {
		if item.count--; item.count > 0 {
			kept = append(kept, item)
		}
	}
	return kept
}

func (t tally) append(b []byte) []byte {
	b = append(b, byte(len(t)))
	for _, item := range t {
		b = binary.BigEndian.AppendUint64(b, item.key)
		b = binary.AppendUvarint(b, uint64(item.count))
	}
	return b
}

// decodeTally decodes a tally into the memory of an older one.
func decodeTally(d *wire.Decoder, to tally, keys int) tally {
	n := int(d.Byte())
	for range n {
		key, count := d.Uint64(), d.UvarintMax(math.MaxUint32)
		if d.Require(n <= keys && count > 0 && to.count(key) == 0); !d.OK() {
			return to[:0]
		}
		to = append(to, tallyItem{key, uint32(count)})
	}
	return to
}

// ErrorCount is how often requests for URLs of a host failed for one reason, over all runs, retries
// included.
type ErrorCount struct {
	Reason Reason
	Count  uint32
}

// errorCounts are the counts of one host, ordered by reason.
type errorCounts []ErrorCount

// counted reports whether errorCounts count an outcome.
func (o *Outcome) counted() bool {
	if o.State != Failed && o.State != Retrying {
		return false
	}
	switch o.Reason {
	case ReasonStatus, ReasonRedirects, ReasonLocation, ReasonLoop, ReasonCrash, ReasonWall:
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

// decodeErrors decodes counts into the memory of c. Counts out of order are a failure of d.
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
