package extract

import (
	"sync"

	"golang.org/x/net/html"
)

// smallDocument is the room for the nodes and attributes of a small document.
type smallDocument struct {
	nodes      [48]html.Node
	attributes [48]html.Attribute
}

// builders keeps the memory of builders that were released.
var builders = sync.Pool{New: func() any { return new(builder) }}

// newBuilder returns a builder of a document without nodes.
func newBuilder() *builder {
	b := builders.Get().(*builder)
	b.nodes, b.attributes = b.small.nodes[:], b.small.attributes[:]
	return b
}

// maxKept and maxKeptElements bound what a released builder has room for: bytes of text; elements and attributes.
const maxKept, maxKeptElements = 64 << 10, 512

// release gives the memory of a builder to a later one. Nobody may use the tree any more.
func (b *builder) release() {
	if cap(b.text)+cap(b.values) > maxKept || cap(b.open)+cap(b.keys) > maxKeptElements {
		return
	}
	open, keys, ends, text, values := b.open[:cap(b.open)], b.keys[:cap(b.keys)], b.ends, b.text, b.values
	*b = builder{}
	clear(open) // they refer to nodes

	clear(keys)
	b.open, b.keys, b.ends, b.text, b.values = open[:0], keys[:0], ends[:0], text[:0], values[:0]
	builders.Put(b)
}
