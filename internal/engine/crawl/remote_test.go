package crawl

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// remoteRun is a crawl that runs until it is stopped.
type remoteRun struct {
	*Engine
	t     testing.TB
	ended chan struct{} // closed at the end of the run
	err   error         // of the run
	stop  context.CancelFunc
}

// startRemote opens and runs a crawl.
func startRemote(t testing.TB, o Options, seeds ...string) *remoteRun {
	t.Helper()
	return startRemoteWith(t, o, func(*Engine) {}, seeds...)
}

// startRemoteWith is startRemote with something to do before the run.
func startRemoteWith(t testing.TB, o Options, prepare func(*Engine), seeds ...string) *remoteRun {
	t.Helper()
	e := must.Get(Open(o, testLog(t)))(t)
	prepare(e)
	ctx, stop := context.WithCancel(t.Context())
	r := &remoteRun{Engine: e, t: t, ended: make(chan struct{}), stop: stop}
	var list []Seed
	for _, s := range seeds {
		list = append(list, seed(t, s))
	}
	go func() {
		_, r.err = e.Run(ctx, list)
		close(r.ended)
	}()
	for e.lender.Load() == nil {
		select {
		case <-r.ended:
			return r
		case <-time.After(time.Millisecond):
		}
	}
	return r
}

// wait returns when the crawl is done.
func (r *remoteRun) wait() {
	r.t.Helper()
	<-r.ended
	assert.NoError(r.t, errors.Join(r.err, r.Close()))
	r.stop()
}

// end stops the crawl.
func (r *remoteRun) end() {
	r.t.Helper()
	r.stop()
	r.wait()
}

// lease takes leases, and waits for some.
func (r *remoteRun) lease(request remote.Request) []remote.Lease {
	r.t.Helper()
	for {
		if request.Wait == 0 {
			request.Wait = time.Hour
		}
		leases, err := r.Lease(r.t.Context(), request)
		if errors.Is(err, ErrNotRunning) { // it is starting
			time.Sleep(time.Millisecond)
			continue
		}
		must.Do(r.t, err)
		return leases
	}
}

// report reports one result and checks what becomes of it.
func (r *remoteRun) report(report remote.Report, want remote.Result) {
	r.t.Helper()
	results := must.Get(r.Report(r.t.Context(), []remote.Report{report}))(r.t)
	assert.Equal(r.t, results[0], want, "the report of", report.ID)
}

// testFetcher fetches what it leases from a web.
type testFetcher struct {
	name   string
	client *http.Client
	links  bool // it reports links and digests, not bodies
}

func newTestFetcher(name string, web *testweb.Web) *testFetcher {
	f := &testFetcher{name: name, client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DisableKeepAlives: true},
	}}
	if web.Virtual() {
		f.client.Transport = &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return web.Dial(ctx, network, address)
			}}
	}
	return f
}

// fetch makes the request of a lease.
func (f *testFetcher) fetch(ctx context.Context, l *remote.Lease) remote.Report {
	report, started := remote.Report{Fetcher: f.name, ID: l.ID}, time.Now()
	target := l.URL.String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		report.NotDone = true
		return report
	}
	request.Header = l.Header.Clone()
	request.Host = request.URL.Host
	if l.Address.IsValid() {
		request.URL.Host = net.JoinHostPort(l.Address.String(), request.URL.Port())
	}
	response, err := f.client.Do(request)
	if err != nil {
		report.Failure, report.Took = fetch.KindReset, time.Since(started)
		return report
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	report.Took = time.Since(started)
	if err != nil {
		report.Failure = fetch.KindIncompleteBody
		return report
	}
	report.Status, report.Header = response.StatusCode, response.Header
	if !f.links {
		report.Body, report.HasBody = body, true
		return report
	}
	report.Digest = digest.Of(body)
	doc, err := extract.HTML(body, response.Header, l.URL, []string{"amble"}, extract.DefaultOptions())
	if err == nil {
		for _, link := range doc.Links {
			report.Links = append(report.Links, link.URL.String())
		}
	}
	return report
}

// work leases, fetches and reports until the crawl ends.
func (f *testFetcher) work(r *remoteRun, request remote.Request) {
	request.Fetcher, request.Wait = f.name, time.Hour
	for r.t.Context().Err() == nil {
		leases, err := r.Lease(r.t.Context(), request)
		if errors.Is(err, ErrNotRunning) {
			select {
			case <-r.ended:
				return
			case <-time.After(time.Millisecond):
				continue
			}
		}
		if err != nil {
			r.t.Error(err)
			return
		}
		reports := make([]remote.Report, len(leases))
		var wg sync.WaitGroup
		for i := range leases {
			wg.Go(func() { reports[i] = f.fetch(r.t.Context(), &leases[i]) })
		}
		wg.Wait()
		results, err := r.Report(r.t.Context(), reports)
		assert.True(r.t, err == nil || errors.Is(err, ErrNotRunning), "%v", err)
		for i, result := range results {
			if result != remote.Accepted {
				r.t.Errorf("%s: %s", leases[i].URL, result)
			}
		}
	}
}

// TestRemoteFetchers: a crawl without workers of its own is done by fetchers, as politely and as
// completely as by workers, whether they report bodies or links.
func TestRemoteFetchers(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: 20 * time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
			site("a.test", "User-agent: *\nDisallow: /secret\n", append(paths("/", 20), "/secret/a"), nil),
			site("b.test", "User-agent: *\nCrawl-delay: 3\n", paths("/", 10), testweb.Routes{
				"/aa": testweb.Redirect(301, "/moved"), "/moved": testweb.Page("moved"), "/ab": testweb.Status(404)}),
			site("c.test", "", paths("/", 30), nil),
		}})
		o := testOptions(t, web)
		o.GiveUpAfter = time.Hour
		o.Workers = 0
		o.Frontier.Politeness.Delay = time.Second
		r := startRemote(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"), web.URL("c.test", "/"))
		var wg sync.WaitGroup
		for _, f := range []*testFetcher{newTestFetcher("bodies", web), newTestFetcher("links", web)} {
			f.links = f.name == "links"
			wg.Go(func() { f.work(r, remote.Request{N: 4, PerHost: 4}) })
		}
		r.wait()
		wg.Wait()
		log := web.Requests()
		checkPolite(t, log, time.Second)
		assert.Equal(t, len(log.Pages()), 21+12+31, "pages")
		assert.AtMost(t, len(log.Repeats()), 0, "requested more than once")
		for _, q := range log.Host("a.test").Path("/secret/a") {
			t.Errorf("%s%s was requested", q.Host, q.Path)
		}
		states := stored(t, o.DataDir)
		want := map[string]storage.State{"/secret/a": storage.Denied, "/ac": storage.Fetched}
		for path, state := range want {
			assert.Equal(t, states[web.URL("a.test", path)].State, state, "a.test", path)
		}
		for path, state := range map[string]storage.State{
			"/aa": storage.Redirected, "/moved": storage.Fetched, "/ab": storage.Failed,
		} {
			assert.Equal(t, states[web.URL("b.test", path)].State, state, "b.test", path)
		}
		checkOutput(t, o)
		checkAudit(t, o)
		checkFetchers(t, o, "bodies", "links", "")
	})
}

// TestLeaseRunsOut: a lease that nobody reports charges the host until its deadline, and its URL is
// leased again. Reports that come late, twice, or for somebody else's lease change nothing.
func TestLeaseRunsOut(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t,
			testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", paths("/", 1), nil)}})
		o := testOptions(t, web)
		o.Workers, o.ExitWhenDone = 0, false
		o.Frontier.Politeness.Delay = 5 * time.Second
		r := startRemote(t, o, web.URL("a.test", "/"))
		first := r.lease(remote.Request{Fetcher: "hangs", N: 3, Visibility: time.Minute})
		must.True(t, len(first) == 1, "%d leases, want 1", len(first))
		none, err := r.Lease(t.Context(), remote.Request{Fetcher: "b", N: 1, Wait: 59 * time.Second})
		must.True(t, len(none) == 0 && err == nil, "leased %v, %v while the host has a request in flight", none, err)
		second := r.lease(remote.Request{Fetcher: "b", N: 1})[0]
		gap := time.Since(first[0].Deadline)
		assert.True(t, second.URL == first[0].URL && gap >= 5*time.Second && gap <= 6*time.Second,
			"%s was leased %v after the deadline of the first lease", second.URL, gap)
		late := remote.Report{Fetcher: "hangs", ID: first[0].ID, Status: 200, HasBody: true}
		r.report(late, remote.Late)
		r.report(remote.Report{Fetcher: "hangs", ID: second.ID, Status: 200}, remote.Foreign)
		r.report(remote.Report{Fetcher: "b", ID: "guessed", Status: 200}, remote.Unknown)
		r.report(remote.Report{Fetcher: "b", ID: second.ID, Status: 42}, remote.Invalid)
		deadlines, err := r.Extend(t.Context(), "b", []remote.ID{second.ID, first[0].ID}, time.Hour)
		assert.True(t, err == nil && deadlines[1].IsZero() && time.Until(deadlines[0]) >= 59*time.Minute,
			"extended to %v, %v", deadlines, err)
		time.Sleep(30 * time.Minute)
		r.report(remote.Report{Fetcher: "b", ID: second.ID, NotDone: true}, remote.Accepted)
		r.report(remote.Report{Fetcher: "b", ID: second.ID, Status: 200}, remote.Late)
		third := r.lease(remote.Request{Fetcher: "b", N: 1, Wait: time.Second})
		must.True(t, len(third) == 1 && third[0].URL == second.URL,
			"leased %v, want the URL that was given back, at once", third)
		f := newTestFetcher("b", web)
		done := f.fetch(t.Context(), &third[0])
		r.report(done, remote.Accepted)
		r.report(done, remote.Late)
		fetchers, err := r.Fetchers(t.Context())
		assert.True(t, err == nil && len(fetchers) == 2 && fetchers[1].RanOut == 1 && fetchers[0].Reported == 1 &&
			fetchers[0].NotDone == 1, "fetchers: %+v, %v", fetchers, err)
		must.Do(t, r.CutOff(t.Context(), "b"))
		assert.Fails(r.Lease(t.Context(), remote.Request{Fetcher: "b", N: 1}))(t, remote.ErrCutOff,
			"a fetcher that is cut off")
		r.end()
	})
}

// TestLeaseSurvivesRestart: a lease of an earlier process is reported to the next one, and its host is
// not fetched from before that.
func TestLeaseSurvivesRestart(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]time.Duration{"in the ledger": 0, "with a mark": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
				web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
					site("a.test", "", paths("/", 3), nil), site("b.test", "", paths("/", 60), nil),
				}})
				o := testOptions(t, web)
				o.Workers, o.ExitWhenDone = 1, false
				o.Frontier.Politeness.Delay = time.Second
				r := startRemote(t, o, web.URL("a.test", "/"))
				r.lease(remote.Request{Fetcher: "x", N: 1, Visibility: time.Second}) // and runs out
				reported := r.lease(remote.Request{Fetcher: "x", N: 1, Visibility: time.Hour})[0]
				time.Sleep(out)
				r.end()
				f := newTestFetcher("x", web)
				r = startRemote(t, o, web.URL("b.test", "/"))
				time.Sleep(10 * time.Minute)
				if pages := web.Requests().Host("a.test").Pages(); len(pages) > 0 {
					t.Fatalf("%s was requested while a fetcher had the lease", pages[0].Path)
				}
				r.report(remote.Report{Fetcher: "y", ID: reported.ID, Status: 200}, remote.Foreign)
				r.report(f.fetch(t.Context(), &reported), remote.Accepted)
				time.Sleep(time.Minute)
				r.end()
				assert.Equal(t, len(web.Requests().Host("a.test").Pages()), 4, "pages of a.test")
				assert.AtMost(t, len(web.Requests().Repeats()), 0, "requested more than once")
				checkPolite(t, web.Requests(), time.Second)
				checkOutput(t, o)
				checkAudit(t, o)
				checkFetchers(t, o, "x", "")
			})
		})
	}
}

// TestLeaseEndSurvivesKill: a lease that was given back has ended for the next process too, if this one is killed
// before the commit: its URL is leased again, long before the deadline, and a late report changes nothing.
func TestLeaseEndSurvivesKill(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]time.Duration{"in the ledger": 0, "with a mark": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
				sites := []testweb.Site{site("a.test", "", nil, nil)}
				web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
				o := testOptions(t, web)
				o.Workers, o.ExitWhenDone = 0, false
				var dies atomic.Bool
				l := &life{image: t.TempDir()}
				l.remoteRun = startRemoteWith(t, o, func(e *Engine) {
					e.store = &mortalStore{e.store, t, l, o.DataDir, dies.Load}
				}, web.URL("a.test", "/"))
				first := l.lease(remote.Request{Fetcher: "x", N: 1, Visibility: 10 * time.Hour})[0]
				time.Sleep(out)
				dies.Store(true)
				_, _ = l.Report(t.Context(), []remote.Report{{Fetcher: "x", ID: first.ID, NotDone: true}})
				<-l.ended
				l.stop()
				err := l.Close()
				must.True(t, l.killed.Load(), "%v %v", l.err, err)
				o.DataDir = l.image
				r := startRemote(t, o)
				r.report(remote.Report{Fetcher: "x", ID: first.ID, Status: 404}, remote.Unknown)
				again := r.lease(remote.Request{Fetcher: "x", N: 1, Wait: time.Hour})
				assert.True(t, len(again) == 1 && again[0].ID != first.ID,
					"leased %v, want the URL that was given back", again)
				r.end()
			})
		})
	}
}

// TestLeasesWithoutLookups: with neither robots.txt files nor lookups, URLs of hosts that do not
// exist are leased, as many of a host at a time as are wanted and allowed, and reports say when
// they are due again.
func TestLeasesWithoutLookups(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", nil, nil)}})
		o := testOptions(t, web)
		o.Workers, o.ExitWhenDone = 0, false
		o.Frontier.NoRobots, o.Frontier.NoLookups = true, true
		o.Frontier.Politeness.Delay, o.Frontier.Politeness.PerHost, o.Frontier.Politeness.PerIP = 0, 3, 3
		r := startRemote(t, o, "http://no.such.host.test/1", "http://no.such.host.test/2", "http://no.such.host.test/3",
			"http://no.such.host.test/4", "http://another.test/1")
		time.Sleep(time.Second)
		request := remote.Request{Fetcher: "x", N: 10, PerHost: 2, Visibility: time.Hour}
		of := make(map[string]int)
		var leases []remote.Lease
		for len(leases) < 3 { // a host that is not in memory yet comes with the next ones
			leases = append(leases, r.lease(request)...)
		}
		for i := range leases {
			of[leases[i].Host]++
		}
		assert.True(t, of["no.such.host.test"] == 2 && of["another.test"] == 1, "leases by host: %v", of)
		next, never := time.Now().Add(time.Hour), time.Time{}
		for i := range leases {
			report := remote.Report{Fetcher: "x", ID: leases[i].ID, Status: 200, Next: &never}
			if leases[i].Host == "another.test" {
				report.Next = &next
			}
			r.report(report, remote.Accepted)
		}
		request.PerHost, request.Host = 5, "no.such.host.test"
		leases = r.lease(request)
		assert.True(t, len(leases) == 2, "%d leases of the host, want the 2 that are left", len(leases))
		for i := range leases {
			r.report(remote.Report{Fetcher: "x", ID: leases[i].ID, Status: 404}, remote.Accepted)
		}
		request.Host, request.Wait = "", 59*time.Minute
		assert.AtMost(t, len(r.lease(request)), 0, "was leased before it is due")
		if due := r.lease(remote.Request{Fetcher: "x", N: 10}); len(due) != 1 || due[0].Host != "another.test" {
			t.Errorf("leased %v, want the URL that is due again", due)
		}
		r.end()
		assert.AtMost(t, len(web.Requests()), 0, "was requested")
	})
}

// checkFetchers checks who made the requests of the request log; empty: amble itself did.
func checkFetchers(t *testing.T, o Options, want ...string) {
	t.Helper()
	got := make(map[string]bool)
	_, err := requestlog.Read(filepath.Join(o.DataDir, requestlog.DirName), requestlog.Query{},
		func(q *requestlog.Request) error {
			got[q.Fetcher] = true
			return nil
		})
	assert.NoError(t, err)
	for _, name := range want {
		assert.True(t, got[name], "no request of %q is in the request log: %v", name, got)
	}
	assert.Equal(t, len(got), len(want), "the request log names", got, want)
}
