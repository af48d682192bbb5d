package crawl

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// logged reads the request log of a data directory.
func logged(t testing.TB, dir string) (all []requestlog.Request) {
	t.Helper()
	s, err := requestlog.Read(filepath.Join(dir, requestlog.DirName), requestlog.Query{},
		func(r *requestlog.Request) error {
			all = append(all, *r)
			return nil
		})
	must.True(t, err == nil && s.Lost <= 0 && len(s.Damaged) == 0, "%+v, %v", s, err)
	return all
}

// checkLogged holds the request log against the record of the web: the same requests, in number and
// status, and none shorter or longer than the server saw it.
func checkLogged(t testing.TB, dir string, web testweb.Log) {
	t.Helper()
	count := make(map[string]int)
	for _, q := range web {
		count[fmt.Sprintf("%s%s %d", q.Host, q.Path, q.Status)]++
	}
	for _, r := range logged(t, dir) {
		count[fmt.Sprintf("%s%s %d", r.URL.Host(), r.URL.RequestURI(), r.Status)]--
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return n == 0 })
	assert.AtMost(t, len(count), 0, "requests that the web has more often (less often: negative) than the log", count)
}

// TestRequestLog: every request of a crawl is in the log, with the delay in force and why, and with
// the rules that allowed it.
func TestRequestLog(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const rules = "User-agent: *\nDisallow: /no\nAllow: /\nCrawl-delay: 0.03\n"
		web := serve(site("a.test", rules, []string{"/aa", "/ab", "/no"}, testweb.Routes{
			"/aa": testweb.Flaky(1, testweb.RetryAfter(503, "1"), testweb.Page("aa")),
			"/ab": testweb.Redirect(302, "http://outside.test/"),
		}),
			testweb.Site{Host: "c.test",
				Handler: testweb.Routes{"/robots.txt": testweb.Status(404), "/": testweb.Page("c")}},
		)
		o := testOptions(t, web)
		o.GiveUpAfter = 10 * time.Second
		crawl(t, o, web.URL("a.test", "/"), web.URL("c.test", "/"))
		checkLogged(t, o.DataDir, web.Requests())
		seen := map[string]int{}
		for _, r := range logged(t, o.DataDir) {
			key := r.URL.Host() + r.URL.RequestURI()
			seen[key]++
			assert.True(t, !r.Again && r.Sent && r.Failure == 0 && r.Bytes != 0 && !r.Start.After(r.End) &&
				!r.Decided.After(r.Start) && r.Process.Agent == "amble-test" && r.Address == web.Address(r.URL.Host()),
				"%+v", r)
			wantVersion, wantLine := robots.VersionOf([]byte(rules)), 3
			if r.URL.Host() == "c.test" {
				wantVersion, wantLine = robots.Version{}, 0
			}
			must.True(t, r.Policy != nil && r.Policy.Version == wantVersion, "%s: policy %+v, want version %s", key,
				r.Policy, wantVersion)
			if body, kept := r.Policy.Body(); kept && string(body) != rules || kept == wantVersion.IsZero() {
				t.Errorf("%s: its robots.txt is %q", key, body)
			}
			if r.Kind == requestlog.Robots {
				continue
			}
			assert.True(t, r.Allowed && r.Line == wantLine, "%s: allowed %t by line %d, want line %d", key, r.Allowed,
				r.Line, wantLine)
			delay, why := 30*time.Millisecond, politeness.ReasonCrawlDelay
			if r.URL.Host() == "c.test" {
				delay, why = 20*time.Millisecond, politeness.ReasonDelay
			}
			assert.True(t, key != "a.test/aa" || r.Status != 503 || r.RetryAfter == time.Second, "%s requested %v", key,
				r.RetryAfter)
			if r.DelayReason == politeness.ReasonErrors {
				delay, why = r.Delay, r.DelayReason
			}
			assert.True(t, r.Delay == delay && r.DelayReason == why, "%s: delay %v (%s), want %v (%s)", key, r.Delay,
				r.DelayReason, delay, why)
		}
		want := map[string]int{"a.test/robots.txt": 1, "a.test/": 1, "a.test/aa": 2, "a.test/ab": 1,
			"c.test/robots.txt": 1, "c.test/": 1}
		assert.True(t, maps.Equal(seen, want), "in the log: %v, want %v", seen, want)
	})
}

// TestRequestLogGaps: what the log says of the gaps of a host is what the server saw, but for what
// is on its way: a gap is never longer in the log.
func TestRequestLogGaps(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 12), nil))
		o := testOptions(t, web)
		crawl(t, o, web.URL("a.test", "/"))
		gaps := web.Requests().Gaps()
		all := logged(t, o.DataDir)
		must.True(t, len(gaps) == len(all)-1, "%d gaps at the server, %d requests in the log", len(gaps), len(all))
		for i, g := range gaps {
			d, exact := all[i+1].StartedAt().Sub(all[i].EndedAt())
			assert.True(t, exact && d <= g.Length && d >= 20*time.Millisecond,
				"before %s: %v (exact: %t), at the server %v", g.After.Path, d, exact, g.Length)
		}
	})
}

// logFirst is a start ledger that looks into the request log before it writes.
type logFirst struct {
	ledger
	look func()
}

func (l *logFirst) Flush() error {
	l.look()
	return l.ledger.Flush()
}

// TestRequestLogBeforeTheNext: what has ended is in the log before the start of another request is in the ledger, also
// without a delay between them: after a kill no request seems open that another one followed.
func TestRequestLogBeforeTheNext(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 12), nil))
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = 0
		e, err := Open(o, testLog(t))
		must.Do(t, err)
		begun := 0
		e.ledger = &logFirst{e.ledger, func() {
			if n := len(logged(t, o.DataDir)); n != begun { // one at a time
				t.Errorf("before request %d the log has %d", begun+1, n)
			}
			begun++
		}}
		_, err = e.Run(t.Context(), seedList(t, web.URL("a.test", "/")))
		must.Do(t, errors.Join(err, e.Close()))
		assert.Equal(t, begun, len(web.Requests()), "requests writes of the ledger")
	})
}

// TestRequestLogFailures: requests without an answer are in it too, with the kind of failure.
func TestRequestLogFailures(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", []string{"/cut"},
			testweb.Routes{"/cut": testweb.Cut("text/html", []byte("<p>half of it"))}))
		o := testOptions(t, web)
		o.Frontier.MaxAttempts = 1
		crawl(t, o, web.URL("a.test", "/"))
		all := logged(t, o.DataDir)
		last := all[len(all)-1]
		assert.True(t, last.URL.RequestURI() == "/cut" && last.Status == 0 && last.Failure != fetch.KindUnknown &&
			last.Sent && !last.End.IsZero(), "%+v", last)
	})
}

// TestRequestLogAfterKill: a request that was under way when its process was killed comes into the
// log without an end; when it is made again, it is marked, even if a process between them was
// killed too. What ended and was committed is neither. In real time: processes are killed.
func TestRequestLogAfterKill(t *testing.T) {
	t.Parallel()
	requested := make(chan struct{}, 10)
	slow := testweb.Slow(time.Hour, testweb.Page("slow"))
	const rules = "User-agent: *\nAllow: /slow\nCrawl-delay: 1\n"
	web := startWeb(t,
		site("a.test", rules, []string{"/first", "/slow"}, testweb.Routes{"/slow": signal(requested, slow)}))
	dir, o := newChild(t, web, 20*time.Millisecond)
	child, done := startChild(t, dir)
	before, now := uint64(0), uint64(0)
	testkit.Until(t, "/first is in the output", func() bool {
		before, now = now, lastCommit(t, o.DataDir)
		return len(outputLines(t, o.Archive.Dir)[web.URL("a.test", "/first")]) > 0
	})
	testkit.Until(t, "/first is committed", func() bool { return lastCommit(t, o.DataDir) > before })
	<-requested
	must.Do(t, child.Process.Kill())
	<-done
	before = lastCommit(t, o.DataDir)
	child, done = startChild(t, dir) // and the next one before its first request
	testkit.Until(t, "the request without an end is in the log", func() bool {
		return len(logged(t, o.DataDir)) >= 4 && lastCommit(t, o.DataDir) > before
	})
	must.Do(t, child.Process.Kill())
	<-done
	web.SetHandler("a.test", site("a.test", rules, []string{"/first", "/slow"}, nil).Handler)
	_, done = startChild(t, dir)
	must.Do(t, <-done)
	open, again := []string{}, []string{}
	for _, r := range logged(t, o.DataDir) {
		if r.End.IsZero() {
			open = append(open, r.URL.RequestURI())
			assert.True(t, r.Kind == requestlog.Page && r.Line == 2 && !r.Policy.Version.IsZero() &&
				r.Address == web.Address("a.test") && r.Allowed, "%+v", r)
		}
		if r.Again {
			again = append(again, r.URL.RequestURI())
		}
	}
	if want := []string{"/slow"}; !slices.Equal(open, want) || !slices.Equal(again, want) {
		t.Errorf("without an end: %v; made again: %v; want %v for both", open, again, want)
	}
}

// TestRatesCountEveryRequest: the counts of a run are those of the web: robots.txt files count, and
// so does what fails.
func TestRatesCountEveryRequest(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "User-agent: *\n", paths("/", 3),
			testweb.Routes{"/aa": testweb.Status(500), "/ab": testweb.Reset()}),
			testweb.Site{Host: "b.test", Handler: testweb.Routes{"/robots.txt": testweb.Status(503)}})
		o := testOptions(t, web)
		o.Frontier.MaxAttempts = 1
		o.GiveUpAfter = 20 * time.Second // two failures in a row slow a host down
		sum := crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		log := web.Requests()
		// The 500, the 503 and the resets: the one of a kept connection is made again.
		if got := sum.Status.Run; got.Requests != uint64(len(log)) || got.Errors != 2+uint64(len(log.Path("/ab"))) ||
			len(log.Path("/ab")) != 2 || got.Pages != 2 {
			t.Errorf("%+v; the web has seen %d requests: %v", got, len(log), log.CountByPath())
		}
		assert.Equal(t, sum.Status.Requests, uint64(len(log)), "the store has counted requests, the web", len(log))
	})
}
