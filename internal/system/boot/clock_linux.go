package boot

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock reads the clock and, at the same moment, the one that runs since the start of the
// machine; 0 if it has none. Times that Go takes on Linux are on that clock, so that moments of
// different processes can be compared whatever the wall clock does.
func Clock() (now time.Time, uptime time.Duration) {
	least := time.Duration(1<<63 - 1)
	for range 10 { // the narrowest of a few readings: a process may be put aside between two of them
		var ts unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			return time.Now(), 0
		}
		if took := time.Since(before); took < least {
			least, now, uptime = took, before.Add(took/2), time.Duration(ts.Nano())
		}
	}
	return now, uptime
}
