package boot

import (
	"runtime"
	"testing"
	"time"
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

// TestUptime: the clock goes on, and counts from a start that is not that of the process.
func TestUptime(t *testing.T) {
	uptime := Uptime()
	if runtime.GOOS != "linux" && uptime == nil {
		t.Skip("the system has no such clock")
	}
	first := uptime()
	if _, monotonic := Clock(); runtime.GOOS == "linux" && first+time.Second < monotonic {
		t.Errorf("the machine runs since %v, and since %v without its sleep", first, monotonic)
	}
	if second := uptime(); first <= 0 || second < first {
		t.Errorf("%v comes after %v", second, first)
	}
}
