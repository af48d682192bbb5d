package crawl

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestDropQueue drops the queue of a host of a running crawl.
func TestDropQueue(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 200), nil), site("b.test", "", paths("/", 10), nil))
		o := testOptions(t, web)
		e, stop := daemon(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		ctx := context.Background()
		assert.Fails(e.DropQueue(ctx, "c.test"))(t, inspect.ErrUnknown, "drop of an unknown host")
		testkit.Until(t, "some pages are fetched", func() bool {
			return len(web.Requests().Host("a.test").Pages()) > 10
		})
		waiting, err := e.DropQueue(ctx, "a.test")
		must.True(t, err == nil && waiting >= 100, "drop of %d URLs: %v", waiting, err)
		before := len(web.Requests().Host("a.test").Pages())
		testkit.Until(t, "none waits", func() bool { return waits(t, e, "a.test") == 0 })
		must.Get(e.Add(ctx, additions(t, web.URL("a.test", "/later"))))(t)
		testkit.Until(t, "a later URL is requested", func() bool { return len(web.Requests().Path("/later")) > 0 })
		testkit.Until(t, "b.test is done", func() bool { return waits(t, e, "b.test") == 0 })
		stop()
		assert.Fails(e.DropQueue(ctx, "a.test"))(t, ErrNotRunning, "drop after the end")
		after := len(web.Requests().Host("a.test").Pages())
		if after > before+2 { // one that was under way, and the later one
			t.Errorf("%d pages before the drop, %d after", before, after)
		}
		checkDropped(t, o, 201-before-1)
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
	})
}

func waits(t *testing.T, e *Engine, name string) uint32 {
	t.Helper()
	h := must.Get(e.store.HostByName(name))(t)
	b := h.Backlog()
	return b.Queued + b.Due
}

// checkDropped looks into what a crawl left: at least so many URLs of host 1 are excluded, all for
// the reason that the operator wants it so, and no sweep is left.
func checkDropped(t *testing.T, o Options, least int) {
	t.Helper()
	s, err := storage.Open(o.DataDir, storage.Options{ReadOnly: true})
	must.Do(t, err)
	defer s.Close()
	dropped := 0
	_, err = s.URLs(1, 0, 10_000, func(h storage.Head) {
		if h.Last.State == storage.Excluded && h.Last.Reason == storage.ReasonOperator {
			dropped++
		}
	})
	assert.True(t, err == nil && dropped >= least, "%d URLs are dropped, want at least %d (%v)", dropped, least, err)
	if marks, err := s.Marks(sweep.MarkDrop); err != nil || len(marks) > 0 {
		t.Errorf("marks %v are left (%v)", marks, err)
	}
	assert.NoError(t, s.Check(context.Background(), func(f storage.Finding) { t.Error(f.Text) }))
}

// TestDropGoesOn: a drop that an earlier process began is ended by the next, before anything of it
// is requested.
func TestDropGoesOn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const all, below = 2600, 2500
		web := serve(site("a.test", "", nil, nil))
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = time.Millisecond
		commitTo(t, o, func(s *storage.Store, b *storage.Batch) {
			for n := range all {
				u := parse(t, web.URL("a.test", fmt.Sprintf("/%d", n)))
				b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u)})
			}
			drop := sweep.NewDrop(1, below)
			b.Marks = map[string][]byte{drop.Mark(): drop.Encode()}
		})
		crawl(t, o, web.URL("a.test", "/2599"))
		assert.Equal(t, len(web.Requests().Pages()), all-below, "pages were requested")
		checkDropped(t, o, below)
	})
}
