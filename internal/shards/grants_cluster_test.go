//go:build cluster

package shards

import "testing"

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
