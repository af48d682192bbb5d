//go:build !linux

package badsync

import "testing"

func MountTmpfs(t *testing.T, _, _ string) func() {
	t.Helper()
	t.Skip("mounts a small file system, which this test can do on Linux only")
	return nil
}

// RemountReadOnly makes such a file system one that cannot be written to.
func RemountReadOnly(*testing.T, string) {}
