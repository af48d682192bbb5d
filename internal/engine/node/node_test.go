package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testOptions are those of a node whose crawls have no workers: they fetch nothing.
func testOptions(t testing.TB) Options {
	o := crawl.DefaultOptions()
	o.DataDir = t.TempDir()
	o.Archive.Dir = filepath.Join(o.DataDir, "output")
	o.Archive.Formats = []string{archive.FormatNone}
	o.Fetch.UserAgent = "amble-test"
	o.MinFree, o.Workers, o.ExitWhenDone, o.Mode = 0, 0, false, frontier.ModeAny
	o.Storage.NoSync = true
	return DefaultOptions(o)
}

func testLog(t testing.TB) *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("AMBLE_TEST_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
}

// running is a node that runs until stop is called, or the test ends.
type running struct {
	*Node
	stop func()
}

func start(t testing.TB, o Options) running {
	t.Helper()
	n := must.Get(Open(o, testLog(t)))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		_, err := n.Run(ctx)
		assert.NoError(t, err)
	})
	stop := sync.OnceFunc(func() {
		cancel()
		over.Wait()
		assert.NoError(t, n.Close())
	})
	t.Cleanup(stop)
	return running{n, stop}
}

func (r running) use(t testing.TB, id string, create bool) (e *crawl.Engine, release func()) {
	t.Helper()
	e, release, err := r.Use(t.Context(), id, create)
	must.Do(t, err)
	return e, release
}

// add adds URLs to a crawl.
func (r running) add(t testing.TB, id string, urls ...string) {
	t.Helper()
	e, release := r.use(t, id, true)
	defer release()
	list := must.Get(e.NewImport(crawl.ImportOptions{}))(t)
	for _, text := range urls {
		u, err := weburl.Parse(text)
		if err == nil {
			err = list.Add(crawl.Addition{URL: u})
		}
		must.Do(t, err)
	}
	must.Do(t, errors.Join(list.Commit(t.Context()), list.Close()))
}

// count is how many URLs a crawl has.
func (r running) count(t testing.TB, id string) uint64 {
	t.Helper()
	e, release := r.use(t, id, false)
	defer release()
	return e.Counters().URLs
}

func (r running) ids(t testing.TB) []string {
	t.Helper()
	return must.Get(r.IDs(t.Context()))(t)
}

// isOpen reports whether a crawl other than DEFAULT is open.
func (r running) isOpen(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crawls[id] != nil
}

// TestDirectoryName: ids of any bytes have directories of their own, and come back from their names.
func TestDirectoryName(t *testing.T) {
	long := strings.Repeat("\xff", MaxID)
	ids := []string{
		"a", "A", "BESPOKE", "bespoke", "example.com", "example.com.", "..", ".", "../..", "a/b", "/etc",
		"a\\b", "con", "NUL", "a b", "\x00", "a\x00", "é", "e\u0301", "c-a", "x-", "x-64", "deleted-1", "-", "_", "%2e",
		long, strings.Repeat("z", MaxID), "default",
	}
	seen := make(map[string]string)
	for _, id := range ids {
		name := directoryName(id)
		other, taken := seen[strings.ToLower(name)]
		assert.True(t, !taken, "%q and %q have the same directory", id, other)
		seen[strings.ToLower(name)] = id
		safe := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
		assert.True(t, len(name) <= 240 && name == filepath.Base(name) && safe, "%q has the directory %q", id, name)
		back, ok := idOf(name)
		assert.True(t, ok && back == id, "%q comes back as %q, %t", id, back, ok)
	}
	// Names that are those of no id, or that another name stands for.
	for _, name := range []string{
		"", "a", "c-", "x-", "c-A", "c-a/b", "x-zz", "x-1", "X-64", "x-c4", "deleted-x", directoryName(Default),
	} {
		id, ok := idOf(name)
		assert.True(t, !ok, "%q is taken for the directory of %q", name, id)
	}
	for _, id := range []string{"", long + "x"} {
		assert.Is(t, checkID(id), ErrID, id)
	}
}

// TestUse: crawls are made on request, hold what they were given, and are there after a
// restart.
func TestUse(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	n := start(t, o)
	if _, _, err := n.Use(t.Context(), "news", false); !errors.Is(err, ErrNoCrawl) {
		t.Errorf("an unknown crawl: %v", err)
	}
	if _, _, err := n.Use(t.Context(), "", true); !errors.Is(err, ErrID) {
		t.Errorf("no id: %v", err)
	}
	n.add(t, "news", "https://a.test/", "https://a.test/1")
	n.add(t, "../x", "https://a.test/2")
	n.add(t, Default, "https://b.test/")
	want := []string{Default, "../x", "news"}
	for range 2 {
		assert.Slice(t, n.ids(t), want, "the crawls")
		for id, urls := range map[string]uint64{Default: 1, "news": 2, "../x": 1} {
			assert.Equal(t, n.count(t, id), urls, id, "URLs")
		}
		n.stop()
		_, _, err := n.Use(t.Context(), "news", false)
		assert.True(t, errors.Is(err, crawl.ErrNotRunning), "after the end: %v", err)
		n = start(t, o)
	}
	entries, err := os.ReadDir(filepath.Join(o.Crawl.DataDir, crawl.CrawlsDir))
	assert.True(t, err == nil && len(entries) == 2, "%v, %v", entries, err)
}

// TestIdle: a crawl is closed when nobody has used it for a while, not while somebody uses it, and not
// while a fetcher has a lease.
func TestIdle(t *testing.T) {
	t.Parallel()
	offline(t)
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(t)
		o.Idle = time.Minute
		web := testweb.Serve(t, testweb.Config{
			Network: memnet.New(memnet.Options{Latency: time.Millisecond}),
			Sites:   []testweb.Site{{Host: "a.test", Handler: testweb.Routes{"/": testweb.Page("a")}}},
		})
		useWeb(&o, web)
		n := start(t, o)
		defer n.stop()
		n.add(t, "a", web.URL("a.test", "/"))
		e, release := n.use(t, "a", false)
		defer func() { release() }()
		time.Sleep(time.Hour)
		must.True(t, e.Status().State == "running", "in use, and %s", e.Status().State)
		release()
		release() // once more does nothing
		time.Sleep(50 * time.Second)
		assert.True(t, n.isOpen("a"), "closed early")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.True(t, !n.isOpen("a"), "still open")
		if n.count(t, "a") != 1 { // it is opened again
			t.Error("the URL is gone")
		}
		e, release = n.use(t, "a", false)
		leases, err := e.Lease(t.Context(),
			remote.Request{Fetcher: "f", N: 1, Wait: time.Minute, Visibility: time.Hour})
		must.True(t, err == nil && len(leases) == 1, "%v, %v", leases, err)
		release()
		time.Sleep(50 * time.Minute)
		assert.True(t, n.isOpen("a"), "closed while a lease is out")
		time.Sleep(13 * time.Minute)
		synctest.Wait()
		assert.True(t, !n.isOpen("a"), "open, and the lease has run out")
	})
}

// useWeb makes the crawls fetch from a web in virtual time.
func useWeb(o *Options, web *testweb.Web) {
	o.Crawl.Fetch.AllowPrivate = true
	o.Crawl.Fetch.Resolver, o.Crawl.Fetch.Dial = web.ResolverAddr(), web.Dial
	o.Crawl.Uptime = func() (time.Time, time.Duration) {
		return time.Now(), time.Since(time.Time{}.AddDate(1998, 0, 0))
	}
}

// offline has package net read its configuration, which keeps a channel that has to come from outside
// of all bubbles.
func offline(t *testing.T) {
	t.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
	_, _ = (&net.Resolver{PreferGo: true, Dial: dial}).LookupHost(t.Context(), "outside.test")
}

// TestDelete: a deleted crawl is gone with its directory, the others stay; its users get an error, and
// one that is used again begins empty.
func TestDelete(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	n := start(t, o)
	n.add(t, "a", "https://a.test/", "https://a.test/1", "https://b.test/")
	n.add(t, "b", "https://a.test/")
	n.add(t, Default, "https://a.test/", "https://b.test/")
	e, release := n.use(t, "a", false)
	leased := make(chan error)
	go func() {
		_, err := e.Lease(t.Context(), remote.Request{Fetcher: "f", N: 1, Wait: time.Hour, Host: "a.test"})
		leased <- err
		release()
	}()
	deleted := make(chan uint64, 2)
	go func() {
		urls, err := n.Delete(t.Context(), "a")
		assert.NoError(t, err)
		deleted <- urls
	}()
	assert.Is(t, <-leased, crawl.ErrNotRunning, "a user of a deleted crawl")
	assert.Equal(t, <-deleted, 3, "URLs deleted")
	assert.Slice(t, n.ids(t), []string{Default, "b"}, "the crawls")
	for _, id := range []string{"a", "none"} {
		assert.Fails(n.Delete(t.Context(), id))(t, ErrNoCrawl, id)
	}
	n.add(t, "a", "https://c.test/")
	assert.Equal(t, n.count(t, "a"), 1, "the new crawl URLs")
	if urls, err := n.Delete(t.Context(), Default); err != nil || urls != 2 || n.count(t, Default) != 0 {
		t.Errorf("DEFAULT: %d, %v, %d left", urls, err, n.count(t, Default))
	}
}

// TestDeleteDamaged: a crawl whose database cannot be opened can be deleted.
func TestDeleteDamaged(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	n := start(t, o)
	n.add(t, "a", "https://a.test/")
	n.stop()
	dir := filepath.Join(o.Crawl.DataDir, crawl.CrawlsDir, "c-a")
	must.Do(t, os.WriteFile(filepath.Join(dir, storage.FileName), []byte(strings.Repeat("x", 20_000)),
		0o600))
	n = start(t, o)
	for range 2 {
		_, _, err := n.Use(t.Context(), "a", true)
		must.True(t, err != nil, "a damaged crawl can be used")
	}
	n.Node.log = slog.New(slog.DiscardHandler)
	must.Get(n.Delete(t.Context(), "a"))(t)
	assert.Fails(os.Stat(dir))(t, os.ErrNotExist)
}

// TestDeleteIsResumed: what a deletion has left at a crash is removed with the next start, and is no
// crawl.
func TestDeleteIsResumed(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	n := start(t, o)
	n.add(t, "a", "https://a.test/")
	n.stop()
	parent := filepath.Join(o.Crawl.DataDir, crawl.CrawlsDir)
	must.Do(t, os.Rename(filepath.Join(parent, "c-a"), filepath.Join(parent, deletedName+"1")))
	n = start(t, o)
	assert.Slice(t, n.ids(t), []string{Default}, "the crawls")
	entries, err := os.ReadDir(parent)
	assert.True(t, err == nil && len(entries) == 0, "%v, %v", entries, err)
}

// TestBounds: no more crawls are made, and no more are open, than there may be. An idle one makes room.
func TestBounds(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.MaxCrawls, o.MaxOpen = 3, 2
	n := start(t, o)
	for _, id := range []string{"a", "b", "c"} {
		n.add(t, id, "https://a.test/")
	}
	if open := len(n.crawls); open != 2 || n.isOpen("a") {
		t.Errorf("%d crawls are open, want 2; a is: %t", open, n.isOpen("a"))
	}
	_, _, err := n.Use(t.Context(), "d", true)
	assert.True(t, errors.Is(err, ErrTooMany), "a fourth crawl: %v", err)
	_, first := n.use(t, "a", false)
	_, second := n.use(t, "b", false)
	if _, _, err := n.Use(t.Context(), "c", false); !errors.Is(err, ErrTooMany) {
		t.Errorf("a third one open: %v", err)
	}
	first()
	assert.True(t, n.count(t, "c") == 1 && !n.isOpen("a"), "no room was made")
	second()
}

// TestTogether: many users of a few crawls, which are deleted and closed meanwhile, see whole crawls
// or errors, and the node ends with all of them closed.
func TestTogether(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.MaxOpen, o.Idle = 3, 10*time.Millisecond
	n := start(t, o)
	var users sync.WaitGroup
	for i := range 8 {
		users.Go(func() {
			for j := range 20 {
				id := fmt.Sprintf("c%d", (i+j)%5)
				if (i*7+j)%9 == 0 {
					_, err := n.Delete(t.Context(), id)
					assert.True(t, err == nil || errors.Is(err, ErrNoCrawl) || errors.Is(err, ErrTooMany), "%v", err)
					continue
				}
				e, release, err := n.Use(t.Context(), id, true)
				if err == nil {
					_, err = e.IsIdle(t.Context())
					release()
				}
				assert.True(t, err == nil || errors.Is(err, ErrTooMany) || errors.Is(err, crawl.ErrNotRunning), "%v",
					err)
			}
		})
	}
	users.Wait()
	n.stop()
	assert.Equal(t, len(n.crawls), 0, "crawls are open after the end")
}

// TestOverviews: all crawls are listed, those that are open with their numbers, and the list opens
// none.
func TestOverviews(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	n := start(t, o)
	n.add(t, "a", "https://a.test/", "https://b.test/")
	n.stop()
	n = start(t, o)
	n.add(t, "b", "https://a.test/")
	list, err := n.Overviews(t.Context())
	must.True(t, err == nil && len(list) == 3, "%v, %v", list, err)
	for i, want := range []struct {
		id   string
		open bool
	}{{Default, true}, {"a", false}, {"b", true}} {
		if got := list[i]; got.ID != want.id || got.Open != want.open || got.Open != (got.State != "") {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	assert.True(t, !n.isOpen("a"), "the list has opened a crawl")
	if s, err := n.StatusOf(t.Context(), "a"); err != nil || s.State == "" {
		t.Errorf("%+v, %v", s, err)
	}
	assert.Fails(n.StatusOf(t.Context(), "none"))(t, inspect.ErrUnknown, "an unknown crawl")
}
