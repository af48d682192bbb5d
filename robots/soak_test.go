//go:build soak

package robots

import "testing"

// TestSoakDifferential is TestDifferential with more files.
func TestSoakDifferential(t *testing.T) { differ(t, 100_000) }
