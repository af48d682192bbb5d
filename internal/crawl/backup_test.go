package crawl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// copiedStore knows whether a copy is being read from it.
type copiedStore struct {
	store
	reading atomic.Bool
}

func (s *copiedStore) Backup(begin func(int64) (io.Writer, error)) (int64, error) {
	s.reading.Store(true)
	defer s.reading.Store(false)
	return s.store.Backup(begin)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// openForCopies opens an engine with a database, , which copies are made.
func openForCopies(t *testing.T, log slog.Handler, now func() time.Time) (*Engine, *copiedStore) {
	t.Helper()
	web := startWeb(t, site("a.test", "", paths("/", 5), nil))
	o := testOptions(t, web)
	crawl(t, o, web.URL("a.test", "/"))
	o.Now = now
	e, err := Open(o, slog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &copiedStore{store: e.store}
	e.store = s
	return e, s
}

// TestSlowCopy: whoever takes a copy of the database slowly keeps no commit from using its pages
// again.
func TestSlowCopy(t *testing.T) {
	t.Parallel()
	e, s := openForCopies(t, slog.DiscardHandler, nil)
	var copied bytes.Buffer
	size := int64(-1)
	n, err := e.Backup(context.Background(), writerFunc(func(p []byte) (int, error) {
		if s.reading.Load() {
			t.Error("the database is being read while a client takes its time")
		}
		if _, err := e.Backup(context.Background(), io.Discard, func(int64) {}); !errors.Is(err, ErrCopying) {
			t.Errorf("a second copy at a time: %v", err)
		}
		return copied.Write(p)
	}), func(n int64) { size = n })
	if err != nil || n != int64(copied.Len()) || n != size {
		t.Fatalf("%d bytes of %d, %d were announced: %v", n, copied.Len(), size, err)
	}
	if e.shared.spool.Files() != 0 || e.shared.spool.Held() != 0 {
		t.Errorf("%d files and %d bytes are left", e.shared.spool.Files(), e.shared.spool.Held())
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, storage.FileName), copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := storage.Open(dir, storage.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if c.Counters() != e.store.Counters() {
		t.Errorf("the copy has %+v, the database %+v", c.Counters(), e.store.Counters())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestCopyWithoutRoom: where the disk has no room for a copy next to the crawl, the copy has to be
// taken in time.
func TestCopyWithoutRoom(t *testing.T) {
	t.Parallel()
	var passed atomic.Int64
	log := &messages{count: make(map[string]int)}
	e, s := openForCopies(t, log, func() time.Time { return time.Now().Add(time.Duration(passed.Load())) })
	e.space.free = func(string) (uint64, error) { return e.space.least + copyMargin, nil }
	take := func(each time.Duration) (n int64, err error) {
		return e.Backup(context.Background(), writerFunc(func(p []byte) (int, error) {
			if !s.reading.Load() {
				t.Error("the copy was made on a disk without room")
			}
			passed.Add(int64(each))
			return len(p), nil
		}), func(int64) {})
	}
	if n, err := take(0); err != nil || n == 0 {
		t.Errorf("taken at once: %d bytes, %v", n, err)
	}
	if _, err := take(2 * time.Minute); !errors.Is(err, ErrSlowCopy) ||
		log.of("copy of the database is not complete") != 1 {
		t.Errorf("taken too slowly: %v", err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Backup(gone, io.Discard, func(int64) {}); !errors.Is(err, context.Canceled) ||
		log.of("copy of the database is not complete") != 1 {
		t.Errorf("nobody wants it any more: %v", err)
	}
}
