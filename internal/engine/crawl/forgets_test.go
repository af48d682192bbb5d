package crawl

import (
	"context"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// TestPlanForgets: pages on the recrawl plan that were put back into their queues, and are left out or deleted before
// they are fetched again, are on the plan no more.
func TestPlanForgets(t *testing.T) {
	t.Parallel()
	const pages = 20
	ctx := context.Background()
	for name, leave := range map[string]func(e *Engine, seed weburl.URL) error{
		"delete": func(e *Engine, _ weburl.URL) error {
			_, err := e.Delete(ctx, Deletion{Host: "a.test"})
			return err
		},
		"drop the queue": func(e *Engine, _ weburl.URL) error {
			_, err := e.DropQueue(ctx, "a.test")
			return err
		},
		"leave out": func(e *Engine, _ weburl.URL) error {
			_, err := e.Retry(ctx, sweep.Selection{Drop: true, Contains: "a.test"}, noProgress)
			return err
		},
		"opt out": func(e *Engine, _ weburl.URL) error {
			return e.AddOptOut(ctx, optout.Entry{Scope: optout.ScopeHost, Value: "a.test", At: time.Now()})
		},
		"remove the seed": func(e *Engine, seed weburl.URL) error {
			_, err := e.ChangeSeeds(ctx, SeedWish{Remove: []weburl.URL{seed}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				web := serve(site("a.test", "", paths("/", pages), nil), site("b.test", "", nil, nil))
				o := recrawling(t, web)
				o.Recrawl.Min, o.Recrawl.Max = time.Hour, time.Hour
				e, stop := daemon(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
				testkit.Until(t, "all is fetched", func() bool { return e.Status().URLs["fetched"] == pages+2 })
				must.Do(t, e.Control(ctx, "a.test", frontier.Command{Kind: frontier.CommandPause}))
				again := sweep.Selection{Host: "a.test", States: storage.In(storage.Fetched)}
				again.Before = time.Now().Add(time.Hour)
				p, err := e.Retry(ctx, again, noProgress)
				must.True(t, err == nil && p.Back == pages+1, "%+v, %v", p, err)
				must.Do(t, leave(e, parse(t, web.URL("a.test", "/"))))
				testkit.Until(t, "none of them waits", func() bool { return e.Counters().Of(storage.Retrying) == 0 })
				stop()
				e = must.Get(Open(o, testLog(t)))(t)
				assert.Equal(t, e.plan.Pages(), 1, "pages are on the plan")
				must.Do(t, e.Close())
				checkPlan(t, o, stored(t, o.DataDir))
			})
		})
	}
}
