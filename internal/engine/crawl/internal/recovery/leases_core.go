//go:build core

package recovery

import (
	"errors"
	"strings"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// Leases are none: this program lends no pages to fetchers outside of it.
type Leases struct{}

// leases is whether fetchers may have some.
type leases struct {
	out  Leases
	lent bool
}

func newLeases() leases { return leases{} }

// errLent refuses a crawl: this program would request what a fetcher may be requesting.
var errLent = errors.New("fetchers may have page leases of this crawl, which this program was built without " +
	"(build tag core): run the whole program until they have ended")

func (r *recovery) openLeases() error {
	marks, err := r.store.Marks("lease/")
	if err == nil && len(marks) > 0 {
		err = errLent
	}
	return err
}

// addLease takes note of a line of the ledger by which a lease began: "lease" or "again".
func (r *recovery) addLease(_ uint64, s starts.Start) bool {
	kind, _, _ := strings.Cut(s.Note, ",")
	r.lent = r.lent || kind == "lease" || kind == "again"
	return false
}

func (r *recovery) addFetch(string) {}

// readLogged reads which of the requests of the ledger are in the request log.
func (r *recovery) readLogged(dir string, committed uint64) error {
	if len(r.started) == 0 {
		return nil
	}
	_, err := requestlog.Read(dir, requestlog.Query{LedgerOffset: committed}, func(q *requestlog.Request) error {
		r.logged[q.LedgerOffset] = true
		return nil
	})
	return err
}

func (r *recovery) isLogged(q *requestlog.Request) bool { return r.logged[q.LedgerOffset] }

func (r *recovery) settleLeases() error {
	if r.lent {
		return errLent
	}
	return nil
}

func (r *recovery) markLeases(*storage.Batch) {}
