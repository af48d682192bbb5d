package membership

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime reads the clock that counts while the machine sleeps.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
