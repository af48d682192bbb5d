package arena

import (
	"bytes"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestArena: copies are unchanged until reset, and the memory of one large transaction is not kept
// for ever.
func TestArena(t *testing.T) {
	var a Arena
	take := func(b []byte) []byte { return append(a.Take(len(b)), b...) }
	for round := range 2 {
		var copies [][]byte
		for n := range 100 * 8 {
			copies = append(copies, take(bytes.Repeat([]byte{byte(n)}, chunk/8-n)))
		}
		for n, c := range copies {
			must.True(t, len(c) == chunk/8-n && c[0] == byte(n) && c[len(c)-1] == byte(n) && cap(c) == len(c),
				"round %d: copy %d is not what it was", round, n)
		}
		a.Reset()
		take([]byte("small"))
		if a.Reset(); len(a.chunks) != 1 || a.used != 0 {
			t.Fatalf("%d MiB are kept behind a small transaction", len(a.chunks))
		}
	}
}
