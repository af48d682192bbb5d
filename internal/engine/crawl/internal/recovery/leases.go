//go:build !core

package recovery

import (
	"errors"

	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// Leases are those of fetchers that are still out.
type Leases = []remote.Record

// leases are those of fetchers, of earlier processes.
type leases struct {
	lent   *remote.History
	marked []string // the names of their marks
	out    Leases   // those that are still out
}

func newLeases() leases { return leases{lent: remote.NewHistory()} }

// openLeases reads the leases of the processes before that have a mark.
func (r *recovery) openLeases() error {
	marks, err := r.store.Marks(remote.Mark)
	for name, value := range marks {
		r.marked = append(r.marked, name)
		err = errors.Join(err, r.lent.AddMark(name, value))
	}
	return err
}

// addLease takes a line of the ledger that is of a lease; false: it is of none.
func (r *recovery) addLease(offset uint64, s starts.Start) bool {
	reported, is := r.lent.AddLine(s, offset)
	if reported != nil {
		if q, ok := reported.Request(); ok { // the work on the report may have been fatal
			r.started[offset] = q
		}
	}
	return is
}

// addFetch takes note that a worker has requested a URL after its lease.
func (r *recovery) addFetch(url string) { r.lent.AddFetch(url) }

// readLogged reads which of the requests of the ledger and of the leases are in the request log.
func (r *recovery) readLogged(dir string, committed uint64) error {
	if len(r.started)+r.lent.Len() == 0 {
		return nil
	}
	_, err := requestlog.Read(dir, requestlog.Query{LedgerOffset: committed}, func(q *requestlog.Request) error {
		if q.Lease != "" {
			r.lent.AddLogged(q)
		} else {
			r.logged[q.LedgerOffset] = true
		}
		return nil
	})
	return err
}

// isLogged reports whether a request of an earlier process is in the request log. That of a lease has its id there,
// unless an earlier version wrote it.
func (r *recovery) isLogged(q *requestlog.Request) bool {
	return r.lent.IsLogged(q.Lease) || r.logged[q.LedgerOffset]
}

// settleLeases decides which leases are still out. The hosts of the others have a restart hold.
func (r *recovery) settleLeases() (err error) {
	if r.out, r.ended, err = r.lent.Settle(r.o.Opened, r.isOpenSince); err != nil {
		return err
	}
	for i := range r.ended {
		host, delay := r.ended[i].URL.Host(), r.ended[i].Delay
		if known, is := r.ledger.Hosts[host]; !is || known < delay {
			r.ledger.Hosts[host] = delay
		}
	}
	return nil
}

// markLeases adds the marks of the leases that are out to b: the start ledger begins again.
func (r *recovery) markLeases(b *storage.Batch) {
	for _, name := range r.marked {
		b.Marks[name] = nil
	}
	for i := range r.out {
		b.Marks[remote.Mark+r.out[i].ID] = r.out[i].Encode()
	}
}
