package crawl

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

func noProgress(sweep.Retried) error { return nil }

// pagesOf counts the requests for each page of a host.
func pagesOf(web *testweb.Web, host string) map[string]int {
	n := make(map[string]int)
	for _, q := range web.Requests().Host(host).Pages() {
		n[q.Path]++
	}
	return n
}

// TestRetryOfARunningCrawl puts URLs back that failed, and one that robots.txt denies: each is
// requested once more, at the pace of its host, and robots.txt decides as before.
func TestRetryOfARunningCrawl(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		gone := paths("/gone/", 20)
		links := append(slices.Clone(gone), "/no/1", "/fine", "/other")
		routes := testweb.Routes{"/": testweb.Page("root", links...), "/fine": testweb.Page("fine"),
			"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /no/\n")}
		web := serve(testweb.Site{Host: "a.test", Handler: routes},
			site("b.test", "", nil, testweb.Routes{"/": testweb.Status(404)}))
		o := testOptions(t, web)
		e, stop := daemon(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		testkit.Until(t, "all is settled",
			func() bool { n := e.Status().URLs; return n["failed"] == 22 && n["denied"] == 1 && n["fetched"] == 2 })
		later := testweb.Routes{}
		for path, h := range routes {
			later[path] = h
		}
		for _, path := range append(gone, "/no/1", "/other") {
			later[path] = testweb.Page(path)
		}
		web.SetHandler("a.test", later)
		ctx := context.Background()
		assert.Fails(e.Retry(ctx, sweep.Selection{Host: "c.test"}, noProgress))(t, inspect.ErrUnknown,
			"a host that is not known")
		s := sweep.Selection{States: storage.In(storage.Failed, storage.Denied), Host: "a.test",
			Pattern: regexp.MustCompile(`/(gone|no)/`)}
		counted, err := e.CountRetries(ctx, s, noProgress)
		assert.True(t, err == nil && counted.Back == 21, "a dry run counts %+v, %v", counted, err)
		assert.Equal(t, e.Status().URLs["failed"], 22, "after a dry run URLs are failed")
		done, err := e.Retry(ctx, s, noProgress)
		assert.True(t, err == nil && done == counted, "the retry says %+v, %v; the dry run counted %+v", done, err,
			counted)
		testkit.Until(t, "they are fetched",
			func() bool { n := e.Status().URLs; return n["fetched"] == 22 && n["failed"] == 2 && n["denied"] == 1 })
		stop()
		requested := pagesOf(web, "a.test")
		for _, path := range gone {
			assert.Equal(t, requested[path], 2, path, "was requested times")
		}
		assert.True(t, requested["/no/1"] == 0 && requested["/other"] == 1 && requested["/fine"] == 1 &&
			pagesOf(web, "b.test")["/"] == 1, "requests: %v", requested)
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
		assert.Fails(e.Retry(ctx, s, noProgress))(t, ErrNotRunning, "after the end")
	})
}

// failedStore makes a store with so many URLs of a host that have failed.
func failedStore(t *testing.T, o Options, web *testweb.Web, n int) {
	t.Helper()
	commitTo(t, o, func(s *storage.Store, b *storage.Batch) {
		for i := range n {
			u := parse(t, web.URL("a.test", fmt.Sprintf("/%d", i)))
			b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), Seed: true})
			b.Done = append(b.Done,
				storage.Done{Host: 1, Ordinal: uint32(i),
					Outcome: storage.Outcome{State: storage.Failed, Reason: storage.ReasonStatus, Status: 404}})
		}
		b.Seeds = []storage.SeedRow{{URL: web.URL("a.test", "/0"), Value: []byte{}}}
	})
}

// TestRetryGoesOn: a retry that an earlier process began, and killed at any point, is ended by the
// next. What is behind the mark is not put back a second time.
func TestRetryGoesOn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const all, from = 60, 25
		web := serve(site("a.test", "", nil, nil))
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = time.Millisecond
		failedStore(t, o, web, all)
		order := sweep.Command{Selection: &sweep.Selection{States: storage.In(storage.Failed)}, Host: 1,
			Ordinal: from, Back: from}
		commitTo(t, o, func(_ *storage.Store, b *storage.Batch) {
			b.Marks = map[string][]byte{sweep.RetryMark(3): order.Encode()}
		})
		crawl(t, o)
		requested := pagesOf(web, "a.test")
		for i := range all {
			path, want := fmt.Sprintf("/%d", i), 0
			if i >= from {
				want = 1
			}
			must.True(t, requested[path] == want, "%s was requested %d times, want %d", path, requested[path], want)
		}
		checkNoMarks(t, o, sweep.MarkRetry)
	})
}

// dyingStore is a store whose process dies at a commit: before it or right after.
type dyingStore struct {
	store
	left  int // commits until then
	after bool
}

var errDied = errors.New("the process died")

func (s *dyingStore) Commit(b *storage.Batch) (storage.Result, error) {
	if s.left--; s.left > 0 {
		return s.store.Commit(b)
	}
	if s.left == 0 && s.after {
		if r, err := s.store.Commit(b); err != nil {
			return r, err
		}
	}
	return storage.Result{}, errDied
}

// TestRetrierDies: the process that puts URLs back while no crawl runs dies at any of its commits.
// The next run ends its work, and every URL is requested exactly once.
func TestRetrierDies(t *testing.T) {
	t.Parallel()
	const all, most = 26, 10 // three transactions, and the end
	for left := 1; left <= 4; left++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d, after=%t", left, after), func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
					web := serve(site("a.test", "", nil, nil))
					o := testOptions(t, web)
					o.Frontier.Politeness.Delay = 0
					o.Frontier.Politeness.PerHost = 4
					failedStore(t, o, web, all)
					r := must.Get(OpenRetrier(o, nil))(t)
					r.most = most
					r.store = &dyingStore{r.store, left, after}
					done, err := r.Retry(context.Background(), sweep.Selection{}, noProgress)
					assert.True(t, errors.Is(err, errDied) && (done.Back%most == 0 || done.Back == all), "%+v, %v",
						done, err)
					must.Do(t, r.Close())
					crawl(t, o)
					want := 1
					if left == 1 && !after { // nothing of it was on disk
						want = 0
					}
					requested := pagesOf(web, "a.test")
					for i := range all {
						n := requested[fmt.Sprintf("/%d", i)]
						must.True(t, n == want, "/%d was requested %d times, want %d", i, n, want)
					}
					checkNoMarks(t, o, sweep.MarkRetry)
				})
			})
		}
	}
}

// TestRetrier puts URLs of a crawl that does not run back, and says how many.
func TestRetrier(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, nil))
		o := testOptions(t, web)
		assert.Fails(OpenRetrier(o, nil))(t, nil, "there is no database, and one is made")
		failedStore(t, o, web, 1500)
		r := must.Get(OpenRetrier(o, nil))(t)
		var steps []sweep.Retried
		done, err := r.Retry(context.Background(), sweep.Selection{Pattern: regexp.MustCompile(`/1\d*$`)},
			func(p sweep.Retried) error {
				steps = append(steps, p)
				return nil
			})
		assert.True(t, err == nil && done == (sweep.Retried{Inspected: 1500, Back: 611}) &&
			slices.Contains(steps, done), "%+v, %v; on the way %v", done, err, steps)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		assert.Fails(r.Retry(ctx, sweep.Selection{}, noProgress))(t, context.Canceled, "with a context that has ended")
		must.Do(t, r.Close())
		checkNoMarks(t, o, sweep.MarkRetry)
		n := 0
		for _, outcome := range stored(t, o.DataDir) {
			if outcome.State == storage.Retrying {
				n++
			}
		}
		assert.Equal(t, n, 611, "URLs are put back")
	})
}
