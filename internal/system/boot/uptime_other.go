//go:build !linux && !darwin

package boot

import "time"

// Uptime returns nil: no clock is known here that counts while the machine sleeps.
func Uptime() func() time.Duration { return nil }
