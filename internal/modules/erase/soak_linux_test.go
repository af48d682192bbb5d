//go:build soak

package erase

import "testing"

// TestSoakKill kills an erasure before each of its syncs.
func TestSoakKill(t *testing.T) { killAtSyncs(t, 1) }
