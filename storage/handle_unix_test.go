//go:build unix && !android

package storage

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// TestReopen opens the file anew before as many commits as it can, while others read: all that was committed is there, what is read
// is never half of it, and nobody else can have the file for a moment.
func TestReopen(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	s.reopenAfter = 0
	mustCommit(t, s, &Batch{Found: found(t, s, numbered("a.example", 0, 10)...)})
	var stopped atomic.Bool
	var others sync.WaitGroup
	defer others.Wait()
	defer stopped.Store(true)
	for range 3 {
		others.Go(func() {
			for !stopped.Load() {
				h, err := s.Heads(HeadsRequest{Host: 1, Queued: 4, Now: someTime})
				if err != nil || len(h.Queued) != 4 {
					t.Errorf("heads: %d, %v", len(h.Queued), err)
					return
				}
				time.Sleep(500 * time.Microsecond)
			}
		})
	}
	others.Go(func() {
		for !stopped.Load() {
			if err := takenByOther(s.Path()); !errors.Is(err, ErrInUse) {
				t.Errorf("the file is not locked: %v", err)
				return
			}
		}
	})
	urls := 10
	for reopened := 0; reopened < 20; urls += 10 {
		if urls > 20_000 {
			t.Fatalf("the file was opened anew %d times", reopened)
		}
		before := s.db
		mustCommit(t, s, &Batch{Found: found(t, s, numbered("a.example", urls, urls+10)...)})
		if s.db != before {
			reopened++
		}
	}
	stopped.Store(true)
	others.Wait()
	if n := s.Counters().URLs; n != uint64(urls) {
		t.Errorf("%d URLs, want %d", n, urls)
	}
	if n := openDescriptors(t, s.Path()); n > 1 {
		t.Errorf("the file is open %d times", n)
	}
}

// takenByOther looks at the lock of a file as another process does.
func takenByOther(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(lockedByOther(f), f.Close())
}

// openDescriptors counts how often the process has a file open, 0 where the system does not tell.
func openDescriptors(t *testing.T, path string) (n int) {
	links, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	for _, l := range links {
		if to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%s", l.Name())); err == nil && to == path {
			n++
		}
	}
	return n
}

// TestReopenOnlyWhenDue: not before so much has changed, and not under a reader.
func TestReopenOnlyWhenDue(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	commit := func(n int) (reopened bool) {
		before := s.db
		mustCommit(t, s, &Batch{Found: found(t, s, numbered("a.example", n, n+10)...)})
		return s.db != before
	}
	s.reopenAfter = 1
	if commit(0) {
		t.Error("opened anew before anything changed")
	}
	err := s.view(func(tx *bolt.Tx) error {
		if commit(10) {
			t.Error("opened anew under a reader")
		}
		if b := tx.Bucket(bucketHost); b == nil {
			t.Error("the reader has lost its file")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !commit(20) {
		t.Error("not opened anew when nobody read any more")
	}
	s.reopenAfter = reopenAfter
	if commit(30) {
		t.Error("opened anew after a few pages")
	}
}

// TestReopenFails: where the file cannot be mapped a second time, the store goes on with the first map and keeps its lock.
func TestReopenFails(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	s.reopenAfter, s.options.InitialMmapSize = 0, 1<<62
	before := s.db
	for n := range 5 {
		mustCommit(t, s, &Batch{Found: found(t, s, numbered("a.example", n*10, n*10+10)...)})
		if err := takenByOther(s.Path()); !errors.Is(err, ErrInUse) {
			t.Fatalf("the file is not locked: %v", err)
		}
	}
	if s.db != before {
		t.Error("the map was exchanged")
	}
	if n := openDescriptors(t, s.Path()); n > 1 {
		t.Errorf("the file is open %d times", n)
	}
}
