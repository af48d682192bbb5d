package crawl

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// markHeld is the name of the mark with the time since when every host has a restart hold.
const markHeld = "owed"

// recovery settles what the process before this one left. It is used before a run, and owns what
// the committer owns later.
type recovery struct {
	o       *Options
	log     *slog.Logger
	store   store
	files   *outputFiles
	encoder *archive.Encoder
	tally   *tally
	limits  func(host string) *politeness.Options
	opened  time.Time

	// ledger is what the start ledger says behind the committed offset; started are the requests
	// among that, by offset.
	ledger  storage.UncommittedRequests
	started map[uint64]requestlog.Request

	heldSince time.Time // since when every host has a restart hold; zero: none has
	suspects  bool      // URLs that were in flight at deaths are in the database
}

// settleLastProcess reads the start ledger of the process before this one, commits the restart
// holds of its hosts, and begins a new ledger.
func (e *Engine) settleLastProcess() error {
	r := &recovery{
		o: &e.o, log: e.log, store: e.store, files: e.files, encoder: e.encoder, tally: &e.tally,
		limits: e.live.Load().politeness, opened: e.opened, started: make(map[uint64]requestlog.Request),
	}
	encoded, err := e.store.Mark(storage.MarkLedger)
	if err != nil {
		return err
	}
	committed, err := storage.DecodeOffset(encoded)
	if err != nil {
		return err
	}
	boot := storage.BootID()
	if r.ledger, err = storage.ReadUncommitted(e.o.DataDir, committed, boot, r.addStarted); err != nil {
		return err
	}
	if e.requests, err = r.openRequestLog(boot, committed); err != nil {
		return err
	}
	if err := r.commit(e.requests.uncommitted); err != nil {
		return fmt.Errorf("store restart holds: %w", err)
	}
	e.heldSince, e.suspects = r.heldSince, r.suspects
	if err := e.files.Committed(); err != nil {
		return err
	}
	l, err := storage.OpenLedger(e.o.DataDir, boot, r.ledger.End)
	if err == nil {
		e.ledger = l
	}
	return err
}

// addStarted takes a line of the ledger. One without a note of ours counts for the restart holds
// only.
func (r *recovery) addStarted(offset uint64, s storage.Start) {
	if q, ok := parseStart(s); ok {
		q.LedgerOffset = offset
		r.started[offset] = q
	}
}

// commit stores the restart holds and who has them, and what the process before died of.
func (r *recovery) commit(uncommitted uncommitted) error {
	held, err := r.store.Mark(markHeld)
	if err != nil {
		return err
	}
	if err := r.heldSince.UnmarshalBinary(held); len(held) > 0 && err != nil {
		return fmt.Errorf("mark %s: %w", markHeld, err)
	}
	if r.heldSince.After(r.opened) { // a clock that was set back does not prolong a hold
		r.heldSince = r.opened
	}
	b := storage.Batch{Marks: map[string][]byte{
		storage.MarkLedger: storage.EncodeOffset(r.ledger.End), markUncommitted: uncommitted.encode(),
		MarkOutput: encodeMarks(r.files.marks),
	}}
	if r.ledger.Everyone {
		r.heldSince = r.opened
		if b.Marks[markHeld], err = r.opened.MarshalBinary(); err != nil {
			return err
		}
	}
	if err := r.holdHosts(&b); err != nil {
		return err
	}
	items, err := r.countDeath(&b)
	if err == nil {
		err = r.commitItems(&b, items)
	}
	for _, item := range items {
		err = errors.Join(err, item.Close())
	}
	return err
}

// commitItems commits a batch with what the output has of it.
func (r *recovery) commitItems(b *storage.Batch, items []*archive.Item) error {
	marks, err := r.files.write(items, r.o.Now())
	if err != nil {
		return err
	}
	if len(items) > 0 {
		b.Marks[MarkOutput] = encodeMarks(marks)
	}
	if _, err = r.store.Commit(b); err == nil { // else the next start cuts the output where its marks are
		r.files.marks = marks
	}
	return err
}

// holdHosts adds the restart holds of the hosts in the ledger to b.
func (r *recovery) holdHosts(b *storage.Batch) error {
	names := slices.AppendSeq(slices.Collect(maps.Keys(r.ledger.Hosts)), maps.Keys(r.ledger.Waits))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		h, err := r.store.HostByName(name)
		if errors.Is(err, storage.ErrNotFound) {
			continue // a host is on disk before its first request: this ledger knew another database
		}
		if err == nil {
			err = r.holdHost(b, &h)
		}
		if err != nil {
			return err
		}
	}
	if len(names) > 0 {
		r.log.Info("requests of the last run have no outcome",
			"hosts", len(r.ledger.Hosts), "waits", len(r.ledger.Waits))
	}
	return nil
}

// holdHost adds the restart hold of a host to b: a delay for a request whose end is not known, and
// the Retry-After of a response that was not committed.
func (r *recovery) holdHost(b *storage.Batch, h *storage.Host) error {
	known, requested := r.ledger.Hosts[h.Name]
	wait, waits := r.ledger.Waits[h.Name]
	state, err := politeness.DecodeState(h.Politeness)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	polite := politeness.NewHost(r.limits(h.Name), state, r.opened)
	if requested {
		delay := max(known, polite.Delay(r.opened))
		if known < 0 { // no robots.txt was read that could demand more
			delay = max(delay, frontier.RestartDelay)
		}
		polite.HoldFor(r.opened, delay, politeness.ReasonRestart)
	}
	if waits {
		// It is no longer than it was, if the clock was set back.
		left := min(wait.At.Add(wait.Wait).Sub(r.opened), wait.Wait)
		polite.HoldFor(r.opened, left, politeness.ReasonRetryAfter)
	}
	encoded, err := polite.State(r.opened).AppendBinary(nil)
	b.Hosts = append(b.Hosts, storage.HostUpdate{Host: h.ID, Politeness: encoded})
	return err
}
