package crawl

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// chaos is a crawl whose process is killed at random moments. Its hosts have but a short delay to
// keep; cmd/amble has one that kills the real program, with hosts that request more.
type chaos struct {
	hosts, pages int
	delay        time.Duration // as configured
	kills        int
	life         time.Duration // at most, of a process that is killed
}

// TestHeavyKillInHaste is the short form of TestSoakKill. It kills a crawler that has but a short delay
// to keep, so that commits, output and discoveries are under way at every moment. In real time:
// processes are killed.
func TestHeavyKillInHaste(t *testing.T) {
	t.Parallel()
	chaos{hosts: 3, pages: 120, delay: 5 * time.Millisecond, kills: 4, life: 400 * time.Millisecond}.run(t)
}

// TestKillBeforeRules: a host whose robots.txt was requested by a process that was killed is left
// alone for ten seconds, because its robots.txt may demand as much. In real time: a process is
// killed.
func TestKillBeforeRules(t *testing.T) {
	t.Parallel()
	requested := make(chan struct{}, 10)
	routes := testweb.Routes{"/robots.txt": signal(requested, testweb.Slow(time.Hour, testweb.Robots("")))}
	web := startWeb(t, site("a.test", "", paths("/", 2), routes))
	dir, o := newChild(t, web, 20*time.Millisecond)
	child, done := startChild(t, dir)
	<-requested
	must.Do(t, child.Process.Kill())
	<-done
	killed := time.Now()
	web.SetHandler("a.test", site("a.test", "User-agent: *\nCrawl-delay: 1\n", paths("/", 2), nil).Handler)
	_, done = startChild(t, dir)
	must.Do(t, <-done)
	log := web.Requests()
	checkPolite(t, log[1:], time.Second)
	gap := log[1].Start.Sub(killed)
	assert.True(t, gap >= 10*time.Second, "%v after the kill the host got a request for %s", gap, log[1].Path)
	checkOutput(t, o)
}

// remains is what a killed process left.
type remains struct {
	at    time.Time
	final map[string]bool // URLs in a final state
	open  map[string]int  // by host: requests in the ledger that no commit knows of
}

// run crawls and kills, and then holds what the servers saw against what a polite
// and lossless crawler does.
func (c chaos) run(t *testing.T) {
	web := startWeb(t, c.sites()...)
	dir, o := newChild(t, web, c.delay)
	var killed []remains
	for over := false; !over; {
		child, done := startChild(t, dir)
		life := patience
		if len(killed) < c.kills {
			life = rand.N(c.life)
		}
		for served := web.Served(); ; {
			select {
			case err := <-done:
				over = true
				must.True(t, err == nil, "the crawler failed: %v", err)
			case <-time.After(life):
				if n := web.Served(); len(killed) == c.kills && n > served { // a slow machine is no fault
					served = n
					continue
				}
				must.Do(t, child.Process.Kill())
				<-done
				if len(killed) == c.kills {
					t.Fatalf("the crawl does not end; outcomes: %v", stored(t, o.DataDir))
				}
				answered(t, web)
				killed = append(killed, left(t, o))
			}
			break
		}
	}
	log := web.Requests()
	checkPolite(t, log, c.delay)
	c.checkPages(t, log)
	var before time.Time
	for i, r := range killed {
		checkRepeats(t, web, log, i, before, r)
		before = r.at
	}
	checkOutput(t, o)
	for u, outcome := range stored(t, o.DataDir) {
		assert.Not(t, outcome.Reason, storage.ReasonCrash, u, "is blamed for kills that came by chance")
	}
	t.Logf("%d kills, %d requests, %d pages more than once", len(killed), len(log), len(log.Repeats()))
}

// sites are hosts whose pages link to the pages behind them, so that there is
// something to discover until the end.
func (c chaos) sites() (sites []testweb.Site) {
	const rules = "User-agent: *\nDisallow: /no/\n"
	for i := range c.hosts {
		pages := append(paths("/p", c.pages-1), paths("/no/", 3)...)
		routes := make(testweb.Routes)
		for j, p := range pages {
			routes[p] = testweb.Page(p, pages[j:]...)
		}
		routes["/"] = testweb.Page("root", pages[:2]...)
		sites = append(sites, site(fmt.Sprintf("h%d.test", i), rules, nil, routes))
	}
	return sites
}

// checkPages: every page at least once, nothing that is disallowed.
func (c chaos) checkPages(t *testing.T, log testweb.Log) {
	t.Helper()
	count := log.Pages().CountByPath()
	for i := range c.hosts {
		for _, p := range append(paths("/p", c.pages-1), "/") {
			assert.Not(t, count[fmt.Sprintf("h%d.test%s", i, p)], 0, "was never requested")
		}
	}
	for key := range count {
		assert.True(t, !strings.Contains(key, "/no/"), "%s is disallowed and was requested", key)
	}
}

// checkRepeats: what was committed before a kill is not requested after it; and
// what its process requested and did not commit stands in the ledger.
func checkRepeats(t *testing.T, web *testweb.Web, log testweb.Log, kill int, before time.Time, r remains) {
	t.Helper()
	uncommitted := make(map[string]map[string]bool)
	for _, q := range log.Pages() {
		final := r.final[web.URL(q.Host, q.Path)]
		switch {
		case q.Start.After(r.at) && final:
			t.Errorf("kill %d: %s%s was committed before it and requested after it", kill, q.Host, q.Path)
		case q.Start.After(before) && q.Start.Before(r.at) && !final:
			if uncommitted[q.Host] == nil {
				uncommitted[q.Host] = make(map[string]bool)
			}
			uncommitted[q.Host][q.Path] = true
		}
	}
	for host, pages := range uncommitted {
		assert.AtMost(t, len(pages), r.open[host], "kill", kill, host, "was requested", pages,
			"without a commit; the ledger such requests")
	}
}

// left reads what a killed process left.
func left(t *testing.T, o Options) remains {
	t.Helper()
	r := remains{at: time.Now(), final: make(map[string]bool), open: make(map[string]int)}
	if _, err := os.Stat(filepath.Join(o.DataDir, starts.FileName)); err != nil {
		return r // killed before it began
	}
	for u, outcome := range stored(t, o.DataDir) {
		if outcome.State != storage.Queued && outcome.State != storage.Retrying {
			r.final[u] = true
		}
	}
	s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	must.Get(starts.Read(o.DataDir, committedOffset(t, s), boot.ID(),
		func(_ uint64, start starts.Start) { r.open[start.Host]++ }))(t)
	return r
}
