package boot

import (
	"runtime"
	"testing"
)

// TestClock: two readings differ by the same time on both clocks, however far apart they are taken.
func TestClock(t *testing.T) {
	now, uptime := Clock()
	if runtime.GOOS == "linux" && uptime <= 0 {
		t.Fatalf("the machine runs since %v", uptime)
	}
	for range 100 {
		later, up := Clock()
		if later.Before(now) || up < uptime {
			t.Fatalf("%v and %v come after %v and %v", later, up, now, uptime)
		}
		now, uptime = later, up
	}
	if a, b := ID(), ID(); a != b || runtime.GOOS == "linux" && a == "" {
		t.Errorf("the boot is %q, then %q", a, b)
	}
}
