package frontier

import "time"

// instant is nanoseconds since the frontier's epoch on the monotonic clock.
type instant int64

// The first and the last instant, far enough from the ends of the numbers to be added to.
const (
	never  instant = 1 << 62
	always instant = -never
)

// timescale converts between times and instants, by the latest reading of the clock.
type timescale struct {
	epoch time.Time
	clock time.Time     // last reading; its wall clock says which hours are in force
	ahead time.Duration // of due times; see dueTime
}

func (c *timescale) instant(t time.Time) instant {
	if t.IsZero() {
		return always
	}
	return min(max(instant(t.Sub(c.epoch)), always), never)
}

func (c *timescale) time(i instant) time.Time { return c.epoch.Add(time.Duration(i)) }

// readClock records a reading of the clock. Readings may come slightly out of order; the latest by
// the monotonic clock counts.
func (c *timescale) readClock(now time.Time) {
	if now.Before(c.clock) {
		return
	}
	c.clock = now
	c.ahead = max(c.ahead, time.Duration(now.UnixNano()-c.epoch.UnixNano())-now.Sub(c.epoch))
}

// dueTime converts a time to the scale on which URLs are due. The store keeps due times by the wall
// clock, because it has no other. This scale follows the monotonic clock, and the wall clock where
// that is set forward. A wall clock that is set back does not set it back, so no URL waits longer.
func (c *timescale) dueTime(t time.Time) time.Time {
	return c.epoch.Round(0).Add(t.Sub(c.epoch) + c.ahead)
}

// fromUnix is the instant of a due time in Unix seconds.
func (c *timescale) fromUnix(s uint32) instant {
	return c.instant(time.Unix(int64(s), 0).Add(-c.ahead))
}

// base is what every part of a Frontier reads: the time, the options in force, and the scope.
type base struct {
	timescale
	o         Options
	scope     *Scope
	overrides *overrides
}

func (b *base) jitter() float64 {
	if b.o.Jitter == nil {
		return 0
	}
	return b.o.Jitter()
}
