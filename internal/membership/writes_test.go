package membership

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
)

// TestBlindNode: a node whose own heartbeats are written and do not come back follows the registers
// again, after half of a TTL and not before.
func TestBlindNode(t *testing.T) {
	again := 0
	n := &Node{o: Options{Cluster: shortOptions("a")}}
	n.watch.again = func() { again++ }
	half := n.o.Cluster.TTL / 2
	at := func(d time.Duration) cluster.Instant { return cluster.Instant(time.Hour).Add(d) }
	for _, step := range []struct {
		written, seen cluster.Sequence
		now           time.Duration
		again         int
	}{
		{5, 5, 0, 0}, {8, 5, 1, 0}, {9, 8, half, 0}, // a little behind
		{9, 9, half + 2, 0}, {12, 9, half + 3, 0}, {20, 9, 2*half + 3, 0}, {20, 9, 2*half + 4, 1},
		{20, 9, 2*half + 5, 1}, {20, 9, 3*half + 5, 1}, {20, 9, 3*half + 6, 2},
	} {
		n.watch.written, n.watch.seen = step.written, step.seen
		if n.checkWatch(at(step.now)); again != step.again {
			t.Errorf("%+v: followed again %d times", step, again)
		}
	}
}

// TestNames: nobody can make a node remember any number of names.
func TestNames(t *testing.T) {
	n := &Node{names: make(map[string]struct{})}
	for i := range maxNames {
		if !n.mayKnow(string(rune(i))) {
			t.Fatal(i)
		}
	}
	if n.mayKnow("one more") || !n.mayKnow(string(rune(7))) || len(n.names) != maxNames {
		t.Errorf("%d names", len(n.names))
	}
}
