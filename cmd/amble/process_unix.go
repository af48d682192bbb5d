//go:build unix

package main

import (
	"math"
	"syscall"
)

// forbidDump sets the maximum size of a core dump to 0. It ignores errors.
func forbidDump() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_CORE, &limit) == nil {
		limit.Cur = 0
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &limit)
	}
}

// descriptorLimit returns how many files this process may have open. The Go runtime has raised the
// soft limit to the hard one.
func descriptorLimit() (limit int, known bool) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, false
	}
	return int(min(uint64(r.Cur), math.MaxInt32)), true
}
