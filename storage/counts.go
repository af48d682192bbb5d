package storage

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/amble-crawler/amble/internal/records/wire"
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

// ErrorCount is how often requests for URLs of a host failed for one reason, over all runs, retries included.
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
	case ReasonStatus, ReasonRedirects, ReasonLocation, ReasonLoop, ReasonCrash, ReasonWall, ReasonLeaseLost:
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

// Counters count over the whole store. Every commit writes them.
type Counters struct {
	Hosts  uint64
	URLs   uint64
	States [numStates]uint64
	// Requisites are those of States that are requisites.
	Requisites [numStates]uint64

	Requests uint64
	Bytes    uint64
	Policies uint64
}

// Any reports whether any URL is in one of the given states.
func (c Counters) Any(states States) bool {
	for s, n := range c.States {
		if n > 0 && states.Has(State(s)) {
			return true
		}
	}
	return false
}

// Pages returns how many pages are fetched: URLs without requisites.
func (c Counters) Pages() uint64 { return c.Of(Fetched) - c.Requisites[Fetched] }

// Of returns the count of URLs in the given state.
func (c Counters) Of(s State) uint64 { return c.States[s] }

// ByName returns the counts of URLs by the names of their states.
func (c Counters) ByName() map[string]int {
	return byName(c.States[:])
}

// RequisitesByName returns the counts of requisites by the names of their states; nil: there are none.
func (c Counters) RequisitesByName() map[string]int {
	if c.Requisites == [numStates]uint64{} {
		return nil
	}
	return byName(c.Requisites[:])
}

func byName(counts []uint64) map[string]int {
	m := make(map[string]int, len(counts))
	for state, n := range counts {
		m[State(state).String()] = int(n)
	}
	return m
}

// Add adds the counters of another store.
func (c *Counters) Add(other Counters) {
	c.Hosts, c.URLs, c.Requests = c.Hosts+other.Hosts, c.URLs+other.URLs, c.Requests+other.Requests
	c.Bytes, c.Policies = c.Bytes+other.Bytes, c.Policies+other.Policies
	for s, n := range other.States {
		c.States[s] += n
		c.Requisites[s] += other.Requisites[s]
	}
}

// Counters returns the counters as of the last commit.
func (s *rows) Counters() Counters { return *s.counters.Load() }

func appendCounters(b []byte, c Counters) []byte {
	for _, n := range []uint64{c.Hosts, c.URLs, c.Requests, c.Bytes, c.Policies} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	all := c.States[:]
	if c.Requisites != [numStates]uint64{} {
		all = append(all[:numStates:numStates], c.Requisites[:]...)
	}
	for _, n := range all {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decodeCounters(b []byte) (Counters, bool) {
	d := wire.NewDecoder(b)
	c := Counters{Hosts: d.Uint64(), URLs: d.Uint64(), Requests: d.Uint64(), Bytes: d.Uint64(), Policies: d.Uint64()}
	for i := range c.States {
		c.States[i] = d.Uint64()
	}
	for i := range c.Requisites {
		if d.Len() > 0 {
			c.Requisites[i] = d.Uint64()
		}
	}
	return c, d.End() == nil
}
