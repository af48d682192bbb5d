//go:build soak

package frontier

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSoakSimulation is TestSimulation with 10 million requests.
func TestSoakSimulation(t *testing.T) {
	for _, c := range simulations {
		t.Run(c.name, func(t *testing.T) { simulate(t, c, 10_000_000/len(simulations)) })
	}
}

// TestSoakModel is TestModel with more cases.
func TestSoakModel(t *testing.T) {
	tries(t, 3000)
	rapid.Check(t, func(t *rapid.T) { newModel(t).run() })
}
