package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// stuck is a page that answers when the client leaves.
func stuck() (h testweb.Routes, requested <-chan struct{}) {
	c := make(chan struct{}, 100)
	hold := testweb.Slow(time.Hour, testweb.Page("never"))
	return testweb.Routes{"/stuck": signal(c, hold)}, c
}

// signal tells of each request before h answers it.
func signal(c chan<- struct{}, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c <- struct{}{}
		h.ServeHTTP(w, r)
	})
}

// TestBreakOff: when the grace is over a request is broken off. Its URL is requested
// again by the next process, not sooner than the host allows.
func TestBreakOff(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		routes, requested := stuck()
		web := serve(site("a.test", "", []string{"/stuck", "/aa"}, routes))
		o := testOptions(t, web)
		o.ShutdownGrace = 50 * time.Millisecond
		o.Frontier.Politeness.Delay = 500 * time.Millisecond
		e := must.Get(Open(o, testLog(t)))(t)
		ctx, cancel := context.WithCancel(context.Background())
		var stopped time.Time
		go func() {
			<-requested
			stopped = time.Now()
			cancel()
		}()
		sum, err := e.Run(ctx, []Seed{seed(t, web.URL("a.test", "/"))})
		assert.True(t, err == nil && sum.Stopped(), "stopped: %t, error: %v", sum.Stopped(), err)
		if took := time.Since(stopped); took < o.ShutdownGrace || took > 2*o.ShutdownGrace {
			t.Errorf("the crawl ended after %v of virtual time, the grace is %v", took, o.ShutdownGrace)
		}
		assert.NoError(t, e.Close())
		web.SetHandler("a.test", site("a.test", "", []string{"/stuck", "/aa"}, nil).Handler)
		crawl(t, o, web.URL("a.test", "/"))
		log := web.Requests()
		assert.Equal(t, len(log.Path("/stuck")), 2, "/stuck was requested times")
		checkPolite(t, log, o.Frontier.Politeness.Delay)
		checkStates(t, o,
			map[string]storage.State{"a.test/": storage.Fetched, "a.test/stuck": storage.Fetched,
				"a.test/aa": storage.Fetched})
		checkOutput(t, o)
	})
}

// TestStopLetsRequestsFinish: within the grace what is in flight is fetched and
// committed.
func TestStopLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		began := make(chan struct{}, 10)
		slow := signal(began, testweb.Slow(300*time.Millisecond, testweb.Page("slow")))
		web := serve(site("a.test", "", []string{"/slow", "/later"}, testweb.Routes{"/slow": slow}))
		o := testOptions(t, web)
		e := must.Get(Open(o, testLog(t)))(t)
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-began
			cancel()
		}()
		_, err := e.Run(ctx, []Seed{seed(t, web.URL("a.test", "/"))})
		assert.True(t, err == nil, "%v", err)
		assert.NoError(t, e.Close())
		checkStates(t, o,
			map[string]storage.State{"a.test/": storage.Fetched, "a.test/slow": storage.Fetched,
				"a.test/later": storage.Queued})
		checkOutput(t, o)
	})
}

// TestStoppedBeforeItBegan: a Run under a context that has ended is no error and
// makes no request.
func TestStoppedBeforeItBegan(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(twoSites()...)
		o := testOptions(t, web)
		for range 2 { // with an empty frontier, then with URLs in it
			sum, err := crawlFor(t, o, -time.Second, web.URL("a.test", "/"))
			assert.True(t, err == nil && sum.Stopped(), "stopped: %t, error: %v", sum.Stopped(), err)
			assert.Equal(t, web.Served(), 0, "requests were made")
			s := must.Get(storage.Open(o.DataDir, storage.Options{}))(t)
			u := seed(t, web.URL("a.test", "/")).URL
			_, err = s.Commit(
				&storage.Batch{Found: []storage.Found{{URL: u, Fingerprint: s.Fingerprint(u), Seed: true}}})
			must.Do(t, errors.Join(err, s.Close()))
		}
	})
}

// TestFailedOpen: whatever cannot be opened, the data directory is free again.
func TestFailedOpen(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(twoSites()...)
		file := filepath.Join(t.TempDir(), "file")
		must.Do(t, os.WriteFile(file, nil, 0o644))
		for name, spoil := range map[string]func(*Options){
			"options": func(o *Options) { o.Workers = -1 },
			"output":  func(o *Options) { o.Archive.Dir = file },
			"ledger": func(o *Options) {
				must.Do(t, os.Mkdir(filepath.Join(o.DataDir, starts.FileName), 0o755))
			},
		} {
			o := testOptions(t, web)
			good := o
			spoil(&o)
			assert.Fails(Open(o, testLog(t)))(t, nil, name, "no error")
			must.Do(t, os.RemoveAll(filepath.Join(o.DataDir, starts.FileName)))
			e, err := Open(good, testLog(t))
			if err != nil {
				t.Errorf("%s: after the failure: %v", name, err)
				continue
			}
			assert.Fails(Open(good, testLog(t)))(t, storage.ErrInUse, name, "a second engine")
			assert.NoError(t, e.Close())
		}
	})
}

// failingStore fails for good the commit that would bring the number of outcomes to one, after
// waiting a while for requests that there is another commit to make for. How many outcomes a commit
// holds depends on the disk; how many there are does not.
type failingStore struct {
	store
	left atomic.Int64 // outcomes until it fails
	err  error
	web  *testweb.Web

	patience int // milliseconds
}

func (s *failingStore) Commit(b *storage.Batch) (storage.Result, error) {
	if n := int64(len(b.Done)); n > 0 && s.left.Add(-n) <= 0 {
		for until := s.web.Served() + 4; s.web.Served() < until && s.patience > 0; s.patience-- {
			time.Sleep(time.Millisecond)
		}
		return storage.Result{}, s.err
	}
	return s.store.Commit(b)
}

// TestFailedCommit: after a commit that fails for good the run ends with its error,
// and nothing of a later commit passes over what the lost one held.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{1, 12, 30} {
		t.Run(fmt.Sprint("outcome ", n), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				web := serve(twoSites()...)
				o := testOptions(t, web)
				o.GiveUpAfter = 20 * time.Second // longer than the restart hold where no rules were committed
				failCommit(t, web, o, n, seed(t, web.URL("a.test", "/")), seed(t, web.URL("b.test", "/")))
				checkOutput(t, o)
				answered(t, web)
				crawl(t, o)
				for u, outcome := range stored(t, o.DataDir) {
					assert.Not(t, outcome.State, storage.Queued, u, "was lost")
				}
				assert.Equal(t, len(web.Requests().Pages().CountByPath()), 41, "pages were requested in the end")
				checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
				checkOutput(t, o)
			})
		})
	}
}

// failCommit runs a crawl in which the commit of its nth outcome fails for good.
func failCommit(t *testing.T, web *testweb.Web, o Options, n int64, seeds ...Seed) {
	t.Helper()
	s := must.Get(storage.Open(o.DataDir, storage.Options{}))(t)
	failing := &failingStore{store: s, err: errors.New("broken disk"), web: web, patience: 500}
	failing.left.Store(n)
	e := must.Get(open(o, failing, testLog(t)))(t)
	sum, err := e.Run(context.Background(), seeds)
	assert.True(t, errors.Is(err, failing.err) && !sum.Stopped(), "stopped: %t, error: %v", sum.Stopped(), err)
	assert.NoError(t, e.Close())
}
