package crawl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestSecondCopy: a running crawl has a second copy of its database that can be crawled from, and makes it again when
// it is old enough.
func TestSecondCopy(t *testing.T) {
	t.Parallel()
	web := startWeb(t, site("a.test", "", paths("/", 5), nil))
	o := testOptions(t, web)
	o.BackupEvery = time.Hour
	_, stop := daemon(t, o, web.URL("a.test", "/"))
	path := filepath.Join(o.DataDir, BackupDir, storage.FileName)
	eventually(t, "there is a copy", func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
	eventually(t, "all pages are requested", func() bool { return len(web.Requests().Pages()) >= 5 })
	stop()
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	_, stop = daemon(t, o, web.URL("a.test", "/"))
	eventually(t, "there is a newer copy", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.ModTime().After(old)
	})
	stop()
	s, err := storage.Open(filepath.Dir(path), storage.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := s.Counters().Of(storage.Fetched); n < 5 {
		t.Errorf("the copy has %d pages", n)
	}
}

// testBackups returns what makes copies of a database of which the bytes are given.
func testBackups(t *testing.T, database func() []byte) (*backups, *bytes.Buffer) {
	var logged bytes.Buffer
	return &backups{
		every: time.Hour, dir: filepath.Join(t.TempDir(), BackupDir), now: time.Now,
		log: slog.New(slog.NewTextHandler(&logged, nil)), hasRoom: func(int64) bool { return true },
		database: func(_ context.Context, w io.Writer, begin func(int64)) error {
			begin(1)
			_, err := w.Write(database())
			return err
		},
	}, &logged
}

// TestSecondCopyIsWhole: a copy that is damaged, or cannot be written, never replaces the one before, and a part that a
// killed process has left is removed.
func TestSecondCopyIsWhole(t *testing.T) {
	s, err := storage.Open(t.TempDir(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(&storage.Batch{Ensure: []string{"a.test"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	content := good
	b, _ := testBackups(t, func() []byte { return content })
	path := filepath.Join(b.dir, storage.FileName)
	if err := os.MkdirAll(filepath.Join(b.dir, backupPart+"1"), 0o750); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, good) {
			t.Errorf("the copy has %d bytes, %v", len(got), err)
		}
		if all, err := os.ReadDir(b.dir); err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
	}
	if err := b.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	check()
	content = bytes.Clone(good)
	for i := range content[2*4096:] {
		content[2*4096+i] ^= 0x20
	}
	if err := b.make(t.Context()); !errors.Is(err, storage.ErrCorrupt) && !errors.Is(err, storage.ErrNotDatabase) {
		t.Errorf("a damaged copy: %v", err)
	}
	check()
	content, b.hasRoom = good, func(int64) bool { return false }
	if err := b.make(t.Context()); !errors.Is(err, errNoRoom) {
		t.Errorf("without room: %v", err)
	}
	check()
}

// TestSecondCopyAgain: after a failure the copy is tried again a minute later, and the context ends the waiting.
func TestSecondCopyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tried := 0
		b, logged := testBackups(t, func() []byte { tried++; return nil })
		ctx, cancel := context.WithTimeout(t.Context(), 5*backupAgain+time.Second)
		defer cancel()
		b.run(ctx)
		if tried != 6 || !bytes.Contains(logged.Bytes(), []byte("no new second copy")) {
			t.Errorf("%d times in 5 minutes: %s", tried, logged)
		}
	})
}
