package crawl

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/boot"
	"github.com/amble-crawler/amble/internal/crawl/internal/leasebook"
	"github.com/amble-crawler/amble/internal/crawl/internal/tally"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/internal/sweep"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
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
	tally   *tally.Tally
	limits  func(host string) *politeness.Options
	opened  time.Time

	// ledger is what the start ledger says behind the committed offset; started are the requests
	// among that, by offset.
	ledger  storage.UncommittedRequests
	started map[uint64]requestlog.Request

	logged map[uint64]bool      // those of started that are in the request log
	lent   *leasebook.History   // the leases of fetchers
	marked []string             // the names of their marks
	out    []leasebook.Record   // those that are still out
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
		logged: make(map[uint64]bool), lent: leasebook.NewHistory(),
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
	if r.ledger, err = storage.ReadUncommitted(e.o.DataDir, committed, bootID, r.addStarted); err != nil {
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
	l, err := storage.OpenLedger(e.o.DataDir, bootID, r.ledger.End)
	if err == nil {
		e.ledger = l
	}
	return err
}

// addStarted takes a line of the ledger. One without a note of ours counts for the restart holds
// only.
func (r *recovery) addStarted(offset uint64, s storage.Start) {
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
		storage.MarkLedger: storage.EncodeOffset(r.ledger.End), storage.MarkUncommitted: uncommitted.encode(),
		storage.MarkOutput: encodeMarks(r.files.marks),
	}}
	r.markLeases(&b)
	if r.ledger.Everyone || r.o.Taken && r.store.Counters().URLs > 0 {
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
		b.Marks[storage.MarkOutput] = encodeMarks(marks)
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
	held := restartHolds{r.ledger, r.limits, r.opened}
	encoded, err := held.apply(h.Name, h.Politeness)
	b.Hosts = append(b.Hosts, storage.HostUpdate{Host: h.ID, Politeness: encoded})
	return err
}

// restartHolds are those of the hosts with requests that no commit knows of.
type restartHolds struct {
	ledger storage.UncommittedRequests
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
	// markDeaths is the name of the mark with the URLs that were in flight at the last death, each
	// with the number of consecutive deaths.
	markDeaths = "deaths"
	// fatalDeaths is the number of consecutive deaths after which a URL is set aside.
	fatalDeaths = 3
	// A URL that was in flight at fatalDeaths-1 deaths is a suspect. The first suspect waits for
	// suspectAfter, each further one for suspectEvery longer. So a death seldom finds more than one
	// suspect in flight, and one soon after the start finds none. maxSuspense bounds these waits.
	suspectAfter, suspectEvery, maxSuspense = 3 * time.Second, 2 * time.Second, 6 * time.Second
)

// deathKey returns the name of a request in the mark.
func deathKey(q *requestlog.Request) string {
	if q.Kind == requestlog.Robots {
		return frontier.Robots.String() + " " + ownerOf(q).String()
	}
	return frontier.Page.String() + " " + q.URL.String()
}

// ownerOf returns the origin that a robots.txt was fetched for.
func ownerOf(q *requestlog.Request) weburl.Origin {
	if q.For != (weburl.Origin{}) {
		return q.For
	}
	return q.URL.Origin()
}

// countDeath counts the death of the previous process, if it died, and adds to b the outcomes of
// the requests that were in flight at fatalDeaths of them. It returns the output of these.
func (r *recovery) countDeath(b *storage.Batch) (items []*archive.Item, err error) {
	before, err := r.openDeaths()
	r.suspects = len(before) > 0
	switch {
	case err != nil:
		return nil, err
	case r.ledger.Ended && r.suspects:
		b.Marks[markDeaths], r.suspects = nil, false
		return nil, nil
	case !r.ledger.Died: // the end of the machine says nothing about a URL
		return nil, nil
	}
	open, err := r.findOpen()
	if err != nil || len(open) == 0 { // nor does a death with nothing in flight
		return nil, err
	}
	var counts []byte
	var suspects []requestlog.Request
	for i := range open {
		q := &open[i]
		n := before[deathKey(q)] + 1
		switch {
		case n >= fatalDeaths:
			item, err := r.setAside(b, q)
			if err != nil {
				return items, err
			}
			if item != nil {
				items = append(items, item)
			}
			continue
		case n == fatalDeaths-1:
			suspects = append(suspects, *q)
		}
		if len(counts) < maxDeathBytes {
			counts = fmt.Appendf(counts, "%d %s\n", n, deathKey(q))
		}
	}
	b.Marks[markDeaths], r.suspects = counts, len(counts) > 0
	r.log.Warn("the previous process died with requests in flight", "requests", len(open),
		"also_at_the_death_before", len(suspects))
	return items, r.separate(b, suspects)
}

// maxDeathBytes bounds the mark.
const maxDeathBytes = 1 << 20

// openDeaths reads the mark.
func (r *recovery) openDeaths() (map[string]int, error) {
	text, err := r.store.Mark(markDeaths)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		n, key, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		count, err := strconv.Atoi(n)
		if !found || err != nil {
			return nil, fmt.Errorf("mark %s: %w", markDeaths, storage.ErrCorrupt)
		}
		counts[key] = count
	}
	return counts, nil
}

// findOpen returns the uncommitted requests, each URL once, the latest first. The unsettled part of
// the ledger also has committed requests, which began after a slow one.
func (r *recovery) findOpen() (open []requestlog.Request, err error) {
	latest := make(map[string]requestlog.Request)
	for _, q := range r.started {
		is, err := r.isOpen(&q)
		if err != nil {
			return nil, err
		}
		if key := deathKey(&q); is && !q.Start.Before(latest[key].Start) {
			latest[key] = q
		}
	}
	open = slices.Collect(maps.Values(latest))
	slices.SortFunc(open, func(a, b requestlog.Request) int {
		return cmp.Or(b.Start.Compare(a.Start), cmp.Compare(deathKey(&a), deathKey(&b)))
	})
	return open, nil
}

// isOpen reports whether no outcome of a request is committed.
func (r *recovery) isOpen(q *requestlog.Request) (bool, error) {
	if q.Kind == requestlog.Robots {
		record, err := r.robotsRecord(ownerOf(q))
		answered := !record.Fetched.Before(q.Start.Truncate(time.Millisecond))
		return !answered && !record.Refresh.After(q.Start), err // a failure is retried later
	}
	return r.isOpenSince(q.URL, q.Start.Truncate(time.Second))
}

// isOpenSince reports whether a URL is known, and no outcome of it since a second is committed.
func (r *recovery) isOpenSince(u weburl.URL, since time.Time) (bool, error) {
	head, _, err := r.store.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return head.Last.At.Before(since), err
}

// robotsRecord returns the stored record of an origin, or the zero Record if there is none or it
// cannot be read.
func (r *recovery) robotsRecord(o weburl.Origin) (robots.Record, error) {
	encoded, err := r.store.Policy(o)
	if err != nil {
		return robots.Record{}, err
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return robots.Record{}, nil
	}
	return record, nil
}

// setAside ends a request that was in flight at fatalDeaths deaths. A page fails with the reason
// crash; the origin of a robots.txt is held for the longest time that a Retry-After can demand.
func (r *recovery) setAside(b *storage.Batch, q *requestlog.Request) (*archive.Item, error) {
	r.tally.Crash()
	why := fmt.Sprintf("amble died %d times in a row while it was in flight", fatalDeaths)
	r.log.Error(why+"; the crawl goes on without it. This is a bug: please report it", "url", q.URL.String())
	if q.Kind == requestlog.Robots {
		before, err := r.robotsRecord(ownerOf(q))
		if err != nil {
			return nil, err
		}
		record := r.o.crashedRobots(&before, q.URL, r.opened)
		record.Refresh = r.opened.Add(r.o.Frontier.Robots.MaxRetryAfter)
		encoded, err := record.AppendBinary(nil)
		b.Policies = append(b.Policies, storage.Policy{Origin: ownerOf(q), Record: encoded})
		return nil, err
	}
	head, host, err := r.store.Lookup(q.URL)
	if err != nil {
		return nil, err
	}
	b.Done = append(b.Done, storage.Done{Host: host.ID, Ordinal: head.Ordinal, Origin: head.Origin,
		Priority: head.Priority, Outcome: storage.Outcome{
			State: storage.Failed, Reason: storage.ReasonCrash, At: r.opened, History: head.Last.History,
		}})
	b.Marks[sweep.CrashMark(host.ID)] = []byte(r.o.Version)
	if r.o.Archive.Has(archive.FormatNone) {
		return nil, nil
	}
	return r.encoder.Encode(&archive.Visit{Page: &archive.Page{
		URL: q.URL.String(), Depth: int(head.Depth), Attempts: int(head.Last.Attempts) + fatalDeaths,
		FetchedAt: q.Start,
		Reason:    inspect.ReasonName(storage.ReasonCrash), Error: why,
	}})
}

// separate postpones the suspects, each to a time of its own.
func (r *recovery) separate(b *storage.Batch, suspects []requestlog.Request) error {
	every := min(suspectEvery, maxSuspense/time.Duration(max(len(suspects), 1)))
	for i := range suspects {
		if err := r.postpone(b, &suspects[i], r.opened.Add(suspectAfter+time.Duration(i)*every)); err != nil {
			return err
		}
	}
	return nil
}

// postpone postpones a suspect. Until then the stored copy of a robots.txt stays in force.
func (r *recovery) postpone(b *storage.Batch, q *requestlog.Request, until time.Time) error {
	if q.Kind == requestlog.Robots {
		before, err := r.robotsRecord(ownerOf(q))
		if err != nil {
			return err
		}
		crash := robots.Outcome{URL: q.URL.String(), Failure: robots.FailureCrash}
		record, _ := r.o.Frontier.Robots.Next(before, crash, r.opened)
		record.Refresh = until
		encoded, err := record.AppendBinary(nil)
		b.Policies = append(b.Policies, storage.Policy{Origin: ownerOf(q), Record: encoded})
		return err
	}
	head, host, err := r.store.Lookup(q.URL)
	if err != nil {
		return err
	}
	o := head.Last
	o.State, o.Due = storage.Retrying, until // At stays: nothing has come since
	b.Done = append(b.Done, storage.Done{Host: host.ID, Ordinal: head.Ordinal, Origin: head.Origin,
		Priority: head.Priority, Outcome: o})
	return nil
}
