package boot

import (
	"runtime"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestClock: two readings differ by the same time on both clocks, however far apart they are taken.
func TestClock(t *testing.T) {
	now, uptime := Clock()
	must.True(t, runtime.GOOS != "linux" || uptime > 0, "the machine runs since %v", uptime)
	for range 100 {
		later, up := Clock()
		must.True(t, !later.Before(now) && up >= uptime, "%v and %v come after %v and %v", later, up, now, uptime)
		now, uptime = later, up
	}
	a, b := ID(), ID()
	assert.True(t, a == b && (runtime.GOOS != "linux" || a != ""), "the boot is %q, then %q", a, b)
}
