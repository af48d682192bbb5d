package journal

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkAppend appends records to the log of one server, which syncs each of them.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{4 << 10, 32 << 10, 3 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			shard := start(b).claim(b, 0)
			record := make([]byte, size)
			rng := rand.New(rand.NewPCG(1, 1))
			for i := range record {
				record[i] = byte(rng.Uint32())
			}
			n := uint64(0)
			b.SetBytes(int64(size))
			for b.Loop() {
				n++
				mustAppend(b, shard, n, record)
			}
		})
	}
}
