package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/journal/records"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// memoryJournal is a journal in memory. Its log can be down, before or after it has taken a record.
type memoryJournal struct {
	records.Codec
	mu      sync.Mutex
	log     [][]byte
	taken   int  // appends until the log is down; -1: it never is
	keeps   bool // it takes the record all the same when it is down
	lost    bool // another node owns it
	panics  bool // it has a bug
	calls   int  // of Append while it was down
	foreign func(host string) bool
	sent    []storage.Discovery
	arrives func(take func(sequence uint64, urls []storage.Discovery) error) error // nil: nothing does
}

func (j *memoryJournal) Append(number uint64, record []byte) (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lost {
		return 0, storage.ErrLost
	}
	if j.panics {
		panic("a bug")
	}
	down := j.taken == 0
	if down {
		j.calls++
	} else if j.taken > 0 {
		j.taken--
	}
	if down && !j.keeps {
		return 0, storage.ErrLogDown
	}
	if n := uint64(len(j.log)); number == n+1 {
		j.log = append(j.log, bytes.Clone(record))
	} else if number != n || !bytes.Equal(j.log[n-1], record) {
		return 0, fmt.Errorf("record %d behind %d", number, n)
	}
	if down {
		return 0, storage.ErrLogDown
	}
	return number, nil
}

func (j *memoryJournal) Replay(from storage.LogPosition, apply func(uint64, []byte) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := from.Number; i < uint64(len(j.log)); i++ {
		if err := apply(i+1, j.log[i]); err != nil {
			return err
		}
	}
	return nil
}

func (j *memoryJournal) Owns(host string) bool { return j.foreign == nil || !j.foreign(host) }

func (j *memoryJournal) Publish(_ uint64, urls []storage.Discovery) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.taken == 0 {
		return storage.ErrLogDown
	}
	j.sent = append(j.sent, urls...)
	return nil
}

func (j *memoryJournal) Incoming(ctx context.Context, _ uint64, take func(uint64, []storage.Discovery) error) error {
	if j.arrives != nil {
		if err := j.arrives(take); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (j *memoryJournal) set(taken int, keeps bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.taken, j.keeps, j.calls = taken, keeps, 0
}

func (j *memoryJournal) downCalls() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.calls
}

// rebuilt are the rows of a database that is made of the log, and those of a data directory.
func (j *memoryJournal) rebuilt(t *testing.T, dir string) (rebuilt, there string) {
	t.Helper()
	read := func(dir string) string {
		s, err := storage.Open(dir, storage.Options{})
		must.Do(t, err)
		defer s.Close()
		err = replay(s, j)
		var b strings.Builder
		if err == nil {
			err = s.WriteRows(&b)
		}
		must.Do(t, err)
		return b.String()
	}
	return read(t.TempDir()), read(dir)
}

// TestJournalAndOutput: a crawl ends while its last commit is in the log, or may be, and not in the
// database. The next run goes on from the log: each page that it counts is in the output, once, and
// the log makes the same database.
func TestJournalAndOutput(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/p/", 30), nil), site("b.test", "", paths("/p/", 30), nil))
		o := testOptions(t, web)
		o.Archive.Formats, o.ShutdownGrace = allFormats, time.Second
		j := &memoryJournal{}
		o.Journal = j
		for run := range 12 {
			j.set(5, run%2 == 0)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for j.downCalls() < 3 && ctx.Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				cancel()
			}()
			e, err := Open(o, testLog(t))
			must.Do(t, err)
			_, err = e.Run(ctx, seedList(t, web.URL("a.test", "/"), web.URL("b.test", "/")))
			must.True(t, err == nil || errors.Is(err, storage.ErrLogDown), "%v", err)
			cancel()
			<-ended
			must.Do(t, e.Close())
		}
		j.set(-1, false)
		crawl(t, o)
		for _, host := range []string{"a.test", "b.test"} {
			assert.Equal(t, len(pagesOf(web, host)), 31, "pages of", host, "were requested")
		}
		checkOutput(t, o)
		rebuilt, there := j.rebuilt(t, o.DataDir)
		assert.True(t, rebuilt == there, "the log makes\n%s\nthe database has\n%s", rebuilt, there)
	})
}

// TestJournalDown: while the log is down nothing is dispatched, the status says so, and the crawl goes
// on by itself.
func TestJournalDown(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/p/", 30), nil))
		o := testOptions(t, web)
		j := &memoryJournal{taken: 9}
		o.Journal = j
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		testkit.Until(t, "it stalls", func() bool {
			s := e.Status()
			return s.State == "stalled" && s.InFlight == 0 && strings.Contains(s.Reason, "the log cannot be reached")
		})
		before := web.Served()
		time.Sleep(time.Hour)
		assert.Equal(t, web.Served(), before, "requests while nothing could be committed")
		j.set(-1, false)
		testkit.Until(t, "all is fetched", func() bool { return e.Status().URLs["fetched"] == 31 })
		stop()
		checkOutput(t, o)
		for path, n := range pagesOf(web, "a.test") {
			assert.Equal(t, n, 1, path, "was requested times")
		}
	})
}

// TestJournalLost: a crawl whose log has another owner ends, and changes nothing any more.
func TestJournalLost(t *testing.T) {
	t.Parallel()
	endsShard(t, func(j *memoryJournal) { j.lost = true }, storage.ErrLost)
}

// TestJournalPanics: nor does one that panics, which ends that crawl and not the process.
func TestJournalPanics(t *testing.T) {
	t.Parallel()
	endsShard(t, func(j *memoryJournal) { j.panics = true }, ErrPanic)
}

// panickingStore panics when the hosts are read.
type panickingStore struct{ store }

func (panickingStore) ReadHosts(*storage.HostPage, storage.HostID, int) (storage.HostID, error) {
	panic("a bug")
}

// TestRestorePanics: so does a shard that panics while it reads its hosts.
func TestRestorePanics(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, nil))
		o := testOptions(t, web)
		o.Journal = &memoryJournal{taken: -1}
		e := must.Get(Open(o, testLog(t)))(t)
		e.store = panickingStore{e.store}
		assert.Fails(e.Run(t.Context(), seedList(t, web.URL("a.test", "/"))))(t, ErrPanic, "the crawl ends with")
		assert.NoError(t, e.Close())
	})
}

// endsShard crawls until something happens to the journal of a shard. Then the crawl ends with an error.
func endsShard(t *testing.T, happens func(*memoryJournal), want error) {
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/p/", 30), nil))
		o := testOptions(t, web)
		j := &memoryJournal{taken: -1}
		o.Journal = j
		e := must.Get(Open(o, testLog(t)))(t)
		go func() {
			for len(pagesOf(web, "a.test")) < 10 {
				time.Sleep(time.Millisecond)
			}
			j.mu.Lock()
			defer j.mu.Unlock()
			happens(j)
		}()
		assert.Fails(e.Run(t.Context(), seedList(t, web.URL("a.test", "/"))))(t, want, "the crawl ends with")
		assert.NoError(t, e.Close())
		assert.AtMost(t, len(pagesOf(web, "a.test")), 15, "pages were requested")
		s := must.Get(storage.Open(o.DataDir, storage.Options{}))(t)
		defer s.Close()
		if at, err := s.LogPosition(); err != nil || at.Number != uint64(len(j.log)) {
			t.Errorf("the database is at %+v, the log at %d, %v", at, len(j.log), err)
		}
	})
}

// TestForeignURLs: what belongs to another shard is published with all that a discovery has, also what
// is imported, and it is not in the database. Seeds are not: each engine has them all.
func TestForeignURLs(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, testweb.Routes{
			"/": testweb.Page("root", "/1", "//b.test/x", "/2"), "/1": testweb.Page("1", "//b.test/y"),
			"/2": testweb.Page("2"),
		}), site("b.test", "", paths("/", 5), nil))
		o := testOptions(t, web)
		j := &memoryJournal{taken: -1, foreign: func(host string) bool { return host == "b.test" }}
		o.Journal = j
		e, stop := daemon(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		given := additions(t, web.URL("b.test", "/z"), web.URL("a.test", "/3"), web.URL("b.test", "/zz"))
		sum, results, err := e.addWithResults(t.Context(), given)
		assert.True(t, err == nil && sum.Added == 3 && results[0] == InsertAdded && results[1] == InsertAdded,
			"%+v, %v, %v", sum, results, err)
		testkit.Until(t, "all is done", func() bool {
			u := e.Status().URLs
			return u["fetched"] == 3 && u["failed"] == 1
		})
		stop()
		got := make(map[string]string)
		for _, d := range j.sent {
			got[strings.TrimPrefix(d.Found.URL.RequestURI(), "/")] = fmt.Sprint(d.Found.Depth, d.Found.Seed, " ", d.Via)
		}
		want := map[string]string{
			"x": "1 false " + web.URL("a.test", "/"), "y": "2 false " + web.URL("a.test", "/1"),
			"z": "1 false ", "zz": "1 false ",
		}
		assert.Equal(t, fmt.Sprint(got), fmt.Sprint(want), "published", got, want)
		assert.AtMost(t, len(web.Requests().Host("b.test")), 0, "a host of another shard was requested")
		for u := range stored(t, o.DataDir) {
			assert.True(t, !strings.Contains(u, "b.test"), "%s is in the database", u)
		}
	})
}

// TestJournalNeedsItsLog: a database with a log cannot be opened for an import without it.
func TestJournalNeedsItsLog(t *testing.T) {
	t.Parallel()
	web := startWeb(t, site("a.test", "", nil, nil))
	o := testOptions(t, web)
	o.Journal = &memoryJournal{taken: -1}
	crawl(t, o, web.URL("a.test", "/"))
	o.Journal = nil
	i, err := OpenImporter(o, nil)
	if err == nil {
		_, err = i.Add(t.Context(), additions(t, web.URL("a.test", "/1")))
		err = errors.Join(err, i.Close())
	}
	assert.Is(t, err, storage.ErrLogged, "an import")
}
