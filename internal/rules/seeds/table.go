package seeds

import (
	"hash/maphash"
	"maps"
	"slices"
)

// tableParts is how many maps a table has. A change of one key copies one of them.
const tableParts = 256

// table is a map whose changed copy shares most with the table before: the copy of a large one costs little. The zero
// value is not ready for use.
type table[K comparable, V any] struct {
	seed  maphash.Seed
	parts []map[K]V
	owned []bool // the parts that no other table has; nil: the table is immutable
	keys  int
}

func newTable[K comparable, V any]() table[K, V] {
	return table[K, V]{seed: maphash.MakeSeed(), parts: make([]map[K]V, tableParts)}
}

func (t *table[K, V]) isEmpty() bool { return t.keys == 0 }

func (t *table[K, V]) part(key K) uint64 { return maphash.Comparable(t.seed, key) % tableParts }

func (t *table[K, V]) get(key K) V { return t.parts[t.part(key)][key] }

// draft returns a copy that can be changed, until freeze.
func (t *table[K, V]) draft() table[K, V] {
	return table[K, V]{t.seed, slices.Clone(t.parts), make([]bool, tableParts), t.keys}
}

func (t *table[K, V]) freeze() { t.owned = nil }

// own returns the part of a key, which no other table has.
func (t *table[K, V]) own(key K) map[K]V {
	i := t.part(key)
	if !t.owned[i] {
		t.owned[i] = true
		if t.parts[i] = maps.Clone(t.parts[i]); t.parts[i] == nil {
			t.parts[i] = make(map[K]V)
		}
	}
	return t.parts[i]
}

func (t *table[K, V]) set(key K, value V) {
	part := t.own(key)
	t.keys -= len(part)
	part[key] = value
	t.keys += len(part)
}

func (t *table[K, V]) delete(key K) {
	part := t.own(key)
	t.keys -= len(part)
	delete(part, key)
	t.keys += len(part)
}
