//go:build linux || darwin

package boot

import (
	"time"

	"golang.org/x/sys/unix"
)

// Uptime returns a clock that counts from the start of the machine, also while it sleeps, and that
// nobody sets; nil if the system has none. Any goroutine may call the clock.
func Uptime() func() time.Duration {
	return func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(awake, &ts); err != nil {
			panic(err) // only a clock that the system does not have fails
		}
		return time.Duration(ts.Nano())
	}
}
