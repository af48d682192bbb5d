package storage

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestConcurrentReaders reads all that a store gives to other goroutines while batches are committed.
// What is read is one commit's or another's, and holds all that the counters had counted before. The
// race detector judges as well.
func TestConcurrentReaders(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	mustCommit(t, s, crashBatch(s, 0))
	known := parse(t, "https://host1.example/0/1")
	right := func(ok bool, what string, value any) error {
		if ok {
			return nil
		}
		return fmt.Errorf("%s: %+v", what, value)
	}
	isHead := func(h Head) bool {
		return h.RequestURI == fmt.Sprintf("/%d/%d", h.Ordinal/10, h.Ordinal%10) && h.FirstSeen.Equal(someTime)
	}
	isHost := func(h Host, least int) bool {
		fetched, retrying := h.Counts[Fetched], h.Counts[Retrying]
		return h.Name == fmt.Sprintf("host%d.example", h.ID-1) && h.Tail%10 == 0 && int(h.Tail) >= 10*least &&
			fetched == 9*retrying && fetched+retrying == h.Tail-10
	}
	// Each read is told how many batches there are at least.
	reads := []func(batches int) error{
		func(n int) error {
			return s.Hosts(func(h *Host) error { return right(isHost(*h, n), "a host", h) })
		},
		func(n int) error {
			h, err := s.HostByName("host1.example")
			return errors.Join(err, right(isHost(h, n), "a host by name", h))
		},
		func(n int) error {
			count, good := 0, true
			next, err := s.URLs(1, 0, 50, func(h Head) { count, good = count+1, good && isHead(h) })
			return errors.Join(err, right(good && count >= min(10*n, 50) && int(next) == count, "URLs", count))
		},
		func(n int) error {
			heads, err := s.Heads(HeadsRequest{Host: 1, Queued: 9, Due: 9, Now: someTime})
			good := len(heads.Queued) == 9
			for _, h := range heads.Queued {
				good = good && isHead(h) && int(h.Ordinal) >= 10*(n-1)
			}
			return errors.Join(err, right(good, "heads", heads))
		},
		func(n int) error {
			u, err := s.URL(1, uint32(10*n-1))
			return errors.Join(err, right(u.String() == fmt.Sprintf("https://host0.example/%d/9", n-1), "a URL", u))
		},
		func(int) error { _, err := s.Traps(1); return err },
		func(n int) error {
			marks, err := s.Marks("batch")
			last, bad := strconv.Atoi(string(marks["batch"]))
			return errors.Join(err, bad, right(last >= n-1, "the mark", last))
		},
		func(int) error { _, err := s.Seeds(); return err },
		func(int) error { _, err := s.Policy(known.Origin()); return err },
		func(int) error {
			h, host, err := s.Lookup(known)
			return errors.Join(err, right(h.Ordinal == 1 && isHead(h) && host.Name == "host1.example", "a lookup", h))
		},
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for _, read := range reads {
		readers.Go(func() {
			for urls := uint64(0); ; {
				now := s.Counters().URLs
				assert.True(t, now >= urls && now%30 == 0, "%d URLs after %d", now, urls)
				urls = now
				if err := read(int(urls / 30)); err != nil {
					t.Errorf("read while batches are committed, at least %d: %v", urls/30, err)
					return
				}
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
