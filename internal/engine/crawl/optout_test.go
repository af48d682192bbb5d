package crawl

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/optouts"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

func optOut(t *testing.T, scope optout.Scope, value string) optout.Entry {
	t.Helper()
	return must.Get(optout.New(optout.Entry{Scope: scope, Value: value, At: time.Now(), Reason: "mail", By: "test"}))(t)
}

// excludedBy counts the URLs of a stopped crawl that an opt-out excluded, and those that wait.
func excludedBy(t *testing.T, dir, host string) (excluded, waiting int) {
	t.Helper()
	for text, o := range stored(t, dir) {
		switch {
		case parse(t, text).Host() != host:
		case o.State == storage.Excluded && o.Reason == storage.ReasonOptOut:
			excluded++
		case o.State == storage.Queued || o.State == storage.Retrying:
			waiting++
		}
	}
	return excluded, waiting
}

// TestOptOut opts a host out in the middle of a crawl, in each scope. Its server sees at most the
// request in flight, also after a restart and whatever an import says; the neighbour is crawled as
// before. When the opt-out is removed, the URLs are fetched.
func TestOptOut(t *testing.T) {
	for _, scope := range []optout.Scope{optout.ScopeHost, optout.ScopeDomain, optout.ScopeRange, optout.ScopePrefix} {
		t.Run(string(scope), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				web := serve(site("a.x.test", "", paths("/", 20), nil), site("b.test", "", paths("/", 20), nil))
				value := map[optout.Scope]string{
					optout.ScopeHost: "a.x.test", optout.ScopeDomain: "x.test",
					optout.ScopeRange: web.Address("a.x.test").String(), optout.ScopePrefix: web.URL("a.x.test", "/"),
				}[scope]
				o := testOptions(t, web)
				o.ExitWhenDone = false
				r := start(t, o, web, web.URL("a.x.test", "/"), web.URL("b.test", "/"))
				r.until("pages", func() bool { return r.pages("a.x.test") > 3 && r.pages("b.test") > 3 })
				e := optOut(t, scope, value)
				must.Do(t, r.AddOptOut(t.Context(), e))
				before := r.pages("a.x.test") + r.robots("a.x.test")
				added := []Addition{{URL: parse(t, web.URL("a.x.test", "/new"))}}
				sum, results, err := r.addWithResults(t.Context(), added)
				refused := scope != optout.ScopeRange // its address is not known when a URL is added
				assert.True(t, err == nil && (sum.OptedOut == 1) == refused &&
					(results[0] == InsertOptedOut) == refused, "an addition: %+v, %v, %v", sum, results, err)
				r.until("the neighbour's pages", func() bool { return r.pages("b.test") > 20 })
				r.until("exclusion", func() bool { return r.Status().URLs["queued"]+r.Status().URLs["retrying"] == 0 })
				r.end()
				o.ExitWhenDone = true
				crawl(t, o, web.URL("a.x.test", "/"), web.URL("b.test", "/"))
				assert.AtMost(t, r.pages("a.x.test")+r.robots("a.x.test"), before+1, "requests after the opt-out")
				excluded, waiting := excludedBy(t, o.DataDir, "a.x.test")
				assert.True(t, excluded >= 10 && waiting <= 0, "%d URLs are excluded, %d wait", excluded, waiting)
				removeOptOut(t, o, e)
				crawl(t, o, web.URL("a.x.test", "/"), web.URL("b.test", "/"))
				assert.AtLeast(t, r.pages("a.x.test"), 21, "pages were fetched when the opt-out was removed")
			})
		})
	}
}

// removeOptOut removes an opt-out from the database.
func removeOptOut(t *testing.T, o Options, e optout.Entry) {
	t.Helper()
	k := must.Get(OpenOptOuts(o))(t)
	assert.Is(t, k.RemoveOptOut(t.Context(), optout.ScopeHost, "other.test"), inspect.ErrUnknown,
		"one that is not there")
	must.Do(t, errors.Join(k.RemoveOptOut(t.Context(), e.Scope, e.Value), k.Close()))
}

// TestOptOutOfSettings has opt-outs from the start: not even the robots.txt is requested, nor that of a
// host that redirects its own there. One that ends brings the URLs back.
func TestOptOutOfSettings(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 3), nil), site("b.test", "", []string{"/p"}, testweb.Routes{
			"/robots.txt": testweb.Redirect(301, "http://a.test/robots.txt"),
		}))
		o := testOptions(t, web)
		e := optOut(t, optout.ScopeHost, "a.test")
		o.OptOuts = []optout.Entry{e}
		sum := crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		r := &running{t: t, web: web}
		if n := r.pages("a.test") + r.robots("a.test") + r.pages("b.test"); n > 0 {
			t.Errorf("%d requests: %v", n, web.Requests())
		}
		assert.Equal(t, sum.Status.OptOuts, 1, "opt-outs in force")
		_, known := stored(t, o.DataDir)[web.URL("a.test", "/")]
		assert.True(t, !known, "a seed that opted out was added")

		o.OptOuts, o.ExitWhenDone = nil, false
		o.Frontier.Politeness.Delay = 300 * time.Millisecond
		live := start(t, o, web, web.URL("a.test", "/"))
		live.until("all links", func() bool { // those found while the opt-out is in force would be left out
			known := 0
			for _, n := range live.Status().URLs {
				known += n
			}
			return known >= 5 // and the page of b.test
		})
		changed := o.Live()
		e.Until = time.Now().Add(1500 * time.Millisecond)
		changed.OptOuts = []optout.Entry{e}
		must.Do(t, live.Change(t.Context(), changed))
		live.until("the end of the opt-out", func() bool { return live.pages("a.test") == 4 })
		live.end()
	})
}

// TestOptOutThatEnds: links to what opted out until some time are kept, and fetched when it has ended,
// though the page that has them is not fetched again. Those to what opted out for good are not kept. No
// request reaches either before, robots.txt included.
func TestOptOutThatEnds(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: 50 * time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
			site("a.test", "", []string{"/p"}, nil), site("never.test", "", []string{"/p"}, nil),
			{Host: "b.test", Handler: testweb.Routes{"/robots.txt": testweb.Robots("")}},
		}})
		links := testweb.Page("links", web.URL("a.test", "/p"), web.URL("never.test", "/p"))
		web.SetHandler("b.test", testweb.Routes{"/robots.txt": testweb.Robots(""), "/": links})
		o := tdmOptions(t, web)
		o.Mode = frontier.ModeAny
		ends := optOut(t, optout.ScopeHost, "a.test")
		ends.Until = time.Now().Add(2 * time.Hour)
		o.OptOuts = []optout.Entry{ends, optOut(t, optout.ScopeDomain, "never.test")}
		crawl(t, o, web.URL("b.test", "/"))
		log := web.Requests()
		assert.AtMost(t, len(log.Host("a.test"))+len(log.Host("never.test")), 0, "requests to what opted out")
		outcomes := stored(t, o.DataDir)
		got := outcomes[web.URL("a.test", "/p")]
		assert.True(t, got.State == storage.Excluded && got.Reason == storage.ReasonOptOut,
			"a link to what opted out for a time is %+v", got)
		_, known := outcomes[web.URL("never.test", "/p")]
		assert.True(t, !known, "a link to what opted out for good is kept")
		time.Sleep(3 * time.Hour)
		crawl(t, o, web.URL("b.test", "/"))
		log = web.Requests()
		n, again := len(log.Host("a.test").Path("/p")), len(log.Host("b.test").Path("/"))
		assert.True(t, n == 1 && again == 1, "after its end %d requests for the link, and %d for its page", n, again)
	})
}

// TestOptOutMark has the bytes of an opt-out in the database on record.
func TestOptOutMark(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		entry       optout.Entry
		name, value string
	}{
		{optout.Entry{Scope: optout.ScopeHost, Value: "Example.org", At: at}, "optout/host example.org",
			`{"scope":"host","value":"example.org","at":"2026-11-20T12:00:00Z"}`},
		{optout.Entry{Scope: optout.ScopeDomain, Value: "example.org", At: at, Until: at.AddDate(0, 1, 0),
			Reason: "mail", By: "anna"},
			"optout/domain example.org",
			`{"scope":"domain","value":"example.org","reason":"mail","by":"anna","at":"2026-11-20T12:00:00Z","until":"2026-12-20T12:00:00Z"}`},
		{optout.Entry{Scope: optout.ScopeRange, Value: "192.0.2.0/24", At: at}, "optout/range 192.0.2.0/24",
			`{"scope":"range","value":"192.0.2.0/24","at":"2026-11-20T12:00:00Z"}`},
		{optout.Entry{Scope: optout.ScopePrefix, Value: "https://example.org/diary/", At: at},
			"optout/prefix https://example.org/diary/",
			`{"scope":"prefix","value":"https://example.org/diary/","at":"2026-11-20T12:00:00Z"}`},
	} {
		e := must.Get(optout.New(test.entry))(t)
		name, value := marks.OptOut(e.Scope, e.Value), string(optouts.Encode(e))
		assert.True(t, name == test.name && value == test.value, "%s: %s\nwant %s: %s", name, value, test.name,
			test.value)
		read, err := optouts.Commanded(markMap{test.name: []byte(test.value)})
		assert.True(t, err == nil && len(read) == 1 && read[test.name] == e, "%s is read as %+v, %v", test.value, read,
			err)
	}
	assert.Fails(optouts.Commanded(markMap{"optout/host a.test": []byte("{")}))(t, storage.ErrCorrupt,
		"a mark that cannot be read")
}

// markMap is a store with marks alone.
type markMap map[string][]byte

func (m markMap) Marks(string) (map[string][]byte, error) { return m, nil }

// TestOptOutSurvivesKill kills a crawler as soon as it says that an opt-out is recorded. The server
// of what opted out sees nothing more than what was in flight, while the next process crawls the
// neighbour. In real time: a process is killed.
func TestOptOutSurvivesKill(t *testing.T) {
	t.Parallel()
	web := startWeb(t, site("out.test", "", paths("/", 100), nil), site("good.test", "", paths("/", 100), nil))
	dir, o := prepareChild(t, childConfig{
		Resolver: web.ResolverAddr(), Delay: 5 * time.Millisecond, Seeds: seedsOf(web, web.Sites()),
		Formats: allFormats, Compress: archive.CompressNone, OptsOut: "out.test",
	})
	child, done := startChild(t, dir)
	tell := filepath.Join(dir, optOutFile)
	testkit.Until(t, "what has to come", func() bool { return len(web.Requests().Host("out.test").Pages()) >= 10 })
	must.Do(t, os.WriteFile(tell, nil, 0o644))
	testkit.Until(t, "what has to come", func() bool { return !exists(tell) || len(done) > 0 })
	err := child.Process.Kill()
	must.True(t, err == nil || len(done) != 0, "%v", err)
	<-done
	answered(t, web)
	before := len(web.Requests().Host("out.test"))
	_, done = startChild(t, dir)
	must.Do(t, <-done)
	assert.Equal(t, len(web.Requests().Host("out.test")), before, "requests after the kill")
	assert.AtLeast(t, len(web.Requests().Host("good.test").Pages()), 101, "pages of the neighbour")
	excluded, waiting := excludedBy(t, o.DataDir, "out.test")
	assert.True(t, excluded != 0 && waiting <= 0, "%d URLs are excluded, and %d wait", excluded, waiting)
}
