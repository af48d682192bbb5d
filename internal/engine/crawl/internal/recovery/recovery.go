// Package recovery settles what the process before this one left, before a crawl runs: its requests without an outcome,
// the leases of fetchers, and what it died of.
package recovery

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
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// Store is what a recovery reads of the database.
type Store interface {
	Counters() storage.Counters
	Mark(name string) ([]byte, error)
	Marks(prefix string) (map[string][]byte, error)
	HostByName(name string) (storage.Host, error)
	Lookup(u weburl.URL) (storage.Head, storage.Host, error)
	Policy(o weburl.Origin) ([]byte, error)
}

// Options are those of the crawl, of the same names, that a recovery needs, and what the crawl has open.
type Options struct {
	DataDir, Version    string
	Taken, IgnoreRobots bool
	Now                 func() time.Time
	Uptime              func() (now time.Time, uptime time.Duration)
	Frontier            *frontier.Options
	Requests            requestlog.Options
	UserAgent           string
	HasOutput           bool

	Opened  time.Time                             // when this process opened the crawl
	Limits  func(host string) *politeness.Options // those of a host
	Encoder *archive.Encoder
	Tally   *tally.Tally
	Commit  func(*storage.Batch, []*archive.Item) error // with what the output has of the batch
}

// Left is what the process before left, when that is settled.
type Left struct {
	Boot      string    // which start of the machine this is
	LedgerEnd uint64    // where a new start ledger goes on
	Requests  *Requests // the request log of this process; nil: it could not be opened
	HeldSince time.Time // since when every host has a restart hold; zero: none has
	Suspects  bool      // URLs that were in flight at deaths are in the database
	Leases    Leases    // those of fetchers that are still out
}

// recovery is one, while it lasts.
type recovery struct {
	o     *Options
	log   *slog.Logger
	store Store

	// ledger is what the start ledger says behind the committed offset; started are the requests
	// among that, by offset.
	ledger  starts.Uncommitted
	started map[uint64]requestlog.Request

	logged map[uint64]bool // those of started that are in the request log
	leases
	ended []requestlog.Request // of leases that are out no more, without an outcome

	heldSince time.Time
	suspects  bool
}

// Settle reads the start ledger of the process before this one, commits the restart holds of its hosts, and begins a
// new request log. After an error the caller closes Left.Requests.
func Settle(o Options, s Store, log *slog.Logger) (left Left, err error) {
	r := &recovery{
		o: &o, log: log, store: s, started: make(map[uint64]requestlog.Request), logged: make(map[uint64]bool),
		leases: newLeases(),
	}
	left.Boot = boot.ID()
	if err := r.read(left.Boot); err != nil {
		return left, err
	}
	if left.Requests, err = r.openRequests(left.Boot); err != nil {
		return left, err
	}
	if err := r.commit(left.Requests.mark()); err != nil {
		return left, fmt.Errorf("store restart holds: %w", err)
	}
	left.LedgerEnd, left.HeldSince, left.Suspects, left.Leases = r.ledger.End, r.heldSince, r.suspects, r.out
	return left, nil
}

// read reads what the process before has left in its files.
func (r *recovery) read(boot string) error {
	encoded, err := r.store.Mark(storage.MarkLedger)
	if err != nil {
		return err
	}
	committed, err := storage.DecodeOffset(encoded)
	if err != nil {
		return err
	}
	if err := r.openLeases(); err != nil {
		return err
	}
	if r.ledger, err = starts.Read(r.o.DataDir, committed, boot, r.addStarted); err != nil {
		return err
	}
	if err := r.readLogged(filepath.Join(r.o.DataDir, requestlog.DirName), committed); err != nil {
		return err
	}
	return r.settleLeases()
}

// addStarted takes a line of the ledger. One without a note of ours counts for the restart holds
// only.
func (r *recovery) addStarted(offset uint64, s starts.Start) {
	if r.addLease(offset, s) {
		return
	}
	if q, ok := parseNote(s); ok {
		if q.Kind == requestlog.Page {
			r.addFetch(q.URL.String())
		}
		q.LedgerOffset = offset
		r.started[offset] = q
	}
}

// commit stores the restart holds and who has them, and what the process before died of.
func (r *recovery) commit(uncommitted []byte) error {
	held, err := r.store.Mark(marks.Held)
	if err != nil {
		return err
	}
	if err := r.heldSince.UnmarshalBinary(held); len(held) > 0 && err != nil {
		return fmt.Errorf("mark %s: %w", marks.Held, err)
	}
	if r.heldSince.After(r.o.Opened) { // a clock that was set back does not prolong a hold
		r.heldSince = r.o.Opened
	}
	b := storage.Batch{Marks: map[string][]byte{
		storage.MarkLedger: storage.EncodeOffset(r.ledger.End), storage.MarkUncommitted: uncommitted,
	}}
	r.markLeases(&b)
	if r.ledger.Everyone || r.o.Taken && r.store.Counters().URLs > 0 {
		r.heldSince = r.o.Opened
		if b.Marks[marks.Held], err = r.o.Opened.MarshalBinary(); err != nil {
			return err
		}
	}
	if err := r.holdHosts(&b); err != nil {
		return err
	}
	items, err := r.countDeath(&b)
	if err == nil {
		err = r.o.Commit(&b, items)
	}
	for _, item := range items {
		err = errors.Join(err, item.Close())
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
	held := Holds{r.ledger, r.o.Limits, r.o.Now()}
	encoded, err := held.Apply(h.Name, h.Politeness)
	b.Hosts = append(b.Hosts, storage.HostUpdate{Host: h.ID, Politeness: encoded})
	return err
}

// Holds are the restart holds of the hosts with requests that no commit knows of.
type Holds struct {
	Ledger starts.Uncommitted
	Limits func(host string) *politeness.Options // of a host
	Now    time.Time
}

// Apply returns the encoded politeness of a host with its restart hold: a delay for a request whose end
// is not known, and the Retry-After of a response that was not committed.
func (h *Holds) Apply(host string, encoded []byte) ([]byte, error) {
	known, requested := h.Ledger.Hosts[host]
	wait, waits := h.Ledger.Waits[host]
	if !requested && !waits {
		return encoded, nil
	}
	state, err := politeness.DecodeState(encoded)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", host, err)
	}
	polite := politeness.NewHost(h.Limits(host), state, h.Now)
	if requested {
		delay := max(known, polite.Delay(h.Now))
		if known < 0 { // no robots.txt was read that could demand more
			delay = max(delay, frontier.RestartDelay)
		}
		polite.HoldFor(h.Now, delay, politeness.ReasonRestart)
	}
	if waits {
		// It is no longer than it was, if the clock was set back.
		left := min(wait.At.Add(wait.Wait).Sub(h.Now), wait.Wait)
		polite.HoldFor(h.Now, left, politeness.ReasonRetryAfter)
	}
	return polite.State(h.Now).AppendBinary(nil)
}
