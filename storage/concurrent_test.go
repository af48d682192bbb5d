package storage

import (
	"sync"
	"testing"
)

// TestConcurrentReaders reads all that a store gives to other goroutines while batches are
// committed. The race detector judges; what is read is one commit's or another's.
func TestConcurrentReaders(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	mustCommit(t, s, crashBatch(s, 0))
	known := parse(t, "https://host1.example/0/1")
	reads := []func() error{
		func() error { return s.Hosts(func(*Host) error { return nil }) },
		func() error { _, err := s.HostByName("host1.example"); return err },
		func() error { _, err := s.URLs(1, 0, 50, func(Head) {}); return err },
		func() error { _, err := s.Heads(HeadsRequest{Host: 1, Queued: 9, Due: 9, Now: someTime}); return err },
		func() error { _, err := s.URL(1, 0); return err },
		func() error { _, err := s.Traps(1); return err },
		func() error { _, err := s.Marks("batch"); return err },
		func() error { _, err := s.ScopeSeeds(); return err },
		func() error { _, err := s.Policy(known.Origin()); return err },
		func() error { _, _, err := s.Lookup(known); return err },
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for _, read := range reads {
		readers.Go(func() {
			for urls := uint64(0); ; {
				if err := read(); err != nil {
					t.Errorf("read while batches are committed: %v", err)
				}
				now := s.Counters().URLs
				if now < urls || now%30 != 0 {
					t.Errorf("%d URLs after %d", now, urls)
				}
				urls = now
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for n := 1; n < 30; n++ {
		mustCommit(t, s, crashBatch(s, n))
	}
	close(done)
	readers.Wait()
}
