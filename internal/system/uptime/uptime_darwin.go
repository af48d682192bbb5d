package uptime

import "golang.org/x/sys/unix"

// awake is the clock that also counts while the machine sleeps.
const awake = unix.CLOCK_MONOTONIC
