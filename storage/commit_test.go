package storage

import (
	"testing"
)

// TestCommitMemory: what one commit needed for the outcomes of its hosts is used again by the next one, and not added
// to.
func TestCommitMemory(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/", "http://b.test/")})
	most := 0
	for i := range 200 {
		var b Batch
		for host := range HostID(2) {
			b.Done = append(b.Done,
				Done{Host: host + 1, Outcome: Outcome{State: Fetched, At: someTime, Bytes: uint64(i)}})
		}
		mustCommit(t, s, &b)
		if i == 10 {
			most = len(s.writer.bodies)
		}
	}
	if n := len(s.writer.bodies); n > 2*most {
		t.Errorf("%d bytes of outcomes after 200 commits, %d after 10", n, most)
	}
}
