package gc

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestHeapPercent(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 125, 1 << 20: 125, 64 << 20: 125, heapGrowth: 100, heapGrowth / 4 * 5: 80, 2 * heapGrowth: 50,
		4 * heapGrowth: 25, 1 << 40: 25,
	} {
		assert.Equal(t, heapPercent(live), want, live, "bytes live: the heap may grow by % %")
	}
}

// percentInForce is the setting of the process.
func percentInForce() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// TestPace: the setting follows what is live as of the last collections, and is as before when the crawl has ended. One
// that the operator has chosen stays.
func TestPace(t *testing.T) {
	before := debug.SetGCPercent(usualPercent)
	defer debug.SetGCPercent(before)
	p := StartPace()
	collect := func(is func(percent uint64) bool) {
		t.Helper()
		for range 1000 {
			runtime.GC()
			if is(percentInForce()) {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("%d %%", percentInForce())
	}
	for range 3 {
		live := make([]byte, 2*heapGrowth)
		collect(func(percent uint64) bool { return percent <= 50 })
		runtime.KeepAlive(live)
		collect(func(percent uint64) bool { return percent > usualPercent })
	}
	p.Stop()
	assert.Equal(t, percentInForce(), usualPercent, "% after the crawl")
	debug.SetGCPercent(70)
	p = StartPace()
	runtime.GC()
	p.Stop()
	assert.Equal(t, percentInForce(), 70, "%, the operator has chosen 70 %")
}
