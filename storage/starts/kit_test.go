package starts

import (
	"math"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/must"
)

var someTime = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// anyTime draws an instant, also those that a line cannot hold.
func anyTime() *rapid.Generator[time.Time] {
	return rapid.OneOf(
		rapid.SampledFrom([]time.Time{{}, time.Unix(0, 0), time.Unix(-1, 1), time.Unix(math.MaxUint32, 1)}),
		rapid.Map(rapid.Int64Range(0, 1<<33), func(n int64) time.Time { return time.Unix(n, n%1e9) }),
	)
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}
