//go:build !linux

package boot

import "time"

// Clock reads the clock. There is none that goes on from process to process.
func Clock() (now time.Time, uptime time.Duration) { return time.Now(), 0 }
