package crawl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/storage"
)

// openLeases reads the leases of the processes before that have a mark.
func (r *recovery) openLeases() error {
	marks, err := r.store.Marks(remote.Mark)
	for name, value := range marks {
		r.marked = append(r.marked, name)
		err = errors.Join(err, r.lent.AddMark(name, value))
	}
	return err
}

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
	if r.out, r.ended, err = r.lent.Settle(r.opened, r.isOpenSince); err != nil {
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

// adoptLeases gives the frontier the leases that are still out.
func (ld *lender) adoptLeases(list []remote.Record, s store) error {
	slices.SortFunc(list, func(a, b remote.Record) int {
		return cmp.Or(a.Given.Compare(b.Given), cmp.Compare(a.ID, b.ID))
	})
	for _, l := range list {
		q, _ := l.Request()
		head, host, err := s.Lookup(q.URL)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("adopt the lease of %s: %w", l.URL, err)
		}
		now := ld.o.Now()
		id, ok := ld.f.Adopt(frontier.Adopted{
			Host: host.ID, Name: host.Name, URL: q.URL, Head: head, Address: q.Address,
			At: now.Add(-max(now.Sub(l.Given), 0)), Delay: l.Delay,
		}, now)
		if ok {
			ld.remote.Adopt(l, id, storage.Position{Host: host.ID, Ordinal: head.Ordinal}, now)
			ld.flights.pages++
		}
	}
	ld.collect()
	return nil
}
