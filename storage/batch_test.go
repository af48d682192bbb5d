package storage

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestChanged: a commit returns how much it changed, which is more for URLs of many hosts than for
// as many of one.
func TestChanged(t *testing.T) {
	s := openTemp(t, Options{})
	apart := &benchURLs{hosts: 2000}
	var batch Batch
	fillBatch(s, apart, 2000, &batch)
	mustCommit(t, s, &batch)
	changed := func(hosts int) int64 {
		fillBatch(s, &benchURLs{hosts: hosts, n: 10_000}, 500, &batch)
		result := must.Get(s.Commit(&batch))(t)
		return result.Changed
	}
	many, one := changed(2000), changed(1)
	assert.True(t, one >= 4096 && many >= 4*one, "500 URLs of many hosts changed %d bytes, of one host %d", many, one)
}

// TestKnownLinksChangeNothing: a commit of links to known pages writes no host's row.
func TestKnownLinksChangeNothing(t *testing.T) {
	s := openTemp(t, Options{})
	var batch Batch
	fillBatch(s, &benchURLs{hosts: 500}, 2000, &batch)
	first := must.Get(s.Commit(&batch))(t)
	again := must.Get(s.Commit(&batch))(t)
	assert.True(t, again.Added == 0 && again.Changed <= 8*4096 && first.Changed >= 50*4096,
		"%d URLs were new; %d bytes changed, at first %d", again.Added, again.Changed, first.Changed)
}

// TestHostsInStep: if all hosts get their outcomes in step, the rows of only a few of them overflow
// in the same commit.
func TestHostsInStep(t *testing.T) {
	const hosts, urls = 90, 70
	s := openTemp(t, Options{NoSync: true})
	for h := range hosts {
		mustCommit(t, s, &Batch{Found: found(t, s, numbered(benchHostName(h), 0, urls)...)})
	}
	tops := make([]uint32, hosts)
	moved := 0
	for n := range uint32(urls) {
		var b Batch
		for h := range hosts {
			b.Done = append(b.Done, Done{Host: HostID(h + 1), Ordinal: n, Outcome: benchOutcome(uint64(n))})
		}
		mustCommit(t, s, &b)
		together := 0
		for h := range hosts {
			if top := stateTop(t, s, HostID(h+1)); top != tops[h] {
				tops[h] = top
				together++
			}
		}
		assert.AtMost(t, together, hosts/6, "the rows of", hosts, "hosts overflowed at outcome", n)
		moved += together
	}
	assert.AtLeast(t, moved, hosts*3, "rows overflowed times")
}

func stateTop(t *testing.T, s *Store, id HostID) uint32 {
	var r hostRow
	must.Do(t, s.db.View(func(tx *txn) error { return getRow(tx, id, &r) }))
	return r.stateTop
}
