package crawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestEnds: a run that ends says why. What was received counts over all runs, the time is that of one.
func TestEnds(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 100), nil))
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = time.Second
		received := uint64(0)
		for _, run := range []struct {
			name     string
			set      func()
			end      End
			requests int // of this run, at least
		}{
			{"pages", func() { o.MaxPages = 3 }, EndMaxPages, 3},
			{"bytes", func() { o.MaxPages, o.MaxBytes = 0, received+1 }, EndMaxBytes, 1},
			{"bytes of the runs before", func() {}, EndMaxBytes, 0},
			{"time", func() { o.MaxBytes, o.MaxTime = 0, 10*time.Second }, EndMaxTime, 8},
			{"time again", func() {}, EndMaxTime, 8},
			{"all", func() { o.MaxTime = 0 }, EndDone, 60},
		} {
			run.set()
			before, began := len(web.Requests().Pages()), time.Now()
			sum := crawl(t, o, web.URL("a.test", "/"))
			received = sum.Status.Bytes
			n := len(web.Requests().Pages()) - before
			assert.True(t, sum.End == run.end && sum.Status.End == run.end && n >= run.requests &&
				(run.requests != 0 || n <= 0), "%s: the end is %q, in the status %q, after %d requests", run.name,
				sum.End, sum.Status.End, n)
			took := time.Since(began)
			assert.True(t, o.MaxTime <= 0 || took <= o.MaxTime+2*time.Second, "%s: it took %v", run.name, took)
		}
		o.MaxTime = time.Hour
		o.ExitWhenDone = false
		sum, err := crawlFor(t, o, time.Minute)
		assert.True(t, err == nil && sum.End == EndStopped && sum.Status.End == EndStopped, "stopped: %q, %q, %v",
			sum.End, sum.Status.End, err)
	})
}
