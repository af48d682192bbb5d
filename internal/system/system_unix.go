//go:build unix

// Package system has what amble wants of the operating system and the standard library does not offer.
package system

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// IsLocked reports whether another process holds the lock of a file that keeps all others out.
func IsLocked(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock: %w", err)
	}
	return false, nil
}

// Unlock gives up the lock of a file. Closing it does not while a part of it is mapped.
func Unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// FreeBytes returns the room that this user has left on the file system of a directory.
func FreeBytes(dir string) (uint64, error) {
	free, _, err := Room(dir)
	return free, err
}

// Room returns the room that this user has left on the file system of a directory, and the size of that.
func Room(dir string) (free, size uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return uint64(st.Bavail) * uint64(st.Bsize), uint64(st.Blocks) * uint64(st.Bsize), nil
}

// ForbidDump sets the maximum size of a core dump to 0. It ignores errors.
func ForbidDump() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil {
		limit.Cur = 0
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit)
	}
}

// Descriptors returns how many files this process may have open. The Go runtime has raised the soft limit
// to the hard one.
func Descriptors() (limit int, known bool) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0, false
	}
	return int(min(uint64(r.Cur), math.MaxInt32)), true
}
