package crawl

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestFullFileSystem is TestFullDisk with a file system that really is full, in real time.
func TestFullFileSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("needs the right to mount a file system: %v", err)
	}
	defer func() {
		must.Do(t, syscall.Unmount(dir, 0))
	}()
	web, seeds := fullWeb(t, func(sites ...testweb.Site) *testweb.Web { return startWeb(t, sites...) })
	o := testOptions(t, web)
	o.Archive.Formats = allFormats
	o.DataDir, o.Archive.Dir = filepath.Join(dir, "data"), filepath.Join(dir, "output")
	log := &messages{count: make(map[string]int)}
	e := must.Get(Open(o, slog.New(log)))(t)
	filler := filepath.Join(dir, "filler")
	fill := func() {
		f, err := os.Create(filler)
		if err != nil {
			t.Error(err)
			return
		}
		for size := 64 << 10; size > 0; { // to the last byte
			if _, err := f.Write(make([]byte, size)); err != nil {
				size /= 2
			}
		}
		assert.NoError(t, f.Close())
	}
	ride(t, e, web, seeds, log, "disk is full", fill, func() {
		assert.NoError(t, os.Remove(filler))
	})
	checkWhole(t, web, o, 0)
}
