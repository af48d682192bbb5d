package storage

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestUncountedRequisite: a URL of the priority of requisites that an older version has not counted does not make the
// counts wrap around: budgets of pages are computed from them.
func TestUncountedRequisite(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{NoSync: true})
	defer s.Close()
	u := parse(t, "http://a.test/x.css")
	mustCommit(t, s, &Batch{Found: []Found{{URL: u, Fingerprint: s.Fingerprint(u), Priority: PriorityRequisite}}})
	must.Do(t, s.db.Update(func(tx *txn) error {
		var r hostRow
		if err := getRow(tx, 1, &r); err != nil {
			return err
		}
		r.requisites = [numStates]uint32{}
		return tx.Bucket(bucketHost).Put(appendHostKey(nil, 1), r.append(nil))
	}))
	got := mustCommit(t, s, &Batch{Done: []Done{{Host: 1, Priority: PriorityRequisite,
		Outcome: Outcome{State: Fetched, Status: 200}}}})
	assert.Equal(t, got.Hosts[0].Waiting, 0, "requisites wait")
	assert.Equal(t, s.Counters().Pages(), 0, "pages are fetched")
}
