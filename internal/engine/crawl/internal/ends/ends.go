// Package ends says why a run of a crawl is over.
package ends

import "time"

// End is why a run is over.
type End string

// The ends of a run without an error.
const (
	Done     End = "done"      // all is done or postponed
	Stopped  End = "stopped"   // somebody stopped it
	MaxPages End = "max_pages" // the limits of the settings
	MaxBytes End = "max_bytes"
	MaxTime  End = "max_time"
)

// Limits are the limits of a run besides that of its pages.
type Limits struct {
	Bytes uint64    // received over all runs; 0: no limit
	Until time.Time // zero: no limit
}

// NewLimits returns the limits of a run that begins. 0: no limit.
func NewLimits(bytes uint64, length time.Duration, now time.Time) (l Limits) {
	if l.Bytes = bytes; length > 0 {
		l.Until = now.Add(length)
	}
	return l
}

// Reached returns which limit is reached; empty: none. It reads the clock only if there is one of time.
func (l *Limits) Reached(bytes uint64, now func() time.Time) End {
	switch {
	case l.Bytes > 0 && bytes >= l.Bytes:
		return MaxBytes
	case !l.Until.IsZero() && !now().Before(l.Until):
		return MaxTime
	}
	return ""
}
