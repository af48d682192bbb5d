package recovery

import (
	"errors"

	"github.com/amble-crawler/amble/internal/engine/remote"
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
