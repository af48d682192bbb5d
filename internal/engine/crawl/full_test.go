package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// messages is a log that counts what it is told.
type messages struct {
	mu    sync.Mutex
	count map[string]int
}

func (m *messages) Enabled(context.Context, slog.Level) bool { return true }
func (m *messages) WithAttrs([]slog.Attr) slog.Handler       { return m }
func (m *messages) WithGroup(string) slog.Handler            { return m }
func (m *messages) Handle(_ context.Context, r slog.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count[r.Message]++
	return nil
}

// of is how often a message was logged that has all of a text.
func (m *messages) of(text string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for message, count := range m.count {
		if strings.Contains(message, text) {
			n += count
		}
	}
	return n
}

// disk is one that can be full.
type testDisk struct{ full atomic.Bool }

func (d *testDisk) write() error {
	if d.full.Load() {
		return fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return nil
}

// free is the room on the disk, which still takes what is written.
func (d *testDisk) free(string) (uint64, error) {
	if d.full.Load() {
		return 1 << 19, nil
	}
	return 1 << 30, nil
}

type fullStore struct {
	store
	disk *testDisk
}

func (s *fullStore) Commit(b *storage.Batch) (storage.Result, error) {
	if err := s.disk.write(); err != nil {
		return storage.Result{}, fmt.Errorf("%w: %w", storage.ErrNoSpace, err)
	}
	return s.store.Commit(b)
}

// fillable runs a crawl whose database is on a disk that can be full, until the test ends. Its seed is
// fetched.
func fillable(t *testing.T, web *testweb.Web) (*Engine, *testDisk) {
	t.Helper()
	o := testOptions(t, web)
	o.ExitWhenDone = false
	e := must.Get(Open(o, testLog(t)))(t)
	d := new(testDisk)
	e.store = &fullStore{e.store, d}
	runDaemon(t, e, web.URL("a.test", "/"))
	testkit.Until(t, "the seed is fetched", func() bool { return e.store.Counters().Of(storage.Fetched) == 1 })
	return e, d
}

type fullLedger struct {
	ledger
	disk  *testDisk
	group []starts.Start
}

func (l *fullLedger) Append(s starts.Start) (uint64, error) {
	offset := l.Add(s)
	return offset, l.Flush()
}

func (l *fullLedger) Add(s starts.Start) uint64 {
	l.group = append(l.group, s)
	return l.ledger.Offset()
}

func (l *fullLedger) Flush() (err error) {
	group := l.group
	if l.group = nil; len(group) == 0 {
		return nil
	}
	if err := l.disk.write(); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrNoSpace, err)
	}
	for _, s := range group {
		_, appended := l.ledger.Append(s)
		err = errors.Join(err, appended)
	}
	return err
}

// fullOutput fails as the archive does: the files are back at the last mark.
type fullOutput struct {
	output
	disk *testDisk
	last []archive.Mark
}

func (o *fullOutput) Sync() (marks []archive.Mark, err error) {
	if err := o.disk.write(); err != nil {
		return nil, errors.Join(err, o.output.Rollback(o.last))
	}
	o.last, err = o.output.Sync()
	return o.last, err
}

// fullWeb has 100 pages on four hosts.
func fullWeb(t *testing.T, serve func(...testweb.Site) *testweb.Web) (*testweb.Web, []Seed) {
	var sites []testweb.Site
	for i := range 4 {
		sites = append(sites, site(fmt.Sprintf("h%d.test", i), "", paths("/", 24), nil))
	}
	web := serve(sites...)
	seeds := seedList(t, seedsOf(web, web.Sites())...)
	return web, seeds
}

// ride starts a crawl, fills the disk on the way, looks whether it stands still and
// says so, makes room and waits for the end.
func ride(t *testing.T, e *Engine, web *testweb.Web, seeds []Seed, log *messages, says string, fill, free func()) {
	ended := make(chan error, 1)
	go func() {
		_, err := e.Run(context.Background(), seeds)
		ended <- err
	}()
	wait := func(what string, done func() bool) {
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			select {
			case err := <-ended:
				t.Fatalf("the crawl ended before %s: %v", what, err)
			case <-time.After(5 * time.Millisecond):
			}
			if done() {
				return
			}
		}
		t.Fatalf("no %s; status %+v", what, e.Status())
	}
	wait("20 requests", func() bool { return web.Served() >= 20 })
	fill()
	wait("stall", func() bool { s := e.Status(); return s.State == "stalled" && s.InFlight == 0 && s.Reason != "" })
	requested := web.Served()
	beats(t, e, 3) // a commit is tried again each second
	assert.Equal(t, web.Served()-requested, 0, "requests on a full disk")
	assert.Equal(t, log.of(says), 1, says, "was said times")
	free()
	must.Do(t, <-ended)
	assert.Equal(t, log.of("going on"), 1, "that there is room again was said times")
	assert.NoError(t, e.Close())
}

// TestFullDisk: whatever cannot be written, dispatching stops at once, nothing is
// lost or repeated, and the crawl goes on when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]func(*Engine, *testDisk){
		"store":  func(e *Engine, d *testDisk) { e.store = &fullStore{e.store, d} },
		"ledger": func(e *Engine, d *testDisk) { e.ledger = &fullLedger{e.ledger, d, nil} },
		"output": func(e *Engine, d *testDisk) { e.files.output = &fullOutput{output: e.files.output, disk: d} },
		"room":   func(e *Engine, d *testDisk) { e.space.Least, e.space.Free = 1<<20, d.free },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				web, seeds := fullWeb(t, serve)
				o := testOptions(t, web)
				o.Frontier.Politeness.Delay = time.Second // most requests are still to come when the disk is full
				log := &messages{count: make(map[string]int)}
				e := must.Get(Open(o, slog.New(log)))(t)
				var d testDisk
				on(e, &d)
				ride(t, e, web, seeds, log, "disk is full", func() { d.full.Store(true) },
					func() { d.full.Store(false) })
				checkWhole(t, web, o, 0)
			})
		})
	}
}

// TestOutputDirectoryGone: while the directory of the output is gone the crawl stands still and
// says so. When it is back, all goes on, in every format.
func TestOutputDirectoryGone(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web, seeds := fullWeb(t, serve)
		o := testOptions(t, web)
		o.Archive.Dir = filepath.Join(t.TempDir(), "output")
		o.Archive.Formats, o.Archive.MaxFileBytes = allFormats, 2<<10 // so that new files are begun all the time
		log := &messages{count: make(map[string]int)}
		e := must.Get(Open(o, slog.New(log)))(t)
		move := func(from, to string) func() {
			return func() {
				assert.NoError(t, os.Rename(from, to))
			}
		}
		away := o.Archive.Dir + ".away"
		ride(t, e, web, seeds, log, "output cannot be written", move(o.Archive.Dir, away), move(away, o.Archive.Dir))
		checkWhole(t, web, o, 0)
	})
}

// checkWhole: all pages are fetched and in the output, at most so many of them twice.
func checkWhole(t *testing.T, web *testweb.Web, o Options, repeats int) {
	t.Helper()
	assert.Equal(t, len(web.Requests().Pages().CountByPath()), 100, "pages were requested")
	assert.AtMost(t, len(web.Requests().Repeats()), repeats, "requested more than once")
	checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
	checkOutput(t, o)
}

// TestStopOnFullDisk: a crawl that is told to stop on a full disk ends within the
// grace with that error; what was not committed is requested again.
func TestStopOnFullDisk(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web, seeds := fullWeb(t, serve)
		o := testOptions(t, web)
		o.ShutdownGrace = 100 * time.Millisecond
		e := must.Get(Open(o, slog.New(slog.DiscardHandler)))(t)
		var d testDisk
		e.store = &fullStore{e.store, &d}
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			for web.Served() < 20 {
				time.Sleep(time.Millisecond)
			}
			d.full.Store(true)
			for e.Status().State != "stalled" {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		sum, err := e.Run(ctx, seeds)
		assert.True(t, errors.Is(err, storage.ErrNoSpace) && sum.Stopped(), "stopped: %t, error: %v", sum.Stopped(),
			err)
		assert.NoError(t, e.Close())
		assert.Not(t, len(stored(t, o.DataDir)), 0, "what was committed is gone")
		checkOutput(t, o)
		crawl(t, o)
		checkWhole(t, web, o, 30)
	})
}

// TestStopWithLittleRoom: what is left free on the disk is there for the end, so
// a crawl that is told to stop loses nothing.
func TestStopWithLittleRoom(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web, seeds := fullWeb(t, serve)
		o := testOptions(t, web)
		o.MinFree = 1 << 20
		e := must.Get(Open(o, slog.New(slog.DiscardHandler)))(t)
		var d testDisk
		e.space.Free = d.free
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			for web.Served() < 20 {
				time.Sleep(time.Millisecond)
			}
			d.full.Store(true)
			for e.Status().State != "stalled" {
				time.Sleep(time.Millisecond)
			}
			reason := e.Status().Reason
			assert.True(t, strings.Contains(reason, "storage.min_free") && strings.Contains(reason, o.DataDir),
				"the reason is %q", reason)
			cancel()
		}()
		if sum, err := e.Run(ctx, seeds); err != nil || !sum.Stopped() {
			t.Errorf("stopped: %t, error: %v", sum.Stopped(), err)
		}
		assert.NoError(t, e.Close())
		checkOutput(t, o)
		o.MinFree = 0
		crawl(t, o)
		checkWhole(t, web, o, 0)
	})
}

// TestSecondCopy: a running crawl has a second copy of its database that can be crawled from, and makes it again when
// it is old enough.
func TestSecondCopy(t *testing.T) {
	t.Parallel()
	web := startWeb(t, site("a.test", "", paths("/", 5), nil))
	o := testOptions(t, web)
	o.BackupEvery = time.Hour
	_, stop := daemon(t, o, web.URL("a.test", "/"))
	path := filepath.Join(o.DataDir, BackupDir, storage.FileName)
	testkit.Until(t, "there is a copy", func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
	testkit.Until(t, "all pages are requested", func() bool { return len(web.Requests().Pages()) >= 5 })
	stop()
	old := time.Now().Add(-2 * time.Hour)
	must.Do(t, os.Chtimes(path, old, old))
	_, stop = daemon(t, o, web.URL("a.test", "/"))
	testkit.Until(t, "there is a newer copy", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.ModTime().After(old)
	})
	stop()
	s := must.Get(storage.Open(filepath.Dir(path), storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	assert.AtLeast(t, s.Counters().Of(storage.Fetched), 5, "the copy pages")
}
