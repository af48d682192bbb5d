package backup

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

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// testBackups returns what makes copies of a database whose bytes are given.
func testBackups(t *testing.T, database func() []byte) (*Maker, *bytes.Buffer) {
	var logged bytes.Buffer
	return &Maker{
		Every: time.Hour, Dir: filepath.Join(t.TempDir(), "backup"), Now: time.Now,
		Log: slog.New(slog.NewTextHandler(&logged, nil)), HasRoom: func(int64) bool { return true },
		Database: func(_ context.Context, w io.Writer, begin func(int64)) error {
			begin(1)
			_, err := w.Write(database())
			return err
		},
	}, &logged
}

// TestSecondCopyIsWhole: a copy that is damaged, or cannot be written, never replaces the one before, and a part that a
// killed process has left is removed.
func TestSecondCopyIsWhole(t *testing.T) {
	s := must.Get(storage.Open(t.TempDir(), storage.Options{}))(t)
	must.Get(s.Commit(&storage.Batch{Ensure: []string{"a.test"}}))(t)
	must.Do(t, s.Close())
	good := must.Get(os.ReadFile(s.Path()))(t)
	content := good
	b, _ := testBackups(t, func() []byte { return content })
	path := filepath.Join(b.Dir, storage.FileName)
	must.Do(t, os.MkdirAll(filepath.Join(b.Dir, backupPart+"1"), 0o750))
	check := func() {
		t.Helper()
		got, err := os.ReadFile(path)
		assert.True(t, err == nil && bytes.Equal(got, good), "the copy has %d bytes, %v", len(got), err)
		if all, err := os.ReadDir(b.Dir); err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
	}
	must.Do(t, b.make(t.Context()))
	check()
	content = bytes.Clone(good)
	for i := range content[2*4096:] {
		content[2*4096+i] ^= 0x20
	}
	if err := b.make(t.Context()); !errors.Is(err, storage.ErrCorrupt) && !errors.Is(err, storage.ErrNotDatabase) {
		t.Errorf("a damaged copy: %v", err)
	}
	check()
	content, b.HasRoom = good, func(int64) bool { return false }
	assert.Is(t, b.make(t.Context()), errNoRoom, "without room")
	check()
}

// TestSecondCopyAgain: after a failure the copy is tried again a minute later, and the context ends the waiting.
func TestSecondCopyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tried := 0
		b, logged := testBackups(t, func() []byte { tried++; return nil })
		ctx, cancel := context.WithTimeout(t.Context(), 5*backupAgain+time.Second)
		defer cancel()
		b.Run(ctx)
		assert.True(t, tried == 6 && bytes.Contains(logged.Bytes(), []byte("no new second copy")),
			"%d times in 5 minutes: %s", tried, logged)
	})
}
