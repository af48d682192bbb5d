//go:build unix && !android

package storage

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// duplicate returns another descriptor of the same open file: what locks the one locks the other.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// lock locks an open file as bbolt does. ErrInUse: another process has it.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%w: the lock could not be taken back: %w", ErrInUse, err)
	}
	return nil
}
