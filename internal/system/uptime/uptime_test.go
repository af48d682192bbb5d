package uptime

import (
	"runtime"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestClock: the clock goes on, and counts from a start that is not that of the process.
func TestClock(t *testing.T) {
	uptime := Clock()
	if runtime.GOOS != "linux" && uptime == nil {
		t.Skip("the system has no such clock")
	}
	first := uptime()
	if _, monotonic := boot.Clock(); runtime.GOOS == "linux" && first+time.Second < monotonic {
		t.Errorf("the machine runs since %v, and since %v without its sleep", first, monotonic)
	}
	second := uptime()
	assert.True(t, first > 0 && second >= first, "%v comes after %v", second, first)
}
