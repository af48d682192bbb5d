package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// BenchmarkRestart does what a process has to do with its store before the first fetch: open it,
// read which hosts have work and the counts of all states, and read one queue's head. With plain
// rows that takes reading every URL for the counts. In the cold case the file is not in the page
// cache. Rows that were filled in the order of their keys are in that order in the file too, so
// they are faster to read from the disk than rows in random order.
func BenchmarkRestart(b *testing.B) {
	for _, size := range benchSizes(b) {
		name := fmt.Sprintf("hosts=%d/urls=%d", benchHosts, size)
		b.Run(name, func(b *testing.B) {
			dir := grownStore(b, size)
			benchRestart(b, filepath.Join(dir, FileName), func(b *testing.B) { restartStore(b, dir, size) })
		})
		b.Run("rows/"+name, func(b *testing.B) {
			dir := grownRows(b, size)
			benchRestart(b, filepath.Join(dir, rowsFile), func(b *testing.B) { restartRows(b, dir, size) })
		})
	}
}

func benchRestart(b *testing.B, path string, restart func(*testing.B)) {
	for _, cache := range []string{"warm", "cold"} {
		b.Run("cache="+cache, func(b *testing.B) {
			for b.Loop() {
				if cache == "cold" {
					b.StopTimer()
					forgetCached(b, path)
					b.StartTimer()
				}
				restart(b)
			}
		})
	}
}

func restartStore(b *testing.B, dir string, size int) {
	s := benchOpen(b, dir, Options{})
	defer benchClose(b, s)
	hosts := 0
	if err := s.Hosts(func(h *Host) error { hosts++; return nil }); err != nil || hosts != benchHosts {
		b.Fatal(hosts, err)
	}
	h, err := s.Heads(HeadsRequest{Host: 1, Queued: 16, Due: 16, Now: someTime})
	if err != nil || len(h.Queued) == 0 || s.Counters().Of(Queued) != uint64(size) {
		b.Fatal(len(h.Queued), s.Counters().Of(Queued), err)
	}
}

func restartRows(b *testing.B, dir string, size int) {
	r := openRows(b, dir)
	defer r.close(b)
	n := r.hosts()
	must.True(b, n == benchHosts, "%d hosts have work", n)
	_, ok := r.next(benchHostName(0))
	if n := r.states()[Queued]; !ok || n != size {
		b.Fatalf("%d URLs wait, want %d", n, size)
	}
}

// forgetCached removes a file that is not open from the page cache.
func forgetCached(b *testing.B, path string) {
	f := must.Get(os.Open(path))(b)
	must.Do(b, errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close()))
}
