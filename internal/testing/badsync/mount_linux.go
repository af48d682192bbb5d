package badsync

import (
	"syscall"
	"testing"
)

// MountTmpfs mounts a new file system on a directory until the test ends.
func MountTmpfs(t *testing.T, dir, options string) (unmount func()) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("needs the right to mount a small file system: %v", err)
	}
	return func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	}
}

// RemountReadOnly makes such a file system one that cannot be written to.
func RemountReadOnly(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}
