// Package gc sets how much the heap of the process may grow between two collections.
package gc

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// The Go collector lets the heap double before it runs. With much live memory that is much garbage,
// and most of it is bodies, which cost the collector next to nothing to mark. So a large heap grows
// by less.
const (
	// heapGrowth bounds the garbage that a heap may gather, in bytes.
	heapGrowth = 80 << 20
	// usualPercent is the setting of the runtime: the heap may grow by as much as is live.
	usualPercent = 100
	// leastPercent keeps a very large heap from being collected all the time.
	leastPercent = 25
	// mostPercent is for a small heap: less would cost more processor time than the memory is worth.
	mostPercent = 125
)

// Pace follows the live memory with the setting of the runtime, after each collection: a second later the heap may
// be many times as large. It does nothing if the operator has chosen the setting with GOGC. A process has one.
type Pace struct {
	mu      sync.Mutex
	percent int // in force; 0: the operator has chosen, or the pace has ended
	live    []metrics.Sample
}

// sentinel is an object that each collection frees, which calls for the next adjustment.
type sentinel struct{ _ *Pace }

// StartPace returns a pace that follows the live memory until Stop.
func StartPace() *Pace {
	chosen := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(chosen)
	if chosen[0].Value.Uint64() != usualPercent {
		return new(Pace)
	}
	p := &Pace{percent: usualPercent, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	p.adjust()
	return p
}

// adjust follows the live memory as of the last collection, and again after the next one, or the one after that if
// it comes during a collection.
func (p *Pace) adjust() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.percent == 0 {
		return
	}
	metrics.Read(p.live)
	p.set(heapPercent(p.live[0].Value.Uint64()))
	runtime.AddCleanup(new(sentinel), (*Pace).adjust, p)
}

// Stop restores the setting of the runtime.
func (p *Pace) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.percent != 0 {
		p.set(usualPercent)
		p.percent = 0
	}
}

func (p *Pace) set(percent int) {
	if percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
}

// heapPercent returns by how many percent a heap with so many bytes of live memory may grow.
func heapPercent(live uint64) int {
	return int(min(max(heapGrowth*100/max(live, 1), leastPercent), mostPercent))
}
