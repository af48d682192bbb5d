//go:build soak

package cluster

import (
	"flag"
	"testing"
)

var soakSteps = flag.Int("cluster-steps", 20_000_000, "steps of the model of the cluster")

// TestSoakModel is TestModel with other seeds and millions of steps.
func TestSoakModel(t *testing.T) {
	steps, seed := 0, uint64(1000)
	for ; steps < *soakSteps; seed++ {
		steps += modelRun(t, seed)
	}
	t.Logf("%d clusters, seeds 1000 to %d, %d steps", seed-1000, seed-1, steps)
}

// TestSoakSimulation is TestSimulation with 1,000 nodes and 16,384 shards.
func TestSoakSimulation(t *testing.T) { simulate(t, newFleet(1000, 16384)) }
