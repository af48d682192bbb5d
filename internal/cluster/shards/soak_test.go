//go:build soak

package shards

import "testing"

// TestSoakKills kills nodes for about an hour.
func TestSoakKills(t *testing.T) { killAtRandom(t, 1000) }

// TestSoakRecrawlBudget is TestRecrawlBudget with more seeds.
func TestSoakRecrawlBudget(t *testing.T) { checkRecrawlBudget(t, 10_000) }
