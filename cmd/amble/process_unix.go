//go:build unix

package main

import (
	"math"
	"syscall"
)

// forbidDump sets the size that a core dump may have to 0. That it cannot be set is no reason not
// to run.
func forbidDump() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_CORE, &limit) == nil {
		limit.Cur = 0
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &limit)
	}
}

// descriptorLimit is how many files this process may have open. The Go runtime has raised the soft
// limit to the hard one.
func descriptorLimit() (limit int, known bool) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, false
	}
	return int(min(uint64(r.Cur), math.MaxInt32)), true
}
