package crawl

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// leftOut returns how many URLs of host 1 the operator has left out. The store is sound, and no sweep is left.
func leftOut(t *testing.T, o Options) (n int) {
	t.Helper()
	checkNoMarks(t, o, sweep.MarkRetry)
	for _, outcome := range stored(t, o.DataDir) {
		if outcome.State == storage.Excluded && outcome.Reason == storage.ReasonOperator {
			n++
		}
	}
	s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	must.Do(t, s.Check(context.Background(), func(f storage.Finding) { t.Error(f.Text) }))
	return n
}

// TestLeaveOut: URLs that the operator chooses are not requested any more, whether they are in memory, on disk or
// found again, and others are; a retry brings them back.
func TestLeaveOut(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		bad, good := paths("/bad/", 150), paths("/good/", 50)
		var all []string
		for i := range bad {
			all = append(all, bad[i], good[i/3])
		}
		web := serve(site("a.test", "", all, nil))
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = 20 * time.Millisecond
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		ctx := context.Background()
		requests := func(part string) (n int) {
			for path, count := range pagesOf(web, "a.test") {
				if strings.Contains(path, part) {
					n += count
				}
			}
			return n
		}
		testkit.Until(t, "some pages are fetched", func() bool { return requests("/bad/") > 10 })
		s := sweep.Selection{Drop: true, Host: "a.test", Contains: "/bad/"}
		counted := must.Get(e.CountRetries(ctx, s, noProgress))(t)
		done, err := e.Retry(ctx, s, noProgress)
		must.True(t, err == nil && done.Back <= 0 && done.Dropped <= counted.Dropped &&
			done.Dropped+5 >= counted.Dropped, "%+v, %v; the dry run counted %+v", done, err, counted)
		before := requests("/bad/")
		must.Get(e.Add(ctx, additions(t, web.URL("a.test", bad[149]))))(t)
		testkit.Until(t, "the others are fetched", func() bool { return waits(t, e, "a.test") == 0 })
		if after := requests("/bad/"); after > before+1 || requests("/good/") != 50 { // one was in flight
			t.Errorf("%d requests for URLs that are left out, %d before; %d for others", after, before,
				requests("/good/"))
		}
		one := web.URL("a.test", good[7])
		if done, err := e.Retry(ctx, sweep.Selection{Drop: true, URLs: []string{one}}, noProgress); err != nil ||
			done.Dropped != 1 {
			t.Errorf("one that was fetched: %+v, %v", done, err)
		}
		back := sweep.Selection{States: storage.In(storage.Excluded), Reasons: []storage.Reason{storage.ReasonOperator},
			Contains: "/bad/"}
		if p, err := e.Retry(ctx, back, noProgress); err != nil || p.Back > done.Dropped ||
			p.Back+1 < done.Dropped {
			t.Errorf("%d were left out, and %+v are put back: %v", done.Dropped, p, err)
		}
		testkit.Until(t, "all is fetched", func() bool { return waits(t, e, "a.test") == 0 })
		stop()
		assert.True(t, requests("/bad/") == 150 && requests("/good/") == 50, "%d and %d requests", requests("/bad/"),
			requests("/good/"))
		assert.Equal(t, leftOut(t, o), 1, "URLs are left out")
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
	})
}

// TestLeaveOutInFlight: a URL that is left out while its request is in flight is not tried again when that fails.
func TestLeaveOutInFlight(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		answer := make(chan struct{})
		web := serve(testweb.Site{Host: "a.test", Handler: testweb.Routes{
			"/": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				<-answer
				w.WriteHeader(http.StatusServiceUnavailable)
			})}})
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = 20 * time.Millisecond
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		testkit.Until(t, "the request is in flight", func() bool { return len(web.Requests().Path("/")) > 0 })
		s := sweep.Selection{Drop: true, URLs: []string{web.URL("a.test", "/")}}
		done, err := e.Retry(context.Background(), s, noProgress)
		assert.True(t, err == nil && done.Dropped == 1, "%+v, %v", done, err)
		close(answer)
		testkit.Until(t, "the request has ended", func() bool { return e.Status().InFlight == 0 })
		time.Sleep(10 * time.Minute) // of virtual time
		stop()
		if n := len(web.Requests().Path("/")); n != 1 || leftOut(t, o) != 1 {
			t.Errorf("%d requests, and %d URLs are left out", n, leftOut(t, o))
		}
	})
}

// TestLeaveOutRecrawls: pages that are left out are not visited again, and the plan knows them no more.
func TestLeaveOutRecrawls(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running=", running), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				bad, good := paths("/bad/", 10), paths("/good/", 9)
				web := serve(site("a.test", "", append(bad, good...), nil))
				o := recrawling(t, web)
				o.Frontier.Politeness.Delay = 20 * time.Millisecond
				o.Recrawl.Min, o.Recrawl.Max = 3*time.Second, 3*time.Second
				e, stop := daemon(t, o, web.URL("a.test", "/"))
				testkit.Until(t, "all is fetched", func() bool { return e.Status().URLs["fetched"] == 20 })
				s := sweep.Selection{Drop: true, States: storage.In(storage.Fetched), Contains: "/bad/"}
				if running {
					p, err := e.Retry(context.Background(), s, noProgress)
					assert.True(t, err == nil && p.Dropped == 10, "%+v, %v", p, err)
				} else {
					stop()
					r := must.Get(OpenRetrier(o, nil))(t)
					p, err := r.Retry(context.Background(), s, noProgress)
					assert.True(t, err == nil && p.Dropped == 10, "%+v, %v", p, err)
					must.Do(t, r.Close())
					_, stop = daemon(t, o)
				}
				testkit.Until(t, "recrawls", func() bool { return len(web.Requests().Path(good[8])) > 3 })
				stop()
				assert.AtMost(t, len(web.Requests().Path(bad[8])), 2, "a page that is left out was requested times")
				checkPlan(t, o, stored(t, o.DataDir))
				assert.Equal(t, leftOut(t, o), 10, "URLs are left out")
			})
		})
	}
}
