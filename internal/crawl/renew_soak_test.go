//go:build soak

package crawl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testweb"
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

// TestSoakFreshness crawls a real server whose pages change at known rates, a day of theirs in a second or so, and compares the freshness
// that the plan foretells with that which the server has measured.
func TestSoakFreshness(t *testing.T) {
	const pages, warmUp, length = 60, 80 * time.Second, 240 * time.Second
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Now()
	all := make([]*tickingPage, pages)
	routes := testweb.Routes{"/robots.txt": testweb.Robots("")}
	var links []string
	for i := range all {
		all[i] = &tickingPage{
			random: rand.New(rand.NewPCG(3, uint64(i))), rate: math.Exp(random.NormFloat64()) / 20, next: start, at: start, from: start.Add(warmUp), served: -1,
		}
		path := fmt.Sprintf("/%d", i)
		routes[path], links = all[i], append(links, path)
	}
	routes["/"] = testweb.Page("all", links...)
	web := startWeb(t, testweb.Site{Host: "a.test", Handler: routes})
	o := renewing(t, web)
	o.Renew.Max, o.Renew.Budget = time.Minute, 4*24*60*60
	if _, err := crawlFor(t, o, length, web.URL("a.test", "/")); err != nil {
		t.Fatal(err)
	}
	var measured float64
	for _, p := range all {
		p.lock.Lock()
		p.until(start.Add(length))
		measured += p.fresh.Seconds() / p.counted.Seconds() / pages
		p.lock.Unlock()
	}
	e, err := Open(o, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	foretold := e.plan.Forecast(o.Renew.Budget)
	t.Logf("measured by the server: %.3f, with %.1f requests a second; foretold: %.3f, with %.1f of the 4 of the budget",
		measured, float64(web.ServedBy("a.test"))/length.Seconds(), foretold.Freshness, foretold.Visits/86400)
	if math.Abs(measured-foretold.Freshness) > 0.06 {
		t.Error("the copies are not as fresh as foretold")
	}
}
