package crawl

import (
	"context"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// A crawl that stays up ends when it is drained: with all that it knows done, and nothing taken
// from outside.
func TestDrain(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 60), nil))
		o := testOptions(t, web)
		o.ExitWhenDone = false
		r := start(t, o, web, web.URL("a.test", "/"))
		r.until("requests", func() bool { return r.pages("a.test") > 3 })
		more := []Addition{{URL: parse(t, web.URL("a.test", "/more"))}}
		must.Do(t, r.Drain(t.Context(), true))
		assert.Equal(t, r.Status().State, "draining", "the state")
		assert.Fails(r.Add(t.Context(), more))(t, ErrDraining, "URLs while it drains")
		must.Do(t, r.Drain(t.Context(), false))
		if _, err := r.Add(t.Context(), more); err != nil || r.Status().State != "running" {
			t.Errorf("afterwards: %v, %s", err, r.Status().State)
		}
		must.Do(t, r.Drain(t.Context(), true))
		must.Do(t, <-r.ended)
		assert.Equal(t, r.pages("a.test"), 62, "pages")
		assert.Is(t, r.Drain(t.Context(), true), ErrNotRunning, "after the end")
	})
}

func TestStopByTheOperator(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 500), nil))
		e := must.Get(Open(testOptions(t, web), testLog(t)))(t)
		defer e.Close()
		assert.Is(t, e.Stop(t.Context()), ErrNotRunning, "before it runs")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for ctx.Err() == nil && len(web.Requests()) < 3 {
				time.Sleep(5 * time.Millisecond)
			}
			assert.NoError(t, e.Stop(ctx))
		}()
		s, err := e.Run(ctx, []Seed{seed(t, web.URL("a.test", "/"))})
		assert.True(t, err == nil && s.Stopped() && ctx.Err() == nil, "%+v, %v", s, err)
		<-stopped
		n := len(web.Requests())
		assert.True(t, n >= 3 && n <= 400, "%d requests of a site with 501 pages", n)
	})
}
