package crawl

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// smallServer is a server with workers that each take a time for a response.
func smallServer(workers int, takes time.Duration, h http.Handler) http.Handler {
	free := make(chan struct{}, workers)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		free <- struct{}{}
		time.Sleep(takes)
		<-free
		h.ServeHTTP(w, r)
	})
}

// busiest is the most requests that began in a window of a log.
func busiest(log testweb.Log, window time.Duration) (most int) {
	first := 0
	for i, q := range log {
		for q.Start.Sub(log[first].Start) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// TestHeavyAddressBudget: 200 hosts on one small server get together what it has shown that it can serve, at
// first 5 requests a second, after a kill too.
func TestHeavyAddressBudget(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: 5 * time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		const hosts, takes = 200, 40 * time.Millisecond
		var sites []testweb.Site
		var names []string
		for i := range hosts {
			s := site(fmt.Sprintf("h%d.test", i), "", paths("/", 6), nil)
			s.Group = "small"
			sites, names = append(sites, s), append(names, s.Host)
		}
		all := make(map[string]http.Handler)
		for _, s := range sites {
			all[s.Host] = s.Handler
		}
		server := smallServer(1, takes, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			all[onlyHost(r)].ServeHTTP(w, r)
		}))
		for i := range sites {
			sites[i].Handler = server
		}
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
		o := testOptions(t, web)
		o.Workers, o.Frontier.Politeness.Delay, o.Frontier.Politeness.IPRate = 64, time.Second, 5
		for run := range 2 {
			begun := len(web.Requests())
			began := time.Now()
			must.Get(crawlFor(t, o, 20*time.Second, seedsOf(web, names)...))(t)
			log := web.Requests()[begun:]
			n := len(log.Filter(func(q testweb.Request) bool { return q.Start.Sub(began) < time.Second }))
			assert.True(t, n != 0 && n <= 5, "run %d: %d requests in the first second, want 5 at most", run, n)
		}
		began, before := time.Now(), len(web.Requests())
		crawl(t, o, seedsOf(web, names)...)
		log := web.Requests()
		assert.Equal(t, len(log.Pages()), hosts*7, "pages")
		rate := float64(len(log)-before) / time.Since(began).Seconds()
		if used := rate * takes.Seconds(); used > 0.55 || used < 0.3 {
			t.Errorf("%.2f of the server's time", used)
		}
		// With its delay of a second each, 200 hosts would get 25 requests a second, all that it can serve.
		assert.AtMost(t, busiest(log, 10*time.Second), 160, "requests in 10 seconds, of 250 that it can serve")
		assert.AtMost(t, log.MaxInFlight(), 2, "requests at a time")
	})
}

// TestHeavyAddressBudgetAfterKill: after kill -9 an address has the budget of one that nothing is known of, over
// all its hosts, however much it had before. In real time: a process is killed.
func TestHeavyAddressBudgetAfterKill(t *testing.T) {
	t.Parallel()
	const hosts, first = 200, 100 * time.Millisecond
	var sites []testweb.Site
	for i := range hosts {
		s := site(fmt.Sprintf("h%d.test", i), "", paths("/", 2), nil)
		s.Group = "small"
		sites = append(sites, s)
	}
	web := startWeb(t, sites...)
	dir, _ := prepareChild(t, childConfig{
		Resolver: web.ResolverAddr(), Delay: time.Millisecond, Seeds: seedsOf(web, web.Sites()), IPRate: 10,
		Formats: []string{archive.FormatNone}, Compress: archive.CompressNone, Workers: 32,
	})
	const window = 8 // responses that it takes to make the budget larger
	for range 2 {
		before := len(web.Requests())
		child, done := startChild(t, dir)
		testkit.Until(t, "the first requests", func() bool { return len(web.Requests()) >= before+5*window })
		must.Do(t, child.Process.Kill())
		<-done
		answered(t, web)
		log := web.Requests()
		for _, g := range log[max(before-1, 0) : before+window].ShortGaps(first) {
			t.Errorf("%v between %s%s and %s%s", g.Length, g.Before.Host, g.Before.Path, g.After.Host, g.After.Path)
		}
		assert.AtMost(t, log[before:].MaxInFlight(), 4, "requests at a time")
	}
}

// onlyHost is the name that a request is for.
func onlyHost(r *http.Request) string {
	name := r.Host
	for i := range name {
		if name[i] == ':' {
			return name[:i]
		}
	}
	return name
}

// TestHeavyAddressBudgetCost: what the budget costs a crawl of 250 hosts, over 250 addresses nothing.
func TestHeavyAddressBudgetCost(t *testing.T) {
	t.Parallel()
	addressBudgetCost(t, 250)
}

// addressBudgetCost crawls hosts over a few addresses, and over one each, with and without a budget.
func addressBudgetCost(t *testing.T, hosts int) {
	for _, c := range []struct {
		addresses int
		most      float64 // of the time without a budget
	}{{hosts / 62, 1.6}, {hosts, 1.05}} {
		var took [2]time.Duration
		for i, rate := range []float64{0, 5} {
			virtually(t, memnet.Options{Latency: 20 * time.Millisecond}, func(t *testing.T, network *memnet.Network) {
				var sites []testweb.Site
				var names []string
				for i := range hosts {
					s := site(fmt.Sprintf("h%d.test", i), "", paths("/", 9), nil)
					s.Group = fmt.Sprint(i % c.addresses)
					s.Handler = testweb.Slow(50*time.Millisecond, s.Handler)
					sites, names = append(sites, s), append(names, s.Host)
				}
				web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites, CountOnly: true})
				o := testOptions(t, web)
				o.Workers, o.Frontier.Politeness.Delay, o.Frontier.Politeness.IPRate = hosts/4, time.Second, rate
				began := time.Now()
				crawl(t, o, seedsOf(web, names)...)
				took[i] = time.Since(began)
			})
		}
		t.Logf("%d hosts of 11 requests over %d addresses: %v with a budget, %v without", hosts, c.addresses,
			took[1].Round(100*time.Millisecond), took[0].Round(100*time.Millisecond))
		if float64(took[1]) > c.most*float64(took[0]) {
			t.Errorf("%d addresses: %v with a budget, %v without", c.addresses, took[1], took[0])
		}
	}
}
