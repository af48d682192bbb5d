package storage

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
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
	assert.AtMost(t, len(s.writer.bodies), 2*most, "bytes of outcomes after 200 commits", most, "after 10")
}
