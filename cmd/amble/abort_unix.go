//go:build unix

package main

import "syscall"

// forbidDump sets the size that a core dump may have to 0. That it cannot be set is no reason not
// to run.
func forbidDump() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_CORE, &limit) == nil {
		limit.Cur = 0
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &limit)
	}
}
