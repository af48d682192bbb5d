// Package boot says which start of the machine this is, and how long ago it was, so that what
// different processes wrote can be compared.
package boot

import (
	"bytes"
	"os"
)

// ID returns the id of this boot of the machine. It is empty if the system has none; then every
// restart of a process counts as a new boot. Any goroutine may call it.
func ID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}
