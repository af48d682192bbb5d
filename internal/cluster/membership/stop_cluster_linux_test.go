//go:build cluster

package membership

import "testing"

// TestClusterStopped stops a process twenty times.
func TestClusterStopped(t *testing.T) { stopProcess(t, 20) }
