package crawl

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// witness keeps what it is told.
type witness struct {
	mu       sync.Mutex
	requests []requestlog.Request
	commits  int
	items    int
}

func (w *witness) Requested(q requestlog.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, q)
}

func (w *witness) Committed(_ time.Duration, items int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	w.items += items
}

// TestObserver: the observer hears of each request that the web saw, and the status counts the same.
func TestObserver(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(
			site("a.test", "User-agent: *\nCrawl-delay: 0.05\n", []string{"/1", "/gone"},
				testweb.Routes{"/gone": testweb.Status(410)}),
			site("b.test", "", paths("/", 5), nil))
		e := must.Get(Open(testOptions(t, web), testLog(t)))(t)
		defer e.Close()
		var w witness
		e.Observe(Observers{&w})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s := must.Get(e.Run(ctx, []Seed{seed(t, web.URL("a.test", "/")), seed(t, web.URL("b.test", "/"))}))(t)
		served := web.Requests()
		assert.Equal(t, len(w.requests), len(served), "heard of requests, the web saw")
		gaps := 0
		for _, q := range w.requests {
			if q.URL.Host() == "a.test" && q.Gap >= 0 {
				gaps++
				assert.AtLeast(t, q.Gap, q.Delay, q.URL, "a gap of the delay in force")
			}
			assert.True(t, q.Status != 0 && q.Failure == 0 && !q.Connected.Before(q.Start) &&
				!q.FirstByte.Before(q.Connected) && !q.End.Before(q.FirstByte), "%+v", q)
		}
		if gaps != 3 { // robots.txt, then three pages
			t.Errorf("%d gaps at a.test, want 3", gaps)
		}
		assert.True(t, w.commits != 0 && w.items != 0, "%d commits of %d items", w.commits, w.items)
		if p := s.Status.Pace; p.Violations != 0 || p.Gaps != uint64(len(served)-2) {
			t.Errorf("pace %+v of %d requests to two hosts", p, len(served))
		}
		n := s.Status.Statuses
		assert.True(t, n["410"] == 1 && n["200"] == uint64(len(served)-1), "answers by status: %v", n)
	})
}
