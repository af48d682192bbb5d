package testkit

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestClock: the clock of the tests does what it says.
func TestClock(t *testing.T) {
	for _, by := range []time.Duration{0, -time.Hour, 24 * time.Hour} {
		var c Clock
		before := c.Now()
		c.Set(by)
		after := c.Now()
		if passed := after.Sub(before); passed < 0 || passed > time.Minute {
			t.Errorf("set by %v: %v passed by the monotonic clock", by, passed)
		}
		off := after.Round(0).Sub(before.Round(0)) - by
		assert.True(t, off >= 0 && off <= time.Minute, "set by %v: the wall clock is off by %v", by, off)
	}
}
