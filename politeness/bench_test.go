package politeness

import (
	"runtime"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// BenchmarkHost measures one turn of a host: a request ends, Ready is computed, the state is
// stored.
func BenchmarkHost(b *testing.B) {
	h := newHost(nil)
	h.SetDemands(Demands{Delay: 10 * time.Second})
	now := at(0)
	buffer := make([]byte, 0, MaxStateBytes)
	b.Run("ended", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h.Ended(now, ok(time.Millisecond))
			now = now.Add(time.Minute)
		}
	})
	b.Run("ready", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h.Ready(epoch)
		}
	})
	b.Run("state", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must.Get(h.State(now).AppendBinary(buffer))(b)
		}
	})
}

// BenchmarkMemory reports the bytes that a host and a limit take.
func BenchmarkMemory(b *testing.B) {
	o := DefaultOptions()
	const n = 100_000
	measure := func(b *testing.B, fill func(i int) any) {
		kept := make([]any, n)
		for b.Loop() {
			var before, after runtime.MemStats
			clear(kept)
			runtime.GC()
			runtime.ReadMemStats(&before)
			for i := range kept {
				kept[i] = fill(i)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/item")
		}
	}
	b.Run("host", func(b *testing.B) {
		measure(b, func(int) any {
			h := NewHost(&o, State{}, at(0))
			h.Ended(at(time.Second), ok(time.Millisecond))
			return h
		})
	})
	b.Run("limit", func(b *testing.B) { measure(b, func(int) any { l := NewLimit(o.Address()); return &l }) })
}
