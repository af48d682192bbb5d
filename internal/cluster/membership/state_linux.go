package membership

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// lock takes the lock of a file, which ends with the process. It reports false if another process has
// it.
func lock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// identity identifies a file since the start of this machine: a copy of it, also on another machine,
// has another identity. It is empty if that is not known.
func identity(f *os.File) (boot string, inode, device uint64) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, 0
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return "", 0, 0
	}
	return strings.TrimSpace(string(text)), stat.Ino, uint64(stat.Dev)
}
