package crawl

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/tally"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// recovery settles what the process before this one left. It is used before a run, and owns what
// the committer owns later.
type recovery struct {
	o       *Options
	log     *slog.Logger
	store   store
	files   *outputFiles
	encoder *archive.Encoder
	tally   *tally.Tally
	limits  func(host string) *politeness.Options
	opened  time.Time

	// ledger is what the start ledger says behind the committed offset; started are the requests
	// among that, by offset.
	ledger  starts.Uncommitted
	started map[uint64]requestlog.Request

	logged map[uint64]bool      // those of started that are in the request log
	lent   *remote.History      // the leases of fetchers
	marked []string             // the names of their marks
	out    []remote.Record      // those that are still out
	ended  []requestlog.Request // those of the others that have no outcome

	heldSince time.Time // since when every host has a restart hold; zero: none has
	suspects  bool      // URLs that were in flight at deaths are in the database
}

// settleLastProcess reads the start ledger of the process before this one, commits the restart
// holds of its hosts, and begins a new ledger.
func (e *Engine) settleLastProcess() error {
	r := &recovery{
		o: &e.o, log: e.log, store: e.store, files: e.files, encoder: e.encoder, tally: &e.tally,
		limits: e.live.Load().politeness, opened: e.opened, started: make(map[uint64]requestlog.Request),
		logged: make(map[uint64]bool), lent: remote.NewHistory(),
	}
	encoded, err := e.store.Mark(storage.MarkLedger)
	if err != nil {
		return err
	}
	committed, err := storage.DecodeOffset(encoded)
	if err != nil {
		return err
	}
	bootID := boot.ID()
	if err := r.openLeases(); err != nil {
		return err
	}
	if r.ledger, err = starts.Read(e.o.DataDir, committed, bootID, r.addStarted); err != nil {
		return err
	}
	if err := r.readLogged(filepath.Join(e.o.DataDir, requestlog.DirName), committed); err != nil {
		return err
	}
	if err := r.settleLeases(); err != nil {
		return err
	}
	if e.requests, err = r.openRequestLog(bootID); err != nil {
		return err
	}
	if err := r.commit(e.requests.uncommitted); err != nil {
		return fmt.Errorf("store restart holds: %w", err)
	}
	e.heldSince, e.suspects, e.lent = r.heldSince, r.suspects, r.out
	if err := e.files.Committed(); err != nil {
		return err
	}
	l, err := starts.Open(e.o.DataDir, bootID, r.ledger.End)
	if err == nil {
		e.ledger = l
	}
	return err
}

// addStarted takes a line of the ledger. One without a note of ours counts for the restart holds
// only.
func (r *recovery) addStarted(offset uint64, s starts.Start) {
	if reported, ok := r.lent.AddLine(s, offset); reported != nil {
		if q, ok := reported.Request(); ok { // the work on the report may have been fatal
			r.started[offset] = q
		}
	} else if ok {
		return
	} else if q, ok := parseStart(s); ok {
		if q.Kind == requestlog.Page {
			r.lent.AddFetch(q.URL.String())
		}
		q.LedgerOffset = offset
		r.started[offset] = q
	}
}

// commit stores the restart holds and who has them, and what the process before died of.
func (r *recovery) commit(uncommitted uncommitted) error {
	held, err := r.store.Mark(marks.Held)
	if err != nil {
		return err
	}
	if err := r.heldSince.UnmarshalBinary(held); len(held) > 0 && err != nil {
		return fmt.Errorf("mark %s: %w", marks.Held, err)
	}
	if r.heldSince.After(r.opened) { // a clock that was set back does not prolong a hold
		r.heldSince = r.opened
	}
	b := storage.Batch{Marks: map[string][]byte{
		storage.MarkLedger: storage.EncodeOffset(r.ledger.End), storage.MarkUncommitted: uncommitted.encode(),
		storage.MarkOutput: archive.EncodeMarks(r.files.marks),
	}}
	r.markLeases(&b)
	if r.ledger.Everyone || r.o.Taken && r.store.Counters().URLs > 0 {
		r.heldSince = r.opened
		if b.Marks[marks.Held], err = r.opened.MarshalBinary(); err != nil {
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
		b.Marks[storage.MarkOutput] = archive.EncodeMarks(marks)
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

// holdHost adds the restart hold of a host to b.
func (r *recovery) holdHost(b *storage.Batch, h *storage.Host) error {
	held := restartHolds{r.ledger, r.limits, r.o.Now()}
	encoded, err := held.apply(h.Name, h.Politeness)
	b.Hosts = append(b.Hosts, storage.HostUpdate{Host: h.ID, Politeness: encoded})
	return err
}

// restartHolds are those of the hosts with requests that no commit knows of.
type restartHolds struct {
	ledger starts.Uncommitted
	limits func(host string) *politeness.Options
	now    time.Time
}

// apply returns the encoded politeness of a host with its restart hold: a delay for a request whose end
// is not known, and the Retry-After of a response that was not committed.
func (r *restartHolds) apply(host string, encoded []byte) ([]byte, error) {
	known, requested := r.ledger.Hosts[host]
	wait, waits := r.ledger.Waits[host]
	if !requested && !waits {
		return encoded, nil
	}
	state, err := politeness.DecodeState(encoded)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", host, err)
	}
	polite := politeness.NewHost(r.limits(host), state, r.now)
	if requested {
		delay := max(known, polite.Delay(r.now))
		if known < 0 { // no robots.txt was read that could demand more
			delay = max(delay, frontier.RestartDelay)
		}
		polite.HoldFor(r.now, delay, politeness.ReasonRestart)
	}
	if waits {
		// It is no longer than it was, if the clock was set back.
		left := min(wait.At.Add(wait.Wait).Sub(r.now), wait.Wait)
		polite.HoldFor(r.now, left, politeness.ReasonRetryAfter)
	}
	return polite.State(r.now).AppendBinary(nil)
}

// The death of a process is an end that it did not begin itself: a fault that no recover catches, a
// signal, or lack of memory. A URL that was in flight at each of three consecutive deaths is set
// aside with the reason crash. The start ledger has the URLs in flight. The next process counts
// them when it opens the ledger, in the transaction that settles it.

const (
	// fatalDeaths is the number of consecutive deaths after which a URL is set aside.
	fatalDeaths = 3
	// A URL that was in flight at fatalDeaths-1 deaths is a suspect. The first suspect waits for
	// suspectAfter, each further one for suspectEvery longer. So a death seldom finds more than one
	// suspect in flight, and one soon after the start finds none. maxSuspense bounds these waits.
	suspectAfter, suspectEvery, maxSuspense = 3 * time.Second, 2 * time.Second, 6 * time.Second
)
