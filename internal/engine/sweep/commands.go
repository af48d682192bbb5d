//go:build !core

package sweep

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/storage"
)

// ofCommands are the kinds that only commands begin.
func ofCommands() map[string]open {
	return map[string]open{MarkDrop: openDrop, MarkDelete: openHostDeletion, MarkDeleteAll: openDeletion}
}

// NewDrop returns the sweep that drops the queue of a host, up to an ordinal.
func NewDrop(host storage.HostID, below uint32) *Sweep {
	states := frontier.DropMatters()
	s := newHostSweep(fmt.Sprintf("%s%d", MarkDrop, host), host, states, below)
	s.drops = true
	s.decide = func(l *storage.Located, now time.Time) (storage.Done, bool) {
		return changeTo(l, states, frontier.DropOutcome(now)), true
	}
	s.ended = func(f *frontier.Frontier, now time.Time) { f.Dropped(host, s.below, now) }
	return s
}

func openDrop(name string, value []byte) (*Sweep, error) {
	return openOfHost(name, value, MarkDrop, func(host storage.HostID) *Sweep { return NewDrop(host, 0) })
}

// RetryStore is what a retry reads.
type RetryStore interface {
	hostFinder
	walkStore
}

// Limit bounds the URLs that one step changes.
func (r *Retry) Limit(most int) { r.most = most }

// Add adds to the number of URLs that are put back: for a caller that commits without a Sweeper.
func (r *Retry) Add(n int) { r.changed.Add(uint64(n)) }

// Begin makes the retry of a selection. The error is that of NewRetry, or inspect.ErrUnknown if its seed is none.
func (s Selection) Begin(store hostFinder, set func() *seeds.Set) (*Retry, error) {
	if _, err := s.Seeds(set); err != nil {
		return nil, err
	}
	return NewRetry(store, Command{Selection: &s}, nil, set)
}

// Count counts the URLs of a selection and changes nothing. Now and then it calls each with its
// progress. The error is that of Selection.Begin, that of the context or of each, or one of reading.
func Count(
	ctx context.Context, s RetryStore, selection Selection, set func() *seeds.Set, each func(Retried) error,
) (Retried, error) {
	r, err := selection.Begin(s, set)
	if err != nil {
		return Retried{}, err
	}
	for end := false; !end; {
		var page []storage.Done
		if page, end, err = r.Walk(ctx, s, slog.Default(), time.Time{}); err != nil {
			return r.Progress(), err
		}
		r.Add(len(page))
		if err := each(r.Progress()); err != nil {
			return r.Progress(), err
		}
	}
	return r.Progress(), nil
}
