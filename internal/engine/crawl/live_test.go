package crawl

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// change puts live options in force once the crawl runs.
func (r *running) change(l Live) {
	r.t.Helper()
	r.until("the change", func() bool {
		err := r.Change(r.t.Context(), l)
		must.True(r.t, err == nil || errors.Is(err, ErrNotRunning), "%v", err)
		return err == nil
	})
}

// gapsAfter are the gaps at a host, as the server saw them, that began after an instant.
func (r *running) gapsAfter(host string, at time.Time) (gaps []time.Duration) {
	var of []testweb.Request
	for _, q := range r.web.Requests() {
		if q.Host == host {
			of = append(of, q)
		}
	}
	slices.SortFunc(of, func(a, b testweb.Request) int { return a.Start.Compare(b.Start) })
	for i := 1; i < len(of); i++ {
		if of[i-1].End.After(at) && of[i-1].Done {
			gaps = append(gaps, of[i].Start.Sub(of[i-1].End))
		}
	}
	return gaps
}

// A delay that changes counts for the very next request, longer or shorter, and for an override's
// hosts alone.
func TestChangeOfTheDelay(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 500), nil), site("b.test", "", paths("/", 500), nil))
		o := testOptions(t, web)
		r := start(t, o, web, web.URL("a.test", "/"), web.URL("b.test", "/"))
		defer r.end()
		r.until("requests", func() bool { return r.pages("a.test") > 3 && r.pages("b.test") > 3 })

		slow := o.Live()
		slow.Politeness.Delay = 300 * time.Millisecond
		r.change(slow)
		changed := time.Now()
		r.until("slow requests", func() bool { return len(r.gapsAfter("a.test", changed)) >= 3 })
		for _, gap := range r.gapsAfter("a.test", changed) {
			assert.AtLeast(t, gap, slow.Politeness.Delay, "a gap of the delay")
		}

		one := o.Live()
		one.Overrides = []frontier.Override{{Hosts: []string{"*.test"}, Politeness: slow.Politeness},
			{Hosts: []string{"b.test"}, Politeness: o.Frontier.Politeness}}
		r.change(one)
		changed = time.Now()
		before := r.pages("b.test")
		r.until("fast requests to b.test", func() bool { return r.pages("b.test") > before+15 })
		gaps := r.gapsAfter("a.test", changed)
		for _, gap := range gaps {
			assert.AtLeast(t, gap, slow.Politeness.Delay, "a gap of at a.test, the delay of its override")
		}
		assert.AtMost(t, len(gaps), int(time.Since(changed)/slow.Politeness.Delay)+1,
			"requests to a.test in a time of")
		assert.True(t, r.View() != nil && r.live.Load().politeness("a.test").Delay == slow.Politeness.Delay,
			"what is in force is not what was set")
	})
}

// parallel is the most requests that were under way at a time, of those that began after an instant.
func (r *running) parallel(after time.Time) (most int) {
	all := r.web.Requests()
	for _, q := range all {
		n := 0
		for _, p := range all {
			if p.Start.After(after) && !p.Start.After(q.Start) && p.End.After(q.Start) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestChangeOfWorkers(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		var sites []testweb.Site
		var seeds []string
		for i := range 8 {
			s := site(fmt.Sprintf("h%d.test", i), "", paths("/", 200), nil)
			s.Handler = testweb.Slow(30*time.Millisecond, s.Handler)
			sites = append(sites, s)
		}
		web := serve(sites...)
		for _, s := range sites {
			seeds = append(seeds, web.URL(s.Host, "/"))
		}
		o := testOptions(t, web)
		o.Workers, o.Frontier.Politeness.Delay, o.Frontier.Politeness.PerIP = 1, time.Millisecond, 100
		r := start(t, o, web, seeds...)
		defer r.end()
		r.until("requests", func() bool { return len(web.Requests()) > 8 })
		n := r.parallel(time.Time{})
		must.True(t, n <= 1, "%d requests at a time by one worker", n)
		l := o.Live()
		for _, workers := range []int{6, 2, 5} {
			l.Workers = workers
			r.change(l)
			changed := time.Now()
			r.until("no more requests under way than workers", func() bool {
				s := r.Status()
				return s.At.After(changed) && s.InFlight <= workers
			})
			changed = time.Now()
			r.until("requests side by side", func() bool { return r.parallel(changed) > workers/2 })
			before := len(r.web.Requests())
			r.until("more of them", func() bool { return len(r.web.Requests()) > before+5*workers })
			n := r.parallel(changed)
			must.True(t, n <= workers, "%d requests at a time by %d workers", n, workers)
		}
	})
}

// URLs that are queued already are checked when their turn comes.
func TestChangeOfTheScope(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", append(paths("/in/", 30), paths("/out/", 200)...), nil))
		o := testOptions(t, web)
		r := start(t, o, web, web.URL("a.test", "/"))
		r.until("requests", func() bool { return r.pages("a.test") > 3 })
		l := o.Live()
		l.Exclude = []*regexp.Regexp{regexp.MustCompile("/out/")}
		r.change(l)
		must.Do(t, <-r.ended)
		excluded := 0
		for url, outcome := range stored(t, o.DataDir) {
			if outcome.State == storage.Excluded && outcome.Reason == storage.ReasonScope {
				excluded++
			}
			assert.True(t, !strings.Contains(url, "/in/") || outcome.State == storage.Fetched, "%s is %s", url,
				outcome.State)
		}
		assert.AtLeast(t, excluded, 150, "URLs are excluded")
	})
}

func TestChangesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 100), nil))
		o := testOptions(t, web)
		r := start(t, o, web, web.URL("a.test", "/"))
		defer r.end()
		r.until("requests", func() bool { return r.pages("a.test") > 1 })
		bad := o.Live()
		bad.Workers, bad.Politeness.Delay = -1, -1
		err := r.Change(t.Context(), bad)
		assert.True(t, errors.Is(err, politeness.ErrOption) && strings.Contains(err.Error(), "Workers"), "%v", err)
		assert.Equal(t, r.live.Load().Workers, o.Workers, "half of it took effect")
	})
}
