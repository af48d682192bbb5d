package politeness

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestPaceOfManyDelays compares the limiter's answers, which are floating-point numbers, with whole
// microseconds. Up to 200 days they are the same; beyond that, no request is early and none is late
// by more than a part in 2^48.
func TestPaceOfManyDelays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		delay := time.Duration(random.Int64N(math.MaxInt64/2) >> random.IntN(62))
		end := at(time.Duration(random.Int64N(int64(time.Hour))))
		var p pace
		p.ended(end.Add(-time.Duration(random.Int64N(int64(time.Hour)))), time.Second)
		p.ended(end, delay)
		got := p.ready().Sub(end)
		exact := (delay + time.Microsecond - 1).Truncate(time.Microsecond)
		must.True(t, (delay >= 1<<54 || got == exact) && got >= delay && got-exact <= delay>>48,
			"a delay of %d ns keeps a gap of %d ns, want %d", delay, got, exact)
	}
}
