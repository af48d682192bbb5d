package crawl

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/badsync"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// childDir is the environment variable that makes the test binary a crawler: a
// process of its own that can be killed.
const childDir = "AMBLE_CRAWL_CHILD"

// childConfig is what the child crawls, in a file of its directory.
type childConfig struct {
	Seeds    []string
	Resolver string
	Delay    time.Duration
	IPRate   float64 // 0: addresses have no budget
	Formats  []string
	Compress string
	Mode     frontier.Mode
	Recrawl  *recrawl.Options // the child is a daemon that recrawls pages, until it is killed
	BadSync  int              // the number of its sync of the database that fails; 0: none does
	Groups   []frontier.Group
	Workers  int    // 0: the default
	MaxPages uint32 // of each seed
	// Requisites: what pages are made of is fetched too.
	Requisites bool
	CAFile     string // the authorities of a web with TLS
	OptsOut    string // a host that the child opts out, once, when optOutFile is there
	Drops      string // a part of URLs that the child leaves out as soon as it runs; it makes droppedFile then
	Kills      string // the end of the URLs that kill the child when they have been answered; empty: none
	// Requests is how many of them the child makes before it ends; 0: that does not end it. Ahead is how far its
	// clock is ahead.
	Requests int64
	Ahead    time.Duration
}

// childOptions are those of the child and of whoever looks at what it left.
func childOptions(dir string, c childConfig) Options {
	o := DefaultOptions()
	o.MinFree = 0
	o.DataDir, o.Archive.Dir = filepath.Join(dir, "data"), filepath.Join(dir, "output")
	o.Archive.Formats, o.Archive.MaxFileBytes, o.Archive.Compress = c.Formats, 64<<10, c.Compress
	o.Fetch.UserAgent, o.Fetch.AllowPrivate, o.Fetch.Resolver = "amble-test", true, c.Resolver
	o.GiveUpAfter = 20 * time.Second
	o.Frontier.Politeness.Delay, o.Frontier.Groups = c.Delay, c.Groups
	o.Frontier.Politeness.IPRate = c.IPRate
	o.Mode, o.Requisites.Fetch = c.Mode, c.Requisites
	o.Fetch.CAFile = c.CAFile
	if c.Workers > 0 {
		o.Workers = c.Workers
	}
	o.Recrawl, o.ExitWhenDone = c.Recrawl, c.Recrawl == nil
	if c.Ahead > 0 {
		o.Now = func() time.Time { return time.Now().Add(c.Ahead) }
	}
	return o
}

// crawlAsChild is the child: it crawls what it finds in dir until that is done.
func crawlAsChild(dir string, c childConfig) error {
	var seeds []Seed
	for _, s := range c.Seeds {
		u, err := weburl.Parse(s)
		if err != nil {
			return err
		}
		s := Seed{URL: u, Source: testkit.ChildFile}
		s.MaxPages = c.MaxPages
		seeds = append(seeds, s)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if c.BadSync > 0 {
		if err := badsync.Install(func(call badsync.Call, n int) bool {
			return call == badsync.Fdatasync &&
				n == c.BadSync
		}); err != nil {
			return err
		}
	}
	e, err := Open(childOptions(dir, c), log)
	if err != nil {
		return err
	}
	if c.Kills != "" {
		e.Observe(&killer{at: c.Kills})
	}
	if c.OptsOut != "" {
		go optOutAsChild(e, dir, c.OptsOut)
	}
	if c.Drops != "" {
		go dropAsChild(e, dir, c.Drops)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if c.Requests > 0 {
		l := &requestLimit{end: cancel}
		l.left.Store(c.Requests)
		e.Observe(l)
	}
	_, err = e.Run(ctx, seeds)
	return errors.Join(err, e.Close())
}

// requestLimit is an Observer that ends a crawl after so many requests.
type requestLimit struct {
	left atomic.Int64
	end  func()
}

// Committed is part of Observer.
func (l *requestLimit) Committed(time.Duration, int) {}

// Requested is part of Observer.
func (l *requestLimit) Requested(requestlog.Request) {
	if l.left.Add(-1) == 0 {
		l.end()
	}
}

// optOutFile has a child opt a host out. It is removed when the opt-out is recorded.
const optOutFile = "opt-out"

// optOutAsChild opts a host out when it is told to.
func optOutAsChild(e *Engine, dir, host string) {
	path := filepath.Join(dir, optOutFile)
	for !exists(path) {
		time.Sleep(time.Millisecond)
	}
	if e.AddOptOut(context.Background(), optout.Entry{Scope: optout.ScopeHost, Value: host, At: time.Now()}) == nil {
		_ = os.Remove(path)
	}
}

// droppedFile is there when a child has left out what it is to leave out, and what an earlier one was to.
const droppedFile = "dropped"

// dropAsChild leaves URLs out.
func dropAsChild(e *Engine, dir, part string) {
	s := sweep.Selection{Drop: true, Contains: part}
	for {
		_, err := e.Retry(context.Background(), s, func(sweep.Retried) error { return nil })
		for left := err == nil; left; time.Sleep(time.Millisecond) {
			m, wrong := e.store.Marks(sweep.MarkRetry)
			left = wrong != nil || len(m) > 0
		}
		if err == nil {
			_ = os.WriteFile(filepath.Join(dir, droppedFile), nil, 0o600)
		}
		if !errors.Is(err, ErrNotRunning) {
			return
		}
		time.Sleep(time.Millisecond) // it does not run yet
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// newChild prepares a directory for children that crawl a web.
func newChild(t testing.TB, web *testweb.Web, delay time.Duration) (dir string, o Options) {
	t.Helper()
	return prepareChild(t, childConfig{
		Resolver: web.ResolverAddr(), Delay: delay, Seeds: seedsOf(web, web.Sites()),
		Formats: allFormats, Compress: archive.CompressNone,
	})
}

// prepareChild prepares a directory for children.
func prepareChild(t testing.TB, c childConfig) (dir string, o Options) {
	t.Helper()
	dir = t.TempDir()
	testkit.PrepareChild(t, dir, c)
	return dir, childOptions(dir, c)
}

// newestMeta returns where the newer of the two meta pages of a database is, and its transaction.
func newestMeta(f *os.File) (at int64, transaction uint64, err error) {
	b := make([]byte, 80)
	for _, offset := range []int64{0, int64(os.Getpagesize())} {
		if _, err := f.ReadAt(b, offset); err != nil {
			return 0, 0, err
		}
		if n := binary.LittleEndian.Uint64(b[64:]); n > transaction {
			at, transaction = offset, n
		}
	}
	return at, transaction, nil
}

// lastCommit is the last transaction of a database that another process may have open; 0: there is
// no database.
func lastCommit(t testing.TB, dir string) uint64 {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, storage.FileName))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	must.Do(t, err)
	defer f.Close()
	_, transaction, err := newestMeta(f)
	if err != nil && !errors.Is(err, io.EOF) { // it is being made
		t.Fatal(err)
	}
	return transaction
}

// startChild starts a crawler. done gets the result of its Wait.
func startChild(t testing.TB, dir string) (child *exec.Cmd, done <-chan error) {
	t.Helper()
	return testkit.StartChild(t, childDir, dir)
}
