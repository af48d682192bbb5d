//go:build soak

package frontier

import "testing"

// TestSoakSimulation is TestSimulation with 10 million requests.
func TestSoakSimulation(t *testing.T) {
	for _, c := range simulations {
		t.Run(c.name, func(t *testing.T) { simulate(t, c, 10_000_000/len(simulations)) })
	}
}
