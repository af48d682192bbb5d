//go:build !linux

package fetch

import "time"

// threadTime is not available on this system: only the bytes of bodies are bounded.
func threadTime() time.Duration { return 0 }
