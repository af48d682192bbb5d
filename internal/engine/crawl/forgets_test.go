package crawl

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// leaving are the ways by which pages of a.test leave a crawl.
var leaving = map[string]func(e *Engine, seed weburl.URL) error{
	"delete": func(e *Engine, _ weburl.URL) error {
		_, err := e.Delete(context.Background(), Deletion{Host: "a.test"})
		return err
	},
	"drop the queue": func(e *Engine, _ weburl.URL) error {
		_, err := e.DropQueue(context.Background(), "a.test")
		return err
	},
	"leave out": func(e *Engine, _ weburl.URL) error {
		_, err := e.Retry(context.Background(), sweep.Selection{Drop: true, Contains: "a.test"}, noProgress)
		return err
	},
	"opt out": func(e *Engine, _ weburl.URL) error {
		return e.AddOptOut(context.Background(),
			optout.Entry{Scope: optout.ScopeHost, Value: "a.test", At: time.Now()})
	},
	"remove the seed": func(e *Engine, seed weburl.URL) error {
		_, err := e.ChangeSeeds(context.Background(), SeedWish{Remove: []weburl.URL{seed}})
		return err
	},
}

// TestPlanForgets: pages on the recrawl plan that were put back into their queues, and are left out or deleted before
// they are fetched again, are on the plan no more.
func TestPlanForgets(t *testing.T) {
	t.Parallel()
	const pages = 20
	ctx := context.Background()
	for name, leave := range leaving {
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

// TestPlanForgetsInFlight: the plan counts right what is left out or deleted while it is fetched again, or while its
// outcome is on its way to the disk.
func TestPlanForgetsInFlight(t *testing.T) {
	t.Parallel()
	const pages = 5
	ctx := context.Background()
	for name, leave := range leaving {
		for _, left := range []time.Duration{time.Second, time.Minute} { // after the request has begun
			t.Run(fmt.Sprintf("%s/%v", name, left), func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
					var requests atomic.Int32
					slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if requests.Add(1) > 1 {
							time.Sleep(5 * time.Second)
						}
						testweb.Page("slow").ServeHTTP(w, r)
					})
					web := serve(site("a.test", "", append(paths("/", pages), "/slow"), testweb.Routes{"/slow": slow}))
					o := recrawling(t, web)
					o.Recrawl.Min, o.Recrawl.Max = time.Hour, time.Hour
					e, stop := daemon(t, o, web.URL("a.test", "/"))
					testkit.Until(t, "all is fetched", func() bool { return e.Status().URLs["fetched"] == pages+2 })
					again := sweep.Selection{Contains: "/slow", States: storage.In(storage.Fetched)}
					again.Before = time.Now().Add(time.Hour)
					p, err := e.Retry(ctx, again, noProgress)
					must.True(t, err == nil && p.Back == 1, "%+v, %v", p, err)
					testkit.Until(t, "it is in flight", func() bool { return requests.Load() == 2 })
					time.Sleep(left)
					must.Do(t, leave(e, parse(t, web.URL("a.test", "/"))))
					time.Sleep(time.Minute)
					stop()
					checkPlan(t, o, stored(t, o.DataDir))
				})
			})
		}
	}
}

// TestPlanRecalls: a page that a sweep was to leave out stays on the plan if it had another outcome before the commit.
func TestPlanRecalls(t *testing.T) {
	t.Parallel()
	for when, pages := range map[storage.State]int{storage.Fetched: 0, storage.Retrying: 1} {
		d := testDispatcher(t)
		store := d.store.(*storage.Store)
		d.plan = must.Get(recrawl.New(recrawl.DefaultOptions()))(t)
		page, now := recrawl.Page{Host: "a.test", RequestURI: "/"}, time.Now()
		m := d.plan.Answered(&recrawl.Visit{Page: page, At: now, Change: recrawl.First}, &recrawl.Site{})
		u := parse(t, "http://a.test/")
		must.Get(store.Commit(&storage.Batch{
			Found: []storage.Found{{URL: u, Fingerprint: store.Fingerprint(u), At: now}},
		}))(t)
		must.Get(store.Commit(&storage.Batch{
			Done: []storage.Done{{
				Host: 1, Outcome: storage.Outcome{State: storage.Fetched, At: now, Due: m.Due, History: m.History},
			}},
		}))(t)
		d.sweeps.exclude(d.pending)
		s := d.sweeps.waiting[0]
		d.sweeps.handedOver()
		d.takeStep(&sweep.Step{
			Sweep: s, Done: []storage.Done{{Host: 1, When: storage.In(when), Outcome: frontier.DropOutcome(now)}},
			Forgotten: []sweep.PlannedPage{{
				At: storage.Position{Host: 1}, History: m.History, Importance: recrawl.ImportanceOf(0, 0),
			}},
		})
		_, b := d.nextBatch()
		d.handedOver(b)
		b.result = must.Get(store.Commit(&b.rows))(t)
		d.takeCommitted(b)
		assert.Equal(t, d.plan.Pages(), pages, "pages on the plan, with an outcome for a page that is", when)
	}
}
