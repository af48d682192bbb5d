//go:build !linux

package crawl

import "time"

// systemClock reads the clock. There is none that goes on from process to process.
func systemClock() (now time.Time, uptime time.Duration) { return time.Now(), 0 }
