//go:build cluster

package shards

import (
	"testing"
	"time"
)

// TestClusterSharedLimits runs the crawl of hosts that share limits through all faults.
func TestClusterSharedLimits(t *testing.T) {
	faults := map[string]func(w *world, want []string){"kill": kill, "cut off": cutOff, "join and leave": joinAndLeave}
	for name, limit := range sharedLimits {
		for fault, happens := range faults {
			t.Run(name+"/"+fault, func(t *testing.T) {
				t.Parallel()
				share(t, limit, shortTTL, happens)
			})
		}
	}
}

// TestClusterHandOver is TestHandOver with nodes that all leave one by one first.
func TestClusterHandOver(t *testing.T) {
	t.Parallel()
	handOver(t, 40*time.Millisecond, 3)
}

// cutOff cuts a node off, until the others have requested most of the pages.
func cutOff(w *world, want []string) {
	victim := w.victim(want)
	victim.proxy.Cut()
	w.requested(len(want) * 3 / 4)
	victim.proxy.Mend()
}

// joinAndLeave has another node join, and one leave.
func joinAndLeave(w *world, want []string) {
	victim := w.victim(want)
	p := w.start("late", w.t.TempDir())
	p.takes(1)
	victim.leave()
}
