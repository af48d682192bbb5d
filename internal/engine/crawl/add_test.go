package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// daemon runs a crawl that does not end by itself. stop ends it and closes the engine.
func daemon(t *testing.T, o Options, seeds ...string) (e *Engine, stop func() Summary) {
	t.Helper()
	return daemonOf(t, o, seedList(t, seeds...)...)
}

// daemonOf is daemon with seeds that have fields of their own.
func daemonOf(t *testing.T, o Options, seeds ...Seed) (e *Engine, stop func() Summary) {
	t.Helper()
	o.ExitWhenDone = false
	e = must.Get(Open(o, testLog(t)))(t)
	return e, runDaemonOf(t, e, seeds)
}

func runDaemon(t *testing.T, e *Engine, seeds ...string) (stop func() Summary) {
	t.Helper()
	return runDaemonOf(t, e, seedList(t, seeds...))
}

func runDaemonOf(t *testing.T, e *Engine, list []Seed) (stop func() Summary) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan Summary, 1)
	go func() {
		sum, err := e.Run(ctx, list)
		assert.NoError(t, err)
		done <- sum
	}()
	var once sync.Once
	var sum Summary
	stop = func() Summary {
		once.Do(func() {
			cancel()
			sum = <-done
			assert.NoError(t, e.Close())
		})
		return sum
	}
	t.Cleanup(func() { stop() })
	testkit.Until(t, "the crawl runs", func() bool { return e.mailbox.Load() != nil })
	return stop
}

// beats waits until the dispatcher has reported its status n more times, which it does each second:
// it has done what was due meanwhile.
func beats(t *testing.T, e *Engine, n int) {
	t.Helper()
	for range n {
		at := e.Status().At
		testkit.Until(t, "the dispatcher reports", func() bool { return e.Status().At.After(at) })
	}
}

func additions(t *testing.T, texts ...string) (all []Addition) {
	t.Helper()
	for _, text := range texts {
		all = append(all, Addition{URL: seed(t, text).URL, Depth: 1})
	}
	return all
}

// MaxAdditions is how many URLs the tests add at a time.
const MaxAdditions = 5000

// importAll imports URLs as one window, and returns their results.
func importAll(ctx context.Context, i Import, urls []Addition) (sum Added, results []InsertResult, err error) {
	for _, a := range urls {
		if err := i.Add(a); err != nil {
			return i.Sum(), nil, err
		}
	}
	err = i.Commit(ctx)
	return i.Sum(), slices.Clone(i.Results()), errors.Join(err, i.Close())
}

func (e *Engine) addWithResults(ctx context.Context, urls []Addition) (Added, []InsertResult, error) {
	i, err := e.NewImport(ImportOptions{Results: true})
	if err != nil {
		return Added{}, nil, err
	}
	return importAll(ctx, i, urls)
}

// Add adds URLs to the running crawl.
func (e *Engine) Add(ctx context.Context, urls []Addition) (Added, error) {
	sum, _, err := e.addWithResults(ctx, urls)
	return sum, err
}

// Add adds URLs to the store.
func (i *Importer) Add(ctx context.Context, urls []Addition) (Added, error) {
	sum, _, err := importAll(ctx, i.NewImport(ImportOptions{}), urls)
	return sum, err
}

// TestAddToARunningCrawl gives URLs to a crawl: they are on disk when Add returns, and fetched like
// any others.
func TestAddToARunningCrawl(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(
			site("a.test", "User-agent: *\nDisallow: /no/\n", nil, testweb.Routes{"/given": testweb.Page("given")}))
		o := testOptions(t, web)
		o.Frontier.MaxDepth = 3
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		given := additions(t, web.URL("a.test", "/given"), web.URL("a.test", "/no/1"), web.URL("a.test", "/given"),
			web.URL("a.test", "/"), web.URL("foreign.test", "/"))
		given = append(given, Addition{URL: given[0].URL, Depth: 4})
		sum, err := e.Add(context.Background(), given)
		want := (Added{Added: 2, Known: 2, Outside: 2})
		assert.True(t, err == nil && sum == want, "%+v, %v, want %+v", sum, err, want)
		for _, a := range given[:2] {
			u, err := e.View().URL(context.Background(), a.URL)
			assert.True(t, err == nil && u.Depth == 1, "%+v, %v", u, err)
		}
		testkit.Until(t, "both are allDone", func() bool {
			u, err := e.View().URL(context.Background(), given[0].URL)
			v, err2 := e.View().URL(context.Background(), given[1].URL)
			return err == nil && err2 == nil && u.State == "fetched" && v.State == "denied" && v.Robots.Line == 2
		})
		stop()
		checkStates(t, o,
			map[string]storage.State{"a.test/": storage.Fetched, "a.test/given": storage.Fetched,
				"a.test/no/1": storage.Denied})
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
		checkOutput(t, o)
		assert.Fails(e.Add(context.Background(), given))(t, ErrNotRunning, "a crawl that has ended")
	})
}

// TestAddAgain puts known URLs back that failed, were denied or excluded, once each; the rules
// decide about them as before. A crawl that does not run takes them in the same way.
func TestAddAgain(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		routes := testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /no/\n"),
			"/": testweb.Page("root", "/gone", "/no/1", "/fine"), "/fine": testweb.Page("fine")}
		web := serve(testweb.Site{Host: "a.test", Handler: routes})
		o := testOptions(t, web)
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		allDone := func() bool {
			c := e.store.Counters()
			return c.Of(storage.Fetched) == 2 && c.Of(storage.Failed) == 1 && c.Of(storage.Denied) == 1
		}
		testkit.Until(t, "all is allDone", allDone)
		list := additions(t, web.URL("a.test", "/gone"), web.URL("a.test", "/no/1"), web.URL("a.test", "/fine"),
			web.URL("a.test", "/gone"), web.URL("b.test", "/"))
		for i := range list {
			list[i].Again = true
		}
		ctx := context.Background()
		sum, results, err := e.addWithResults(ctx, list)
		assert.True(t, err == nil && sum == (Added{Again: 2, Known: 2, Outside: 1}) && results[0] == InsertAgain &&
			results[3] == InsertKnown, "%+v, %v: %+v", sum, err, list)
		testkit.Until(t, "the page is requested again",
			func() bool { return pagesOf(web, "a.test")["/gone"] == 2 && allDone() })
		stop()
		i := must.Get(OpenImporter(o, []Seed{seed(t, web.URL("a.test", "/"))}))(t)
		assert.Returns(i.Add(ctx, list))(t, Added{Again: 2, Known: 2, Outside: 1})
		must.Do(t, i.Close())
		crawl(t, o)
		requested := pagesOf(web, "a.test")
		assert.True(t, requested["/gone"] == 3 && requested["/fine"] == 1 && requested["/no/1"] == 0, "requests: %v",
			requested)
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
	})
}

// TestManyAddAtOnce adds from many goroutines while pages are fetched, and counts.
func TestManyAddAtOnce(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/p/", 40), nil))
		o := testOptions(t, web)
		o.Mode = frontier.ModeAny
		o.Frontier.Politeness.Delay = time.Millisecond
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		var wg sync.WaitGroup
		var mu sync.Mutex
		var all Added
		const adders = 4
		for i := range adders {
			wg.Go(func() {
				var urls []Addition
				for n := range MaxAdditions + 500 { // two commits; half of each is what the neighbour adds too
					urls = append(urls,
						Addition{URL: mustParse(fmt.Sprintf("http://none.test/%d", i*(MaxAdditions+500)/2+n))})
				}
				sum, err := e.Add(context.Background(), urls)
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				all = all.Plus(sum)
			})
		}
		wg.Wait()
		const each, different = MaxAdditions + 500, (adders + 1) * (MaxAdditions + 500) / 2
		assert.Equal(t, all, (Added{Added: different, Known: adders*each - different}))
		testkit.Until(t, "the pages are fetched too", func() bool { return e.Status().URLs["fetched"] == 41 })
		stop()
		s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
		defer s.Close()
		assert.Equal(t, s.Counters().URLs, different+41, "URLs in the store")
		assert.NoError(t, s.Check(context.Background(), func(f storage.Finding) { t.Error(f.Text) }))
	})
}

func mustParse(text string) weburl.URL {
	u, err := weburl.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}

// TestAddWhileItStops must never leave anybody waiting, and what it counts must be in the store.
// The time is real: callers that never pause keep virtual time from passing.
func TestAddWhileItStops(t *testing.T) {
	t.Parallel()
	web := startWeb(t, site("a.test", "", nil, nil))
	o := testOptions(t, web)
	o.Mode = frontier.ModeAny
	e, stop := daemon(t, o, web.URL("a.test", "/"))
	var wg sync.WaitGroup
	counts := make([]int, 6)
	for i := range counts {
		wg.Go(func() {
			for n := 0; ; n++ {
				sum, err := e.Add(context.Background(),
					[]Addition{{URL: mustParse(fmt.Sprintf("http://none.test/%d/%d", i, n))}})
				counts[i] += sum.Added
				if errors.Is(err, ErrNotRunning) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	testkit.Until(t, "some are added", func() bool { return e.store.Counters().URLs > 50 })
	stop()
	wg.Wait()
	total := 1
	for _, n := range counts {
		total += n
	}
	assert.Equal(t, len(stored(t, o.DataDir)), total, "URLs are in the store were said to be added")
}

// TestAddToAFullDisk waits for room, and its caller may give up.
func TestAddToAFullDisk(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, nil))
		e, d := fillable(t, web)
		d.full.Store(true)
		ctx, giveUp := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer giveUp()
		assert.Fails(e.Add(ctx, additions(t, web.URL("a.test", "/1"))))(t, context.DeadlineExceeded, "the error")
		d.full.Store(false)
		sum, err := e.Add(context.Background(), additions(t, web.URL("a.test", "/1")))
		assert.True(t, err == nil && sum.Known == 1, "%+v, %v: the one given up should be there by now", sum, err)
	})
}

// TestLookIntoARunningCrawl reads what only the frontier knows.
func TestLookIntoARunningCrawl(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "User-agent: *\nCrawl-delay: 3600\n", paths("/p/", 3), nil),
			site("b.test", "", nil, testweb.Routes{"/": testweb.Status(503)}))
		e, stop := daemon(t, testOptions(t, web), web.URL("a.test", "/"), web.URL("b.test", "/"))
		view := e.View()
		var a, b inspect.HostStory
		testkit.Until(t, "a waits for its Crawl-delay, b's robots.txt fails", func() bool {
			var err, err2 error
			a, err = view.Host(context.Background(), "a.test")
			b, err2 = view.Host(context.Background(), "b.test")
			return err == nil && err2 == nil && a.State == inspect.HostWaiting && a.Delay == 3600 &&
				b.State == inspect.HostFailing
		})
		assert.True(t, a.Politeness.DelayReason == "crawl-delay" && a.FrontierState != "" && !a.Next.IsZero() &&
			a.Politeness.Source != "" && !b.Politeness.FailingSince.IsZero(), "%+v\n%+v", a, b)
		var names []string
		n, err := view.Hosts(context.Background(), inspect.HostQuery{Sort: "name", Limit: 1},
			func(h *inspect.Host) error {
				names = append(names, h.Host+" "+h.State)
				return nil
			})
		assert.True(t, err == nil && n == 2 && len(names) == 1 && names[0] == "a.test waiting", "%v of %d, %v", names,
			n, err)
		stop()
	})
}

// TestAddSettlesNoRequest: the commit of an addition must not make the start ledger forget a
// request that is still out.
func TestAddSettlesNoRequest(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, testweb.Routes{"/": testweb.Slow(time.Hour, testweb.Page("slow"))}))
		o := testOptions(t, web)
		o.ShutdownGrace = 0
		e, _ := daemon(t, o, web.URL("a.test", "/"))
		testkit.Until(t, "the page is requested", func() bool { return web.Served() == 2 })
		if sum, err := e.Add(context.Background(), additions(t, web.URL("a.test", "/1"))); err != nil ||
			sum.Added != 1 {
			t.Fatalf("%+v, %v", sum, err)
		}
		uncommitted, err := starts.Read(o.DataDir, committedOffset(t, e.store), boot.ID(), nil)
		if _, waits := uncommitted.Hosts["a.test"]; err != nil || !waits {
			t.Errorf("after a crash now, %v would have a restart hold; %v", uncommitted.Hosts, err)
		}
	})
}
