package crawl

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// running is a crawl that a test controls.
type running struct {
	*Engine
	t      *testing.T
	web    *testweb.Web
	cancel context.CancelFunc
	ended  chan error
}

// start runs a crawl until end is called.
func start(t *testing.T, o Options, web *testweb.Web, seeds ...string) *running {
	t.Helper()
	e := must.Get(Open(o, testLog(t)))(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	r := &running{Engine: e, t: t, web: web, cancel: cancel, ended: make(chan error, 1)}
	list := seedList(t, seeds...)
	go func() {
		_, err := e.Run(ctx, list)
		r.ended <- errors.Join(err, e.Close())
	}()
	return r
}

// end stops the crawl.
func (r *running) end() {
	r.t.Helper()
	r.cancel()
	assert.NoError(r.t, <-r.ended)
}

// pages counts the requests that a host saw, robots.txt left out.
func (r *running) pages(host string) (n int) {
	for _, q := range r.web.Requests() {
		if q.Host == host && q.Path != "/robots.txt" {
			n++
		}
	}
	return n
}

// robots counts how often the robots.txt of a host was requested.
func (r *running) robots(host string) (n int) {
	for _, q := range r.web.Requests() {
		if q.Host == host && q.Path == "/robots.txt" {
			n++
		}
	}
	return n
}

// until waits for something to come true.
func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	testkit.Until(r.t, what, ok)
}

// must gives an order to a host.
func (r *running) must(host string, o frontier.Command) {
	r.t.Helper()
	r.until("the order", func() bool {
		err := r.Control(r.t.Context(), host, o)
		must.True(r.t, err == nil || errors.Is(err, ErrNotRunning), "%v", err)
		return err == nil
	})
}

// quiet checks that a host sees no request for a second. One may have been on its way.
func (r *running) quiet(host string) {
	r.t.Helper()
	beats(r.t, r.Engine, 1)
	before := r.pages(host)
	beats(r.t, r.Engine, 1)
	assert.Equal(r.t, r.pages(host), before, host, "was requested times while paused")
}

// A paused host gets no request, its neighbour goes on; the pause survives a restart, and ends when
// it is resumed.
func TestPauseOfAHost(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 300), nil), site("b.test", "", paths("/", 300), nil))
		o := testOptions(t, web)
		o.ExitWhenDone = false
		seeds := []string{web.URL("a.test", "/"), web.URL("b.test", "/")}
		r := start(t, o, web, seeds...)
		r.until("the first pages", func() bool { return r.pages("a.test") > 3 && r.pages("b.test") > 3 })
		r.must("a.test", frontier.Command{Kind: frontier.CommandPause})
		before := r.pages("b.test")
		r.quiet("a.test")
		assert.Not(t, r.pages("b.test"), before, "the other host stands still as well")
		h, err := r.View().Host(t.Context(), "a.test")
		assert.True(t, err == nil && h.State == inspect.HostPaused && h.Politeness.Paused && h.Reason == "pause",
			"the paused host is %+v (%v)", h, err)
		r.end()

		r = start(t, o, web, seeds...)
		r.until("pages of the other host", func() bool { return r.pages("b.test") > before+10 })
		r.quiet("a.test")
		h, err = r.View().Host(t.Context(), "a.test")
		assert.True(t, err == nil && h.State == inspect.HostPaused, "after a restart the paused host is %+v (%v)", h,
			err)
		before = r.pages("a.test")
		r.must("a.test", frontier.Command{Kind: frontier.CommandResume})
		r.until("pages after the pause", func() bool { return r.pages("a.test") > before+3 })
		r.end()
	})
}

// A pause until an instant ends by itself.
func TestPauseUntil(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 300), nil))
		o := testOptions(t, web)
		r := start(t, o, web, web.URL("a.test", "/"))
		defer r.end()
		r.until("the first page", func() bool { return r.pages("a.test") > 3 })
		until := time.Now().Add(1500 * time.Millisecond)
		r.must("a.test", frontier.Command{Kind: frontier.CommandPause, Until: until})
		paused := time.Now().Add(50 * time.Millisecond) // a request may be under way
		after := func() int {
			return len(web.Requests().Filter(func(q testweb.Request) bool { return q.Start.After(until) }))
		}
		r.until("pages after the pause", func() bool { return after() > 0 })
		for _, q := range web.Requests() {
			if q.Start.After(paused) && q.Start.Before(until) {
				t.Errorf("%s is requested %v before the end of the pause", q.Path, until.Sub(q.Start))
			}
		}
	})
}

// The delay that is set counts from the next request on, and 0 takes it back.
func TestSetDelayOfAHost(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 600), nil))
		o := testOptions(t, web)
		r := start(t, o, web, web.URL("a.test", "/"))
		defer r.end()
		r.until("the first page", func() bool { return r.pages("a.test") > 3 })
		r.must("a.test", frontier.Command{Kind: frontier.CommandDelay, Delay: 400 * time.Millisecond})
		from := r.pages("a.test")
		r.until("pages with the delay", func() bool { return r.pages("a.test") >= from+4 })
		host := testweb.Log(web.Requests()).Host("a.test")
		for _, g := range host[len(host)-3:].ShortGaps(400 * time.Millisecond) {
			t.Errorf("a gap of %v, set to 400ms", g.Length)
		}
		r.must("a.test", frontier.Command{Kind: frontier.CommandDelay})
		from = r.pages("a.test")
		began := time.Now()
		r.until("pages without it", func() bool { return r.pages("a.test") >= from+12 })
		assert.AtMost(t, time.Since(began), 12*400*time.Millisecond, "12 pages took after the delay was taken back")
	})
}

// The robots.txt of a forgotten host is requested again, and its backoff is over.
func TestForgetAHost(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		var healthy atomic.Bool
		refuse := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if healthy.Load() {
				testweb.Page("a").ServeHTTP(w, q)
				return
			}
			testweb.Status(http.StatusTooManyRequests).ServeHTTP(w, q)
		})
		web := serve(site("a.test", "", paths("/", 5), testweb.Routes{"/": refuse}))
		o := testOptions(t, web)
		o.ExitWhenDone = false
		r := start(t, o, web, web.URL("a.test", "/"))
		defer r.end()
		r.until("a backoff", func() bool {
			h, err := r.View().Host(t.Context(), "a.test")
			return err == nil && h.Politeness.Backoff > 0
		})
		healthy.Store(true)
		before := r.robots("a.test")
		r.must("a.test", frontier.Command{Kind: frontier.CommandForget})
		r.until("robots.txt to be requested again, and the page", func() bool {
			return r.robots("a.test") > before && r.pages("a.test") > 1
		})
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
	})
}

// A pause of the whole crawl holds over a restart, and orders to hosts are taken meanwhile.
func TestPauseOfTheCrawl(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 100), nil))
		o := testOptions(t, web)
		r := start(t, o, web, web.URL("a.test", "/"))
		r.until("the first pages", func() bool { return r.pages("a.test") > 3 })
		must.Do(t, r.Pause(t.Context()))
		r.quiet("a.test")
		r.until("the status to say so", func() bool { return r.Status().State == "paused" })
		r.must("a.test", frontier.Command{Kind: frontier.CommandDelay, Delay: time.Millisecond})
		r.end()

		r = start(t, o, web)
		r.until("the status to say so", func() bool { return r.Status().State == "paused" })
		r.quiet("a.test")
		must.Do(t, r.Resume(t.Context()))
		if err := <-r.ended; err != nil { // it goes on to its end
			t.Fatal(err)
		}
		assert.Equal(t, r.pages("a.test"), 101, "pages were requested")
		assert.Is(t, r.Control(t.Context(), "a.test", frontier.Command{}), ErrNotRunning, "an order after the end")
	})
}

func TestControlOfAHostThatIsNotKnown(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 100), nil))
		o := testOptions(t, web)
		o.ExitWhenDone = false
		r := start(t, o, web, web.URL("a.test", "/"))
		defer r.end()
		r.until("a page", func() bool { return r.pages("a.test") > 0 })
		assert.Is(t, r.Control(t.Context(), "nobody.test", frontier.Command{}), inspect.ErrUnknown)
	})
}
