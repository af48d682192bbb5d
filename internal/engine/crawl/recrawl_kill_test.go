package crawl

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestHeavyKillKeepsTheSchedule is the short form of TestSoakKillRecrawls. In real time: processes are
// killed.
func TestHeavyKillKeepsTheSchedule(t *testing.T) {
	t.Parallel()
	killRecrawls(t, 6)
}

// killRecrawls kills a daemon that recrawls pages at random moments. What the next process finds on
// disk is the schedule that it keeps: a page is requested when it is due by that and no sooner, and
// a page that was not requested is due when it was.
func killRecrawls(t *testing.T, kills int) {
	const hosts, each = 3, 20
	web := startWeb(t, recrawledSites(hosts, each)...)
	o := recrawl.DefaultOptions()
	o.Min, o.Max, o.Budget = time.Second, 2*time.Second, 0
	hour := recrawl.Rule{Policy: recrawl.Fixed, Interval: time.Hour, Min: time.Hour, Max: time.Hour}
	hour.Pattern = regexp.MustCompile("^/calm")
	o.Rules = []recrawl.Rule{hour}
	dir, options := prepareChild(t, childConfig{
		Resolver: web.ResolverAddr(), Delay: 2 * time.Millisecond, Seeds: seedsOf(web, web.Sites()),
		Formats: []string{archive.FormatNone}, Compress: archive.CompressNone, Recrawl: &o,
	})
	before, recrawled, kept := map[string]storage.Outcome{}, 0, 0
	for kill := 0; kill < kills || recrawled < hosts*each || kept < hosts*each; kill++ {
		must.True(t, kill != kills+30, "after %d kills %d recrawls were made, and %d pages not due were left alone",
			kill, recrawled, kept)
		began, served := time.Now(), web.Served()
		child, done := startChild(t, dir)
		if kill%2 == 1 { // its life begins with its first request, however slow its start is
			testkit.Until(t, "the daemon makes a request", func() bool { return web.Served() > served })
		}
		select {
		case err := <-done:
			t.Fatalf("the daemon ended: %v", err)
		case <-time.After(time.Second/2 + rand.N(3*time.Second/2)):
		}
		must.Do(t, child.Process.Kill())
		<-done
		answered(t, web)
		first := firstRequests(web, began)
		after := stored(t, options.DataDir)
		for u, was := range before {
			requested, is := first[u], after[u]
			if was.State != storage.Fetched {
				continue
			}
			assert.True(t, requested.IsZero() || !requested.Before(was.Due),
				"kill %d: %s was due at %v and requested %v before that", kill, u, was.Due, was.Due.Sub(requested))
			switch {
			case !is.At.Equal(was.At):
				if recrawled++; requested.IsZero() || is.At.Before(was.Due) {
					t.Errorf("kill %d: %s was requested at %v; on disk is %+v after %+v", kill, u, requested, is, was)
				}
			case is.State == storage.Retrying && wasStarted(t, options.DataDir, u, was.Due): // suspected of two deaths
			case is != was:
				t.Errorf("kill %d: %s was not requested; on disk is %+v, was %+v", kill, u, is, was)
			case is.Due.After(began):
				kept++
			}
		}
		before = after
	}
	checkPlan(t, options, before)
	checkPolite(t, web.Requests(), 2*time.Millisecond)
	t.Logf("%d recrawls on disk before a kill, %d times a page was left alone over one", recrawled, kept)
}

// recrawledSites are hosts with pages that are recrawled all the time, and as many that are not
// recrawled within the test.
func recrawledSites(hosts, each int) (sites []testweb.Site) {
	for host := range hosts {
		sites = append(sites,
			site(fmt.Sprintf("h%d.test", host), "", append(paths("/busy", each), paths("/calm", each)...), nil))
	}
	return sites
}

// firstRequests is when each page was requested first since an instant, by URL.
func firstRequests(web *testweb.Web, since time.Time) map[string]time.Time {
	first := map[string]time.Time{}
	for _, q := range web.Requests().Pages() {
		u := web.URL(q.Host, q.Path)
		if q.Start.After(since) && (first[u].IsZero() || q.Start.Before(first[u])) {
			first[u] = q.Start
		}
	}
	return first
}

// wasStarted reports whether the request log has a request for a page since an instant. If the
// database has nothing of it, a kill came before its commit.
func wasStarted(t *testing.T, dir, url string, since time.Time) bool {
	t.Helper()
	return slices.ContainsFunc(logged(t, dir), func(r requestlog.Request) bool {
		return r.URL.String() == url && !r.Start.Before(since)
	})
}

// checkPlan: what the plan counts is what is on disk, after whatever end.
func checkPlan(t *testing.T, o Options, all map[string]storage.Outcome) {
	t.Helper()
	e := must.Get(Open(o, testLog(t)))(t)
	defer e.Close()
	planned := 0
	for u, outcome := range all {
		isPlanned := recrawl.History(outcome.History).Planned()
		if isPlanned {
			planned++
		}
		assert.True(t, outcome.State != storage.Fetched || isPlanned != outcome.Due.IsZero(),
			"%s: planned %t, due at %v", u, isPlanned, outcome.Due)
	}
	assert.Equal(t, e.plan.Pages(), planned, "pages are on the plan on disk have a recrawl to come")
}
