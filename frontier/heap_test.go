package frontier

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage"
)

// TestHeap pushes, removes from anywhere and pops at random, and compares with a sorted slice.
func TestHeap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	heap := newHeap(new(register))
	var sorted []*host
	priority := func(h *host) int8 { return int8(h.id % 5) }
	order := func(a, b *host) int {
		return cmp.Or(cmp.Compare(a.readyAt, b.readyAt), cmp.Compare(priority(b), priority(a)), cmp.Compare(a.id, b.id))
	}
	for i := range 20_000 {
		switch n := random.IntN(5); {
		case n < 2 || len(sorted) == 0:
			h := &host{id: storage.HostID(i + 1), readyAt: instant(random.IntN(500))}
			heap.of.put(h)
			heap.push(h, priority(h))
			at, _ := slices.BinarySearchFunc(sorted, h, order)
			sorted = slices.Insert(sorted, at, h)
		case n == 2:
			at := random.IntN(len(sorted))
			heap.remove(sorted[at])
			sorted = slices.Delete(sorted, at, at+1)
		default:
			if heap.top() != sorted[0] {
				t.Fatalf("the first is host %d, want %d", heap.top().id, sorted[0].id)
			}
			heap.remove(sorted[0])
			sorted = slices.Delete(sorted, 0, 1)
		}
		checkHeap(t, "test", heap)
		if heap.size() != len(sorted) {
			t.Fatalf("%d hosts, want %d", heap.size(), len(sorted))
		}
	}
	empty := newHeap(new(register))
	assert.True(t, empty.top() == nil, "an empty heap has a first host")
}
