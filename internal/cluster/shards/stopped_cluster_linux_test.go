//go:build cluster

package shards

import (
	"testing"
	"time"
)

// TestClusterStoppedOwner is TestHeavyStoppedOwner with a process that is stopped for a minute.
func TestClusterStoppedOwner(t *testing.T) {
	t.Parallel()
	stopOwner(t, 2, longTTL, time.Minute)
}
