package storage

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/badsync"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// badSyncChild is the environment variable with the data directory of the process whose syncs fail.
const badSyncChild = "AMBLE_TEST_BADSYNC"

// TestBadSync: what a commit returns and what the store shows after its first or its last sync
// failed. The syncs fail in a separate process, which runs this test too.
func TestBadSync(t *testing.T) {
	if dir := os.Getenv(badSyncChild); dir != "" {
		failSyncs(t, dir)
		return
	}
	dir := t.TempDir()
	command := exec.Command(os.Args[0], "-test.run=^TestBadSync$")
	command.Env = append(os.Environ(), badSyncChild+"="+dir)
	must.Get(command.CombinedOutput())(t)
	if _, err := os.Stat(filepath.Join(dir, FileName)); err != nil {
		t.Skip("the system does not let a process filter its own system calls")
	}
	// What is found now is what the system shows: the meta page of the commit in doubt.
	s := mustOpen(t, dir, Options{})
	defer mustClose(t, s)
	checkClean(t, s)
	assert.Equal(t, s.Counters().URLs, 4, "URLs")
	mustCommit(t, s, foundBatch(t, s, "http://a.test/5"))
}

func foundBatch(t *testing.T, s *Store, urls ...string) *Batch {
	t.Helper()
	var b Batch
	for _, text := range urls {
		u := parse(t, text)
		b.Found = append(b.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), At: someTime})
	}
	return &b
}

// failSyncs runs in the child. It makes syncs fail that are given by their number since the last
// arm.
func failSyncs(t *testing.T, dir string) {
	var before, failing atomic.Int64 // calls of fdatasync so far; the number of that which fails
	var syncs atomic.Int64           // calls of fsync that fail
	arm := func(n int64) { before.Store(0); failing.Store(n) }
	err := badsync.Install(func(c badsync.Call, _ int) bool {
		if c == badsync.Fsync {
			return syncs.Add(-1) >= 0
		}
		return before.Add(1) == failing.Load()
	})
	if err != nil {
		return // and no file is made
	}
	s := mustOpen(t, dir, Options{})
	mustCommit(t, s, foundBatch(t, s, "http://a.test/1"))

	arm(1) // the sync of the data: nothing is committed, and the same batch can be committed again
	batch := foundBatch(t, s, "http://a.test/2", "http://b.test/")
	if _, err := s.Commit(batch); !errors.Is(err, syscall.EIO) || errors.Is(err, ErrInDoubt) {
		t.Fatalf("after the first sync failed: %v", err)
	}
	sameCounters(t, s, 1)
	mustCommit(t, s, batch)
	sameCounters(t, s, 3)
	checkClean(t, s)

	arm(2) // that of the meta page: nobody knows
	if _, err := s.Commit(foundBatch(t, s, "http://c.test/")); !errors.Is(err, syscall.EIO) ||
		!errors.Is(err, ErrInDoubt) {
		t.Fatalf("after the last sync failed: %v", err)
	}
	sameCounters(t, s, 4)
	checkClean(t, s)
	before.Store(0)
	if _, err := s.Commit(foundBatch(t, s, "http://d.test/")); !errors.Is(err, ErrInDoubt) || before.Load() != 0 {
		t.Fatalf("a commit behind one in doubt: %v, %d syncs", err, before.Load())
	}
	mustClose(t, s)

	syncs.Store(1) // what is found has to be durable, before anybody acts on it
	if _, err := Open(dir, Options{}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("opened although what is found cannot be synced: %v", err)
	}
}

// sameCounters checks that the counters equal what the store holds.
func sameCounters(t *testing.T, s *Store, urls uint64) {
	t.Helper()
	held, hosts := uint64(0), uint64(0)
	err := s.Hosts(func(h *Host) error {
		held += uint64(h.Tail)
		hosts++
		return nil
	})
	if c := s.Counters(); err != nil || c.URLs != held || c.Hosts != hosts || held != urls || c.Of(Queued) != held {
		t.Fatalf("the store holds %d URLs of %d hosts and counts %+v, want %d URLs (%v)", held, hosts, c, urls, err)
	}
}
