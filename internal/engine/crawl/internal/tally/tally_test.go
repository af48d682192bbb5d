package tally

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestPaceBuckets: each gap counts once, by its ratio to the delay.
func TestPaceBuckets(t *testing.T) {
	var tally pace
	for _, gap := range []time.Duration{999, 1000, 1009, 1010, 1400, 1600, 4999, 19999, 20000} {
		tally.count(&requestlog.Request{Gap: gap * time.Millisecond, Delay: time.Second})
	}
	tally.count(&requestlog.Request{Gap: -1, Delay: time.Second}) // nothing before it
	tally.count(&requestlog.Request{Gap: 0, Delay: 0})            // no delay to keep
	p := tally.load()
	assert.True(t, p.Gaps == 9 && p.Violations == 1, "%+v", p)
	for i, want := range []uint64{1, 2, 1, 1, 1, 1, 1, 1} {
		assert.Equal(t, p.Buckets[i].Count, want, "bucket", p.Buckets[i].Label, "has")
	}
}
