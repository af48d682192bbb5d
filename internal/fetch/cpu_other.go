//go:build !linux

package fetch

import "time"

// threadTime is not to be had on this system: bodies are bounded by their bytes alone.
func threadTime() time.Duration { return 0 }
