package node

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestHeavyMemoryOfIdleCrawls: an open crawl with nothing to do takes at most 1 MiB, with its stacks.
func TestHeavyMemoryOfIdleCrawls(t *testing.T) {
	const crawls, most = 100, 1 << 20
	o := testOptions(t)
	n := start(t, o)
	n.add(t, Default, "https://a.test/")
	n.add(t, "first", "https://a.test/")
	before := inUse()
	for i := range crawls {
		n.add(t, fmt.Sprint("c", i), "https://a.test/", "https://b.test/")
	}
	each := (inUse() - before) / crawls
	t.Logf("%d KiB a crawl, %d goroutines", each>>10, runtime.NumGoroutine()/crawls)
	assert.AtMost(t, each, most, each>>10, "KiB a crawl", most>>10)
	if path := os.Getenv("AMBLE_HEAP_PROFILE"); path != "" {
		f := must.Get(os.Create(path))(t)
		defer f.Close()
		must.Do(t, pprof.WriteHeapProfile(f))
	}
}

// inUse is the memory of the heap and of stacks after a collection.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
