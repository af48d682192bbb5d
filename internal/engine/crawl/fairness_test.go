package crawl

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/testing/zoo"
)

// endlessSite is a site of as many pages as anybody requests: each links to two more, and takes a
// while. People write them, so it is no maze.
func endlessSite(host string, takes time.Duration) testweb.Site {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		testweb.Page(zoo.Prose(host+r.URL.Path), fmt.Sprintf("/%d", 2*n+1), fmt.Sprintf("/%d", 2*n+2)).ServeHTTP(w, r)
	})
	return testweb.Site{Host: host, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			testweb.Robots("").ServeHTTP(w, r)
			return
		}
		testweb.Slow(takes, page).ServeHTTP(w, r)
	})}
}

// endlessSites are several of them.
func endlessSites(n int, takes time.Duration) (sites []testweb.Site) {
	for i := range n {
		sites = append(sites, endlessSite(fmt.Sprintf("good-%d.test", i), takes))
	}
	return sites
}

// company is a crawl of good hosts in the company of others. All of them are seeds, the good ones
// last.
type company struct {
	good         int           // hosts with endless pages
	takes, delay time.Duration // of each page, and between them
	workers      int
	tarpits      int
	animals      bool            // all of the zoo are there too
	network      *memnet.Network // nil: on the loopback, in real time
	lasts        time.Duration
}

// outing is what came of it.
type outing struct {
	began   time.Time
	log     testweb.Log // of the good hosts
	zoo     *zoo.Zoo
	tarpits []string // names in the zoo
	sum     Summary
}

// pages are those of good hosts that were requested by a time.
func (o *outing) pages(by time.Duration) int {
	return len(o.log.Pages().Filter(func(q testweb.Request) bool { return q.Start.Sub(o.began) < by }))
}

// crawl crawls for a while.
func (c company) crawl(t *testing.T) *outing {
	t.Helper()
	web := testweb.Serve(t,
		testweb.Config{Network: networkOf(c.network), Sites: endlessSites(c.good, c.takes)})
	z := newZoo(t, web)
	out := &outing{zoo: z}
	var err error
	out.tarpits, err = z.AddTarpits(c.tarpits, func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{127, 64, byte(i / 250), byte(1 + i%250)})
	})
	must.Do(t, err)
	names := out.tarpits
	if c.animals {
		names = append(names, z.Names()...)
	}
	var seeds []string
	for _, name := range names {
		seeds = append(seeds, z.URL(name))
	}
	for _, host := range web.Sites() {
		seeds = append(seeds, web.URL(host, "/"))
	}
	o := testOptions(t, web)
	o.Workers, o.GiveUpAfter, o.ShutdownGrace = c.workers, time.Hour, 0
	o.Frontier.Politeness = DefaultOptions().Frontier.Politeness
	o.Frontier.Politeness.Delay, o.Frontier.Politeness.PerIP = c.delay, 256 // animals share an address
	o.Frontier.RetryDelay, o.Frontier.Jitter = DefaultOptions().Frontier.RetryDelay, fixedJitter()
	o.Fetch.TLSConfig = &tls.Config{RootCAs: z.Roots()}
	o.Archive.Formats = []string{archive.FormatNone}
	out.began = time.Now()
	out.sum, err = crawlFor(t, o, c.lasts, seeds...)
	must.True(t, err == nil, "%v", err)
	out.log = web.Requests()
	return out
}

// virtualCompany crawls in virtual time.
func virtualCompany(t *testing.T, c company) (out *outing) {
	t.Helper()
	virtually(t, memnet.Options{Latency: 20 * time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		c.network = network
		out = c.crawl(t)
	})
	return out
}

// TestHeavyGoodHostsBesideTarpits: good hosts keep four fifths of the pages that they would have alone,
// whatever so many others do to keep the workers, though nobody knows in the beginning which they
// are; and none of the others is requested more often for that.
func TestHeavyGoodHostsBesideTarpits(t *testing.T) {
	t.Parallel()
	c := company{good: 5, takes: 200 * time.Millisecond, delay: time.Second, workers: 16, lasts: 2 * time.Minute}
	alone := virtualCompany(t, c)
	c.tarpits = 120
	beside := virtualCompany(t, c)
	if alone, beside := alone.pages(c.lasts), beside.pages(c.lasts); alone < 400 || beside < alone*8/10 {
		t.Errorf("%d pages of good hosts, %d where they are alone", beside, alone)
	}
	late := 30 * time.Second // all are known by then
	last := func(o *outing) int { return o.pages(c.lasts) - o.pages(c.lasts-late) }
	assert.AtLeast(t, last(beside), last(alone)*95/100, "pages in the last", late, last(alone), "where they are alone")
	checkPolite(t, beside.log, c.delay)
	assert.AtMost(t, beside.sum.Status.Pace.Violations, 0, "gaps were too short")
	assert.Not(t, beside.sum.Status.Errors["too_slow"], 0, "no response was too slow", beside.sum.Status.Errors)
	for _, name := range beside.tarpits {
		most := int64(6)
		if strings.Contains(name, "alternates") { // half of its answers are good ones
			most = 12
		}
		n := beside.zoo.Met(name)
		assert.True(t, n != 0 && n <= most, "%s was met %d times, want 1 to %d", name, n, most)
	}
}
