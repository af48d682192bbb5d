package frontier

import "time"

// instant is nanoseconds since the frontier's epoch on the monotonic clock.
type instant int64

// The first and the last instant, far enough from the ends of the numbers to be added to.
const (
	never  instant = 1 << 62
	always instant = -never
)

func (f *Frontier) instant(t time.Time) instant {
	if t.IsZero() {
		return always
	}
	return min(max(instant(t.Sub(f.epoch)), always), never)
}

func (f *Frontier) time(i instant) time.Time { return f.epoch.Add(time.Duration(i)) }

// readClock records a reading of the clock. Readings may come slightly out of order; the latest by
// the monotonic clock counts.
func (f *Frontier) readClock(now time.Time) {
	if now.Before(f.clock) {
		return
	}
	f.clock = now
	f.clockAhead = max(f.clockAhead, time.Duration(now.UnixNano()-f.epoch.UnixNano())-now.Sub(f.epoch))
}

// dueTime converts a time to the scale on which URLs are due. The store keeps due times by the wall
// clock, because it has no other. This scale follows the monotonic clock, and the wall clock where
// that is set forward. A wall clock that is set back does not set it back, so no URL waits longer.
func (f *Frontier) dueTime(t time.Time) time.Time {
	return f.epoch.Round(0).Add(t.Sub(f.epoch) + f.clockAhead)
}

// fromUnix is the instant of a due time in Unix seconds.
func (f *Frontier) fromUnix(s uint32) instant {
	return f.instant(time.Unix(int64(s), 0).Add(-f.clockAhead))
}

func (f *Frontier) jitter() float64 {
	if f.o.Jitter == nil {
		return 0
	}
	return f.o.Jitter()
}
