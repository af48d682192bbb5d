package starts

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestAnyStart: the start ledger can be read to its end with any delays and waits.
func TestAnyStart(t *testing.T) {
	dir := t.TempDir()
	durations := rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, 1, -1, time.Millisecond, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64,
			1 << 62}),
		rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		l, err := Open(dir, "boot", 0)
		must.Do(t, err)
		defer l.Close()
		starts, waits := make(map[string]time.Duration), make(map[string]time.Duration)
		for i := range rapid.IntRange(1, 20).Draw(t, "lines") {
			host, d, at := fmt.Sprintf("h%d.test", i), durations.Draw(t, "duration"), anyTime().Draw(t, "at")
			if rapid.Bool().Draw(t, "wait") && d > 0 {
				waits[host] = d
				err = l.AppendWait(Wait{Host: host, At: at, Wait: d})
			} else {
				starts[host] = max(d, -1)
				_, err = l.Append(Start{Host: host, Address: "fe80::1%eth0", At: at, Delay: d,
					Note: "page,0,,http://" + host + "/"})
			}
			must.Do(t, err)
		}
		uncommitted, err := Read(dir, 0, "boot", nil)
		must.True(t, err == nil && !uncommitted.Everyone && uncommitted.End == l.Offset() &&
			len(uncommitted.Hosts) == len(starts) && len(uncommitted.Waits) == len(waits),
			"%+v, want %d starts and %d waits (%v)", uncommitted, len(starts), len(waits), err)
		for host, d := range starts {
			got := uncommitted.Hosts[host]
			must.True(t, (d < 0 || got >= d) && (d >= 0 || got < 0), "a delay of %v became %v", d, got)
		}
		for host, d := range waits {
			got := uncommitted.Waits[host].Wait
			must.True(t, got >= d, "a wait of %v became %v", d, got)
		}
	})
}
