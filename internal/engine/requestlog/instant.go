//go:build !core

package requestlog

import "time"

// Sub returns how long after u the instant t is. It is exact if both are on one clock: within a
// process, and on Linux from one process to the next until the machine restarts. Otherwise it is
// the difference by the wall clock.
func (t Instant) Sub(u Instant) (d time.Duration, exact bool) {
	if t.clock == u.clock && t.clock != 0 {
		return t.since - u.since, true
	}
	return t.Wall.Sub(u.Wall), false
}

// Add returns the instant d later.
func (t Instant) Add(d time.Duration) Instant {
	t.Wall, t.since = t.Wall.Add(d), t.since+d
	return t
}

// IsZero reports whether there is no such moment.
func (t Instant) IsZero() bool { return t.Wall.IsZero() }

// instant returns a time of the process as an Instant.
func (p *Process) instant(wall time.Time, mono time.Duration) Instant {
	return Instant{Wall: wall, since: p.Uptime + mono, clock: p.clock}
}
