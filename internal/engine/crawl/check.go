//go:build !core

package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/optouts"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/queues"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/recovery"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Check reports what contradicts the format of a database that no process writes, as [storage.Store.Check]
// does, and if there is nothing, all values in it that a crawl could not decode. The error is that of the context or of
// the store.
func Check(ctx context.Context, s *storage.Store, report func(storage.Finding)) error {
	sound := true
	err := s.Check(ctx, func(f storage.Finding) {
		sound = false
		report(f)
	})
	if err != nil || !sound {
		return err
	}
	found := func(what string, err error) {
		if err != nil {
			report(storage.Finding{Text: fmt.Sprintf("%s: %v", what, err)})
		}
	}
	if err := checkHosts(ctx, s, found); err != nil {
		return err
	}
	err = s.RobotsRecords(func(origin string, record, history []byte) error {
		if record != nil {
			_, err := robots.DecodeRecord(record)
			found("robots record of "+origin, err)
		}
		if history != nil {
			_, err := robots.DecodeHistory(history)
			found("earlier robots.txt files of "+origin, err)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	checkMarks(s, found)
	return nil
}

// checkHosts decodes what the packages of the crawl keep of each host.
func checkHosts(ctx context.Context, s *storage.Store, found func(what string, err error)) error {
	return s.Hosts(func(head *storage.Host) error {
		h, err := s.HostByID(head.ID)
		if err != nil {
			return err
		}
		_, err = politeness.DecodeState(h.Politeness)
		found("politeness of "+h.Name, err)
		_, err = recrawl.DecodeSite(h.Site)
		found("recrawl memory of "+h.Name, err)
		_, err = wall.DecodeState(h.Wall)
		found("wall of "+h.Name, err)
		return ctx.Err()
	})
}

// checkMarks decodes the marks that a crawl reads when it opens its database or begins to run.
func checkMarks(s *storage.Store, found func(what string, err error)) {
	decode := func(name string, with func(value []byte) error) {
		value, err := s.Mark(name)
		if err == nil && len(value) > 0 {
			err = with(value)
		}
		found("mark "+name, err)
	}
	decode(storage.MarkOutput, func(v []byte) error { _, err := archive.DecodeMarks(v); return err })
	decode(storage.MarkLedger, func(v []byte) error { _, err := storage.DecodeOffset(v); return err })
	decode(marks.Held, func(v []byte) error { return new(time.Time).UnmarshalBinary(v) })
	decode(marks.Plan, func(v []byte) error {
		_, err := recrawl.Without(v, func(func(recrawl.History, recrawl.Importance)) error { return nil })
		return err
	})
	decode(sweep.MarkSettings, func(v []byte) error { return new(keptSettings).kept.Restore(v) })
	_, err := optouts.Commanded(s)
	found("opt-outs", err)
	recovery.Check(s, found)
	_, err = queues.Delay(s)
	found("delay", err)
	if _, err = (&sweep.Source{Store: s}).Unfinished(nil); errors.Is(err, storage.ErrCorrupt) {
		found("sweeps", err)
	}
}
