//go:build !linux && !darwin

package uptime

import "time"

// Clock returns nil: no clock is known here that counts while the machine sleeps.
func Clock() func() time.Duration { return nil }
