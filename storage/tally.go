package storage

import (
	"encoding/binary"
	"math"

	"github.com/amble-crawler/amble/internal/wire"
)

// How many keys the tallies of a host's row keep.
const (
	queryKeys  = 16
	digestKeys = 8
)

// tally counts the frequent ones among any number of keys in little room, as
// Misra and Gries (1982) do: a count may be too low, never too high.
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

// add counts a key once more. A key for which there is no room takes one off
// each of the others.
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

// decodeTally reads a tally into the memory of an older one.
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
