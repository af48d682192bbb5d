package crawl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/quota"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// mostOver is by how many requests the starts, which are in order, exceed a rate in any time at all.
func mostOver(starts []time.Time, perSecond float64) (most float64) {
	unused := math.Inf(-1) // the most requests that were allowed and not made up to one of the starts
	for i, at := range starts {
		allowed := perSecond * at.Sub(starts[0]).Seconds()
		unused = max(unused, allowed-float64(i))
		most = max(most, unused+float64(i+1)-allowed)
	}
	return most
}

// startsOf are those of the requests that servers saw, in order.
func startsOf(log testweb.Log) (all []time.Time) {
	for _, q := range log {
		all = append(all, q.Start)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// newMaxRate returns a limit that nobody shares.
func newMaxRate(perSecond float64) *quota.Engine {
	return quota.NewProcess(quota.Limits{Workers: 1, MaxRate: perSecond}, nil, time.Now).Add()
}

// TestMaxRateIsKept: in any time at all there are no more requests than the rate allows for it and a
// burst, no request that it allows waits, and each wait is one look at the limiter or two.
func TestMaxRateIsKept(t *testing.T) {
	t.Parallel()
	for _, perSecond := range []float64{0.001, 0.3, 1, 3, 7, 10, 33.3, 100, 999, 100_000} {
		m, began := newMaxRate(perSecond), time.Now()
		burst := max(math.Floor(perSecond/10), 1)
		lasts := time.Duration(600 / perSecond * float64(time.Second))
		now, looks := began, 0
		var given []time.Time
		for now.Sub(began) <= lasts {
			looks++
			if ok, next := m.AdmitsBeyond(0, now); ok {
				m.Took(&frontier.Lease{}, now)
				given = append(given, now)
			} else if now = next; len(given)%50 == 49 {
				now = now.Add(lasts / 100) // the crawl has nothing to do for a while
			}
		}
		assert.AtMost(t, mostOver(given, perSecond), burst+1e-6, perSecond,
			"a second requests more than in that time, the burst is", burst)
		assert.AtLeast(t, float64(len(given)), 600*0.8, perSecond, "a second", len(given), "requests at least")
		assert.AtMost(t, looks, 3*len(given)+3, perSecond, "a second looks for", len(given), "requests")
	}
}

// TestMaxRate: what all servers see of a crawl, robots.txt files and pages, keeps to the rate, uses
// all of it, and leaves the delays of the hosts as they are.
func TestMaxRate(t *testing.T) {
	t.Parallel()
	const hosts, pages = 20, 4
	for _, perSecond := range []float64{0.5, 4, 50} {
		t.Run(fmt.Sprint(perSecond), func(t *testing.T) {
			t.Parallel()
			virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
				var sites []testweb.Site
				for i := range hosts {
					sites = append(sites, site(fmt.Sprintf("h%d.test", i), "", paths("/", pages), nil))
				}
				web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
				o := testOptions(t, web)
				o.MaxRate, o.Frontier.Politeness.Delay = perSecond, 100*time.Millisecond
				o.GiveUpAfter = time.Hour
				var seeds []string
				for _, s := range sites {
					seeds = append(seeds, web.URL(s.Host, "/"))
				}
				time.Sleep(time.Millisecond) // the record of the web knows no request of its first instant
				sum := crawl(t, o, seeds...)
				all, burst := startsOf(web.Requests()), max(perSecond/10, 1)
				assert.Equal(t, len(all), hosts*(pages+2), "requests")
				assert.AtMost(t, mostOver(all, perSecond), burst+1e-6, "requests more than in that time, the burst is",
					burst)
				took, most := all[len(all)-1].Sub(all[0]).Seconds(), float64(len(all))/perSecond+2
				assert.AtMost(t, took, most, len(all), "requests took s at most")
				if l := sum.Status.Limits; l.MaxRate != perSecond || l.RateWait < took/2 || l.RateWait > took+2 {
					t.Errorf("the status says %+v of %g s", l, took)
				}
				checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
			})
		})
	}
}

// TestHeavyMaxRateIsFair: where requests are scarce and workers are not, hosts get them in the order in
// which they are due, whether they are quick, slow or new.
func TestHeavyMaxRateIsFair(t *testing.T) {
	t.Parallel()
	const each, lasts = 10, 10 * time.Minute
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		var sites []testweb.Site
		var seeds []string
		for i := range each {
			sites = append(sites, endlessSite(fmt.Sprintf("quick%d.test", i), 10*time.Millisecond),
				endlessSite(fmt.Sprintf("slow%d.test", i), 8*time.Second))
		}
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
		for _, s := range sites {
			seeds = append(seeds, web.URL(s.Host, "/"))
		}
		o := testOptions(t, web)
		o.MaxRate, o.Frontier.Politeness.Delay = 1, time.Second
		must.Get(crawlFor(t, o, lasts, seeds...))(t)
		want := int(lasts.Seconds() * o.MaxRate / (2 * each))
		for _, s := range sites {
			// requests of 8 s are part of a turn
			n := len(web.Requests().Host(s.Host))
			assert.True(t, n >= want*3/4 && n <= want*5/4, "%s: %d requests, want %d", s.Host, n, want)
		}
	})
}

// TestChangeOfMaxRate: another rate counts at once, and changes bring no requests of their own.
func TestChangeOfMaxRate(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		var sites []testweb.Site
		var seeds []string
		for i := range 20 {
			sites = append(sites, endlessSite(fmt.Sprintf("h%d.test", i), 0))
		}
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
		for _, s := range sites {
			seeds = append(seeds, web.URL(s.Host, "/"))
		}
		o := testOptions(t, web)
		o.MaxRate, o.Frontier.Politeness.Delay = 0.01, time.Second
		whileCrawling(t, o, seeds, func(e *Engine) {
			l, at := o.Live(), time.Now()
			for _, x := range []struct{ perSecond, want float64 }{
				{0.01, 0}, {2, 20}, {5, 50}, {0, 200}, {1, 10}, {1, 10}, {0.1, 1},
			} {
				l.MaxRate = x.perSecond
				must.Do(t, e.Change(t.Context(), l))
				time.Sleep(time.Microsecond) // requests of this very instant were given out before the change
				from := len(web.Requests())
				at = at.Add(10 * time.Second)
				time.Sleep(time.Until(at))
				all := startsOf(web.Requests())
				n := float64(len(all) - from)
				assert.True(t, !(n < x.want*0.9-1) && !(n > x.want*1.1+1),
					"%g a second: %g requests in ten seconds, want %g", x.perSecond, n, x.want)
				if over := mostOver(all[from:], x.perSecond); x.perSecond > 0 && over > 1+1e-6 {
					t.Errorf("%g a second: %g requests more than in that time", x.perSecond, over)
				}
			}
			before := len(web.Requests())
			for i := range 20 {
				l.MaxRate = 0.01 + float64(i%2)/100
				must.Do(t, e.Change(t.Context(), l))
				time.Sleep(time.Millisecond)
			}
			assert.AtMost(t, len(web.Requests())-before, 0, "requests for 20 changes")
			l.MaxRate = -1
			err := e.Change(t.Context(), l)
			assert.True(t, err != nil && strings.Contains(err.Error(), "MaxRate is -1"), "a rate below 0: %v", err)
		})
	})
}

// whileCrawling does something while a crawl goes on, in virtual time, and stops it.
func whileCrawling(t *testing.T, o Options, seeds []string, do func(*Engine)) {
	t.Helper()
	e := must.Get(Open(o, testLog(t)))(t)
	list := seedList(t, seeds...)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := e.Run(ctx, list)
		ended <- errors.Join(err, e.Close())
	}()
	time.Sleep(time.Millisecond) // of virtual time: until it waits for something
	do(e)
	stop()
	assert.NoError(t, <-ended)
}

// TestBandwidthOfCrawl: limits of the crawl and of hosts hold for what a crawl receives, can
// change, and count neither as failures of a host nor for its delay.
func TestBandwidthOfCrawl(t *testing.T) {
	t.Parallel()
	const size, pages = 100 << 10, 10
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		large := testweb.Content("text/plain", make([]byte, size))
		routes := testweb.Routes{}
		for _, path := range paths("/", pages) {
			routes[path] = large
		}
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
			site("a.test", "", paths("/", pages), routes), site("b.test", "", paths("/", pages), routes),
		}})
		o := testOptions(t, web)
		o.GiveUpAfter = time.Hour
		o.Fetch.MinRate = 10 << 10
		o.Frontier.Politeness.AdaptiveFactor = 10
		p := o.Frontier.Politeness
		p.Bandwidth = 2 << 10 // a page takes longer than any timeout
		o.Frontier.Overrides = []frontier.Override{{Hosts: []string{"a.test"}, Politeness: p}}
		o.Bandwidth = 50 << 10
		begin := time.Now()
		sum := crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		last := map[string]time.Duration{}
		for _, q := range web.Requests() {
			last[q.Host] = max(last[q.Host], q.End.Sub(begin))
		}
		least, most := (pages*48-64)*time.Second, pages*52*time.Second
		assert.True(t, last["a.test"] >= least && last["a.test"] <= most, "a.test was done after %v, want %v to %v",
			last["a.test"], least, most)
		if least, most := 18*time.Second, 24*time.Second; last["b.test"] < least || last["b.test"] > most {
			t.Errorf("b.test was done after %v, want %v to %v", last["b.test"], least, most)
		}
		assert.True(t, sum.Status.Run.Errors == 0 && sum.Status.Run.Pages == 2*(pages+1), "%+v", sum.Status.Run)
		l := sum.Status.Limits
		assert.True(t, l.Bandwidth == o.Bandwidth && l.HostBandwidth == 0 && l.Received >= 2*pages*size &&
			!(l.BandwidthWait < 400), "the status says %+v", l)
	})
}

// TestChangeOfBandwidth: a limit that changes counts for pages that are being received.
func TestChangeOfBandwidth(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t,
			testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", []string{"/large"},
				testweb.Routes{"/large": testweb.Content("text/plain", make([]byte, 1<<20))})}})
		o := testOptions(t, web)
		o.ExitWhenDone = false
		o.Frontier.Politeness.Bandwidth = 1 << 10
		whileCrawling(t, o, []string{web.URL("a.test", "/")}, func(e *Engine) {
			time.Sleep(100 * time.Second)
			before := e.Status().Limits.Received
			assert.True(t, before >= 90<<10 && before <= 110<<10, "%d bytes after 100 s", before)
			l := o.Live()
			l.Politeness.Bandwidth, l.Bandwidth = 0, 10<<10
			must.Do(t, e.Change(t.Context(), l))
			time.Sleep(30 * time.Second)
			after := e.Status().Limits
			n := after.Received - before
			assert.True(t, n >= 290<<10 && n <= 310<<10, "%d bytes in 30 s at 10 KiB/s", n)
			assert.True(t, after.HostBandwidth == 0 && after.Bandwidth == 10<<10, "the status says %+v", after)
			if err := e.Change(t.Context(), o.With(l).Live()); err != nil { // the same again
				t.Fatal(err)
			}
			l.Bandwidth = 0
			must.Do(t, e.Change(t.Context(), l))
			time.Sleep(2 * time.Second)
			assert.Equal(t, len(outputLines(t, o.Archive.Dir)[web.URL("a.test", "/large")]), 1,
				"the page lines of output")
		})
	})
}
