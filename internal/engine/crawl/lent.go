//go:build !core

package crawl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/recovery"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// lend writes a lease into the start ledger, and returns its offset.
func (s startLedger) lend(l *frontier.Lease, x *remote.Held) (offset uint64, err error) {
	if x.Again {
		return s.note(remote.NoteAgain, l, x)
	}
	return s.note(remote.NoteLease, l, x)
}

// claim writes that the report of a lease is worked on, as lend does.
func (s startLedger) claim(l *frontier.Lease, x *remote.Held) (offset uint64, err error) {
	return s.note(remote.NoteReport, l, x)
}

func (s startLedger) note(kind string, l *frontier.Lease, x *remote.Held) (offset uint64, err error) {
	return s.Append(starts.Start{
		Host: l.URL.Host(), Address: x.Address, At: x.Given, Delay: l.Delay, Note: x.Note(kind)})
}

// restoreLending takes over what clients have set, and gives the frontier the leases that are still out.
func (ld *lender) restoreLending(list recovery.Leases, s store) error {
	if err := errors.Join(ld.restoreLimits(s), ld.restoreCutOffs()); err != nil {
		return err
	}
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
	return nil
}
