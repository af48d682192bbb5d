package crawl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// life is a process of a crawl that only fetchers fetch for.
type life struct {
	*remoteRun
	killed atomic.Bool // what happens from now on never happened
	image  string      // the disk at that moment
}

// mortalStore kills the process before a commit: what was logged and written to the start ledger is on the disk,
// and the database does not know of it.
type mortalStore struct {
	store
	t    testing.TB
	life *life
	dir  string
	dies func() bool
}

var errKilled = errors.New("killed")

// Commit is part of store.
func (s *mortalStore) Commit(b *storage.Batch) (storage.Result, error) {
	if s.life.killed.Load() {
		return storage.Result{}, errKilled
	}
	if !s.dies() {
		return s.store.Commit(b)
	}
	s.life.killed.Store(true)
	assert.NoError(s.t, os.CopyFS(s.life.image, os.DirFS(s.dir)))
	return storage.Result{}, errKilled
}

// mortal is a crawl whose processes are killed.
type mortal struct {
	t       testing.TB
	o       Options
	random  *rand.Rand
	current atomic.Pointer[life]
	over    atomic.Bool
	deaths  int
}

// start begins a process. One that is not immortal is killed before one of its commits.
func (m *mortal) start(immortal bool, seeds ...string) *life {
	l := &life{image: m.t.TempDir()}
	l.remoteRun = startRemoteWith(m.t, m.o, func(e *Engine) {
		if !immortal {
			e.store = &mortalStore{e.store, m.t, l, m.o.DataDir, func() bool { return m.random.IntN(10) == 0 }}
		}
	}, seeds...)
	m.current.Store(l)
	return l
}

// run crawls, with so many processes that are killed.
func (m *mortal) run(kills int) {
	for ; ; kills-- {
		l := m.start(kills <= 0)
		<-l.ended
		l.stop()
		err := errors.Join(l.err, l.Close())
		if !l.killed.Load() {
			assert.NoError(m.t, err)
			m.over.Store(true)
			return
		}
		m.deaths++
		must.Do(m.t, os.RemoveAll(m.o.DataDir))
		m.o.DataDir = l.image
	}
}

// fetch takes leases and treats each in a random way, until the crawl is over.
func (m *mortal) fetch(f *testFetcher, random *rand.Rand) {
	for !m.over.Load() {
		l := m.current.Load()
		leases, err := l.Lease(m.t.Context(), remote.Request{
			Fetcher: f.name, N: 1 + random.IntN(3), Wait: 10 * time.Second, Visibility: seconds(2 + random.IntN(20)),
		})
		if err != nil || len(leases) == 0 || l.killed.Load() { // then they never left the process
			time.Sleep(10 * time.Millisecond)
			continue
		}
		for i := range leases {
			m.treat(f, &leases[i], random)
		}
	}
}

// treat makes the request of a lease or not, and reports it, until a process takes the report, or not.
func (m *mortal) treat(f *testFetcher, l *remote.Lease, random *rand.Rand) {
	if time.Until(l.Deadline) < time.Second {
		return // it would not end in time
	}
	report := remote.Report{Fetcher: f.name, ID: l.ID, NotDone: true}
	how := behavior(random.IntN(int(behaviors)))
	if how != dies && how != givesBack {
		report = f.fetch(m.t.Context(), l)
	}
	assert.AtMost(m.t, l.Delay, m.o.Frontier.Politeness.Delay, l.Host, "the delay because a fetcher had a URL for long")
	switch how {
	case dies, diesAfter:
		return
	case hangs:
		time.Sleep(time.Until(l.Deadline) + time.Second)
	case lies: // it keeps for itself how long its request took
		time.Sleep(time.Until(l.Deadline) / 2)
		report.Took = 0
	}
	for range 3 {
		_, err := m.current.Load().Report(m.t.Context(), []remote.Report{report})
		if err == nil && how != twice {
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// TestHeavyLeaseChaos: with processes that are killed while leases are out and between the log of a request and the
// commit of its outcome, the servers see no gap under the delay, and neither does the audit: each request has one
// line in the request log.
func TestHeavyLeaseChaos(t *testing.T) { checkLeaseChaos(t, 3) }

// checkLeaseChaos does so with that many seeds.
func checkLeaseChaos(t *testing.T, seeds uint64) {
	t.Parallel()
	const delay = 2 * time.Second
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			virtually(t, memnet.Options{Latency: 30 * time.Millisecond}, func(t *testing.T, network *memnet.Network) {
				var sites []testweb.Site
				for i := range 3 {
					sites = append(sites, site(fmt.Sprintf("h%d.test", i), "User-agent: *\nDisallow: /secret\n",
						append(paths("/", 25), "/secret/a"), nil))
				}
				web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
				o := testOptions(t, web)
				o.GiveUpAfter, o.Frontier.MaxAttempts, o.Frontier.Walls, o.Workers = 1000*time.Hour, 255, false, 0
				o.Frontier.Politeness.Delay, o.Frontier.RetryDelay = delay, time.Second
				o.Frontier.Politeness.AdaptiveFactor, o.Frontier.Politeness.AdaptiveMax = 1, time.Minute
				m := &mortal{t: t, o: o, random: rand.New(rand.NewPCG(seed, 2))}
				m.o.ExitWhenDone = false
				first := m.start(true, seedsOf(web, web.Sites())...)
				time.Sleep(time.Minute) // the robots.txt files are there
				first.end()
				m.o.ExitWhenDone = true
				var wg sync.WaitGroup
				for i := range uint64(4) {
					f, random := newTestFetcher(fmt.Sprint("f", i), web), rand.New(rand.NewPCG(seed, 10+i))
					wg.Go(func() { m.fetch(f, random) })
				}
				m.run(12)
				wg.Wait()
				m.check(web, delay)
			})
		})
	}
}

// check holds the request log against what the servers saw.
func (m *mortal) check(web *testweb.Web, delay time.Duration) {
	t := m.t.(*testing.T)
	log := web.Requests()
	checkPolite(t, log, delay)
	checkAudit(t, m.o)
	requests := make(map[string]int)
	for _, q := range log.Pages() {
		if requests[web.URL(q.Host, q.Path)]++; strings.HasPrefix(q.Path, "/secret") {
			t.Errorf("%s%s was requested", q.Host, q.Path)
		}
	}
	lines := make(map[string]int)
	_, err := requestlog.Read(filepath.Join(m.o.DataDir, requestlog.DirName), requestlog.Query{},
		func(q *requestlog.Request) error {
			if requests[q.URL.String()]--; q.Kind == requestlog.Page {
				lines[q.Lease]++
			}
			return nil
		})
	for u, left := range requests {
		assert.AtMost(t, left, 0, u, "requests that are not in the log")
	}
	for id, n := range lines {
		assert.True(t, n <= 1 && id != "", "the lease %q has %d lines in the log", id, n)
	}
	assert.True(t, err == nil && m.deaths >= 10, "%d processes were killed: %v", m.deaths, err)
}
