//go:build soak

package shards

import "testing"

// TestSoakKills kills nodes for about an hour.
func TestSoakKills(t *testing.T) { killAtRandom(t, 1000) }
