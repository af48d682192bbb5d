//go:build linux || darwin

// Package uptime is the clock that counts from the start of the machine, for members of a cluster.
package uptime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock returns a clock that counts from the start of the machine, also while it sleeps, and that
// nobody sets; nil if the system has none. Any goroutine may call the clock.
func Clock() func() time.Duration {
	return func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(awake, &ts); err != nil {
			panic(err) // only a clock that the system does not have fails
		}
		return time.Duration(ts.Nano())
	}
}
