//go:build soak

package crawl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// tickingPage changes at random at a known rate, and knows since when its copy is out of date.
type tickingPage struct {
	lock    sync.Mutex
	random  *rand.Rand
	rate    float64 // changes a second
	next    time.Time
	version int
	served  int       // version that was served last
	at      time.Time // up to which fresh is counted
	fresh   time.Duration
	counted time.Duration
	from    time.Time // nothing before counts
}

// until brings the page forward to an instant; the lock is held.
func (p *tickingPage) until(now time.Time) {
	for p.next.Before(now) {
		p.count(p.next)
		p.version++
		p.next = p.next.Add(time.Duration(p.random.ExpFloat64() / p.rate * float64(time.Second)))
	}
	p.count(now)
}

func (p *tickingPage) count(to time.Time) {
	if from := p.at; to.After(p.from) {
		if from.Before(p.from) {
			from = p.from
		}
		p.counted += to.Sub(from)
		if p.version == p.served {
			p.fresh += to.Sub(from)
		}
	}
	p.at = to
}

func (p *tickingPage) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.until(time.Now())
	p.served = p.version
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "version %d", p.version)
}

// The sped-up web: a day of a page that changes every three weeks is about a second.
// internal/testing/simulate has the same set-up in virtual time.
const (
	spedHosts, spedPages = 4, 240
	spedBudget           = 16 * 24 * 60 * 60 // recrawls a day: 16 a second
	// a minute until the first recrawls, and some visits of each page until its rate is known
	spedWarmUp = 150 * time.Second
	spedLength = 390 * time.Second
)

// spedTolerance is how far the freshness that is reached may be from what is foretold. In virtual
// time, over 40 seeds, it is lower by 0.010 with a deviation of 0.008, because rates are estimates.
const spedTolerance = 0.010 + 3*0.008

// TestSoakFreshness crawls a real server whose pages change at known rates, a day of theirs in a
// second or so, and compares the freshness that the plan foretells with that which the server has
// measured.
func TestSoakFreshness(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			measured, foretold := spedUp(t, seed)
			assert.AtMost(t, math.Abs(measured-foretold), spedTolerance, "the copies are fresh for", measured,
				"of the time, foretold were", foretold)
		})
	}
}

// spedUp crawls the web of a seed.
func spedUp(t *testing.T, seed uint64) (measured, foretold float64) {
	random, start := rand.New(rand.NewPCG(seed, 2)), time.Now()
	var all []*tickingPage
	var sites []testweb.Site
	for host := range spedHosts {
		routes := testweb.Routes{"/robots.txt": testweb.Robots("")}
		var links []string
		for i := range spedPages / spedHosts {
			p := &tickingPage{
				random: rand.New(rand.NewPCG(seed, uint64(len(all)+3))), rate: math.Exp(random.NormFloat64()) / 20,
				next: start, at: start, from: start.Add(spedWarmUp), served: -1,
			}
			path := fmt.Sprintf("/%d", i)
			routes[path], links, all = p, append(links, path), append(all, p)
		}
		routes["/"] = testweb.Page("all", links...)
		sites = append(sites, testweb.Site{Host: fmt.Sprintf("h%d.test", host), Handler: routes})
	}
	web := startWeb(t, sites...)
	o := recrawling(t, web)
	o.Recrawl.Max, o.Recrawl.Budget = time.Minute, spedBudget
	o.Recrawl.Rules = []recrawl.Rule{{Pattern: regexp.MustCompile("^/$"), Policy: recrawl.Never, Min: time.Second,
		Max: time.Second}}
	must.Get(crawlFor(t, o, time.Until(start.Add(spedLength)), seedsOf(web, web.Sites())...))(t)
	for _, p := range all {
		p.lock.Lock()
		p.until(start.Add(spedLength))
		measured += p.fresh.Seconds() / p.counted.Seconds() / spedPages
		p.lock.Unlock()
	}
	e := must.Get(Open(o, testLog(t)))(t)
	defer e.Close()
	f := e.plan.Forecast(o.Recrawl.Budget)
	t.Logf("seed %d: %.3f measured by the server, with %.1f requests a second; %.3f foretold, with %.1f", seed,
		measured, float64(len(web.Requests()))/spedLength.Seconds(), f.Freshness, f.Visits/86400)
	return measured, f.Freshness
}
