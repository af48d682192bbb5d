package crawl

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// sweep is a walk over the URLs of one host, or of all, in the background, which changes the
// outcome of some. A mark in the database holds how far it has come, so that a restart goes on from
// there. It is written in the transaction that changes URLs, so each is changed once, whatever
// happens.
//
// The dispatcher and the sweeper have it in turn: whoever has it may use its fields.
type sweep struct {
	mark   string
	states storage.States   // those whose outcome it may change
	host   storage.HostID   // whose URLs; NoHost: those of all hosts
	at     storage.Position // where it goes on
	below  uint32           // the ordinal at which the sweep of a host ends
	most   int              // URLs changed in one step
	decide decision         // nil: to be got from ready
	ready  func() (decision, error)
	encode func() []byte                       // the value of the mark while it goes on
	ended  func(*frontier.Frontier, time.Time) // called when the end is on disk; nil: nothing to do

	// advance makes a step of a sweep that does not decide about each URL, but deletes URLs. It has no
	// use for states, most, decide and ready. Nil: the sweep decides.
	advance func(deletionStore, *swept) error
	began   func(n int) // called with the number of sweeps that a step began; nil: it begins none

	inspected, changed atomic.Uint64 // URLs so far; changed those on disk, or soon
}

// decision returns the change of a URL; false: it stays as it is.
type decision func(*storage.Located, time.Time) (storage.Done, bool)

// Bounds of one step of a sweep.
const (
	sweepChanged   = 1_000  // URLs changed
	sweepInspected = 20_000 // URLs examined
)

// unbounded is the end of a sweep that takes in URLs found meanwhile.
const unbounded = math.MaxUint32

// passedCost is how many hosts are passed over in about the time that a URL takes to be examined.
const passedCost = 8

// newHostSweep returns a sweep of the URLs of a host, up to an ordinal.
func newHostSweep(mark string, host storage.HostID, states storage.States, below uint32) *sweep {
	s := &sweep{
		mark: mark, states: states, host: host, at: storage.Position{Host: host}, below: below, most: sweepChanged,
	}
	s.encode = func() []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, s.at.Ordinal), s.below)
	}
	return s
}

// restore takes over what the mark of a sweep of a host holds.
func (s *sweep) restore(value []byte) error {
	switch len(value) {
	case 4: // of a version that had no end in it
		s.at.Ordinal, s.below = binary.BigEndian.Uint32(value), unbounded
	case 8:
		s.at.Ordinal, s.below = binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:])
	default:
		return storage.ErrCorrupt
	}
	return nil
}

// over takes note that the end is on disk.
func (s *sweep) over(f *frontier.Frontier, now time.Time) {
	if s.ended != nil {
		s.ended(f, now)
	}
}

// walkStore is what a sweep reads.
type walkStore interface {
	Walk(context.Context, storage.Position, storage.States, func(*storage.Located) error) (storage.Position, error)
}

// step examines the next URLs and returns the changes. end: there are no more.
func (s *sweep) step(
	ctx context.Context, store walkStore, log *slog.Logger, now time.Time,
) (done []storage.Done, end bool, err error) {
	if s.decide == nil {
		if s.decide, err = s.ready(); err != nil {
			return nil, false, err
		}
	}
	if s.states == 0 {
		return nil, true, nil
	}
	inspected, paused := 0, false
	s.at, err = store.Walk(ctx, s.at, s.states, func(l *storage.Located) error {
		switch {
		case s.host != storage.NoHost && (l.At.Host != s.host || l.At.Ordinal >= s.below):
			return storage.ErrStop
		case inspected >= sweepInspected || len(done) == s.most:
			paused = true
			return storage.ErrStop
		case l.Host == nil:
			inspected += storage.WalkPassed / passedCost
			return nil
		}
		inspected++
		s.inspected.Add(1)
		if s.states.Has(l.Last.State) {
			if d, ok := s.examine(log, l, now); ok {
				done = append(done, d)
			}
		}
		return ctx.Err()
	})
	return done, err == nil && !paused, err
}

// examine decides about a URL. One at which the decision panics stays as it is.
func (s *sweep) examine(log *slog.Logger, l *storage.Located, now time.Time) (d storage.Done, ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			log.Error("amble failed at a URL that it meant to change", "host", l.At.Host, "ordinal", l.At.Ordinal,
				"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			ok = false
		}
	}()
	return s.decide(l, now)
}

// changeTo returns the change of a URL to an outcome, if it is in one of these states by then.
func changeTo(l *storage.Located, states storage.States, o storage.Outcome) storage.Done {
	return storage.Done{
		Host: l.At.Host, Ordinal: l.Ordinal, Origin: l.Origin, Priority: l.Priority, When: states, Outcome: o,
	}
}

// swept is what one step of a sweep found.
type swept struct {
	sweep *sweep
	done  []storage.Done
	end   bool
	err   error

	// Of a sweep that deletes URLs.
	purges    []storage.Purge
	forgotten []plannedPage // pages on the recrawl plan that are deleted
	begins    []*sweep      // deletions to begin
}

// sweeperStore is what the sweeper reads.
type sweeperStore interface {
	walkStore
	deletionStore
}

// sweeper makes the steps of sweeps. It changes nothing itself: the dispatcher commits what it
// finds.
type sweeper struct {
	store  sweeperStore
	log    *slog.Logger
	now    func() time.Time
	sweeps <-chan *sweep
	steps  chan<- *swept
}

// run makes one step of each sweep that it gets, until there are no more or the context ends.
func (s *sweeper) run(ctx context.Context) {
	for c := range s.sweeps {
		step := &swept{sweep: c}
		if c.advance != nil {
			step.err = c.advance(s.store, step)
		} else {
			step.done, step.end, step.err = c.step(ctx, s.store, s.log, s.now())
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case s.steps <- step:
		case <-ctx.Done():
			return
		}
	}
}

// sweepStore is what the sweeps that there are to make come from.
type sweepStore interface {
	hostFinder
	Counters() storage.Counters
	HostByID(storage.HostID) (storage.Host, error)
	Marks(prefix string) (map[string][]byte, error)
}

// sweepQueue is the sweeps that are not done. The dispatcher owns it.
type sweepQueue struct {
	store    sweepStore
	log      *slog.Logger
	rules    *rulesReader
	adopter  *adopter      // nil: there is no recrawl plan
	toSweep  chan<- *sweep // unbuffered; used in the select of the dispatcher's loop only
	steps    <-chan *swept
	waiting  []*sweep
	scope    func() *frontier.Scope
	isActive bool   // the sweeper has one
	retries  uint64 // the number of the last retry
}

// isEmpty reports whether there are no sweeps, other than adoptions that have not begun.
func (q *sweepQueue) isEmpty() bool { return !q.isActive && len(q.waiting) == 0 }

// add begins a sweep, on disk too.
func (q *sweepQueue) add(s *sweep, to *batch) {
	q.waiting = append(q.waiting, s)
	to.setMark(s.mark, s.encode())
}

// addRetry begins a retry, on disk too.
func (q *sweepQueue) addRetry(r *retry, to *batch) {
	q.retries++
	q.add(r.withMark(retryMark(q.retries), q.log), to)
}

// addRecheck begins a recheck, on disk too.
func (q *sweepQueue) addRecheck(r frontier.Recheck, to *batch) { q.add(newRecheck(q.rules, r), to) }

// next returns the channel and the sweep to offer to the sweeper.
func (q *sweepQueue) next() (chan<- *sweep, *sweep) {
	if q.isEmpty() && q.adopter != nil && len(q.adopter.hosts) > 0 {
		q.waiting = append(q.waiting, q.adopter.next())
	}
	if q.isActive || len(q.waiting) == 0 {
		return nil, nil
	}
	return q.toSweep, q.waiting[0]
}

// handedOver takes note that the sweeper has the first sweep.
func (q *sweepQueue) handedOver() { q.waiting, q.isActive = q.waiting[1:], true }

// take adds a step of a sweep to the next batch. Other sweeps have their turn before its next step.
// While another sweep waits that has the same mark, the mark is that one's. If nothing was found
// the mark stays: to look once more costs less than a commit.
func (q *sweepQueue) take(p *swept, to *batch) error {
	s := p.sweep
	q.isActive = false
	if p.err != nil {
		return fmt.Errorf("change URLs (%s): %w", s.mark, p.err)
	}
	to.rows.Done = append(to.rows.Done, p.done...)
	to.rows.Purges = append(to.rows.Purges, p.purges...)
	to.size += len(p.done) + len(p.purges)*purgeSize
	s.changed.Add(uint64(len(p.done)))
	if s.began != nil {
		s.began(len(p.begins))
	}
	isLast := !slices.ContainsFunc(q.waiting, func(other *sweep) bool { return other.mark == s.mark })
	if p.end {
		to.swept = append(to.swept, s)
	} else {
		q.waiting = append(q.waiting, s)
	}
	switch {
	case isLast && p.end:
		to.setMark(s.mark, nil)
	case isLast && len(p.done)+len(p.purges)+len(p.begins) > 0:
		to.setMark(s.mark, s.encode())
	}
	return nil
}

// purgeSize is what a purge counts in the size of a batch.
const purgeSize = 500

// The prefixes of the marks of sweeps.
const (
	markDelete    = "delete/"     // URLs of a host that are deleted
	markDeleteAll = "delete-all/" // the hosts whose URLs are deleted

	markRecheck = "recheck/" // denied URLs of an origin and its new rules
	markDrop    = "drop/"    // the queue of a host that is dropped
	markOffer   = "offer/"   // URLs of a host at which another version crashed
	markAdopt   = "adopt/"   // fetched pages of a host that have no recrawl planned
	markWall    = "wall/"    // URLs of a host that a wall has refused
	markRetry   = "retry/"   // URLs that the operator, or a more generous setting, puts back
	// markCrash is the prefix of the marks that hold, for a host with crashed URLs, the version of
	// amble that crashed last. No sweep is under way for these.
	markCrash = "crash/"
)

// crashMark returns the name of the mark of a host.
func crashMark(host storage.HostID) string { return fmt.Sprintf("%s%d", markCrash, host) }

// restore goes on with the sweeps that an earlier process did not finish, and begins those of
// settings that have become more generous. It returns those that drop a host's queue, or delete its
// URLs.
func (q *sweepQueue) restore(lifts []lift) (drops []*sweep, err error) {
	openRetry := func(name string, value []byte) (*sweep, error) {
		var c retryCommand
		if err := json.Unmarshal(value, &c); err != nil {
			return nil, fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
		}
		r, err := newRetry(q.store, c, lifts)
		if err != nil {
			return nil, err
		}
		return r.withMark(name, q.log), nil
	}
	for prefix, open := range map[string]func(name string, value []byte) (*sweep, error){
		markRetry: openRetry, markRecheck: q.openRecheck, markDrop: openDrop, markOffer: openOffer,
		markWall: openWall, markExclude: q.openExclusion, markDelete: openHostDeletion, markDeleteAll: openDeleteAll,
	} {
		marks, err := q.store.Marks(prefix)
		if err != nil {
			return nil, err
		}
		for name, value := range marks {
			s, err := open(name, value)
			if err != nil {
				return nil, fmt.Errorf("mark %s: %w", name, err)
			}
			q.waiting = append(q.waiting, s)
			if prefix == markDrop || prefix == markDelete {
				drops = append(drops, s)
			}
		}
	}
	q.retries, err = lastRetry(q.store)
	return drops, err
}

// scanMark reads the numbers in the name of a mark behind its prefix.
func scanMark(name, prefix, format string, numbers ...any) error {
	if _, err := fmt.Sscanf(strings.TrimPrefix(name, prefix), format, numbers...); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	return nil
}

// newRecheck returns the sweep that applies the rules of an origin to its denied URLs: those that
// are allowed now are due at once.
func newRecheck(rules *rulesReader, r frontier.Recheck) *sweep {
	denied := storage.In(storage.Denied)
	s := newHostSweep(fmt.Sprintf("%s%d/%d", markRecheck, r.Host, r.Origin), r.Host, denied, unbounded)
	s.ready = func() (_ decision, err error) {
		if r.Rules == nil {
			r.Rules, err = rules.stored(r.Host, r.Origin)
		}
		return func(l *storage.Located, now time.Time) (storage.Done, bool) {
			allowed := l.Origin == r.Origin && r.Rules.Match(l.RequestURI).Allowed
			o := l.Last // with what is remembered of the page
			o.State, o.Reason, o.Line, o.Attempts = storage.Retrying, storage.ReasonRobots, 0, 0
			o.At, o.Due = now, now
			return changeTo(l, denied, o), allowed
		}, err
	}
	return s
}

func (q *sweepQueue) openRecheck(name string, value []byte) (*sweep, error) {
	var r frontier.Recheck
	if err := scanMark(name, markRecheck, "%d/%d", &r.Host, &r.Origin); err != nil {
		return nil, err
	}
	s := newRecheck(q.rules, r)
	return s, s.restore(value)
}

// newDrop returns the sweep that drops the queue of a host.
func newDrop(host storage.HostID, below uint32) *sweep {
	states := frontier.DropMatters()
	s := newHostSweep(fmt.Sprintf("%s%d", markDrop, host), host, states, below)
	s.decide = func(l *storage.Located, now time.Time) (storage.Done, bool) {
		return changeTo(l, states, frontier.DropOutcome(now)), true
	}
	s.ended = func(f *frontier.Frontier, now time.Time) { f.Dropped(host, s.below, now) }
	return s
}

func openDrop(name string, value []byte) (*sweep, error) {
	var host storage.HostID
	if err := scanMark(name, markDrop, "%d", &host); err != nil {
		return nil, err
	}
	s := newDrop(host, 0)
	return s, s.restore(value)
}

// newOffer returns the sweep that makes the crashed URLs of a host due at once.
func newOffer(host storage.HostID) *sweep {
	failed := storage.In(storage.Failed)
	s := newHostSweep(fmt.Sprintf("%s%d", markOffer, host), host, failed, unbounded)
	s.decide = func(l *storage.Located, now time.Time) (storage.Done, bool) {
		o := l.Last
		o.State, o.Attempts, o.At, o.Due = storage.Retrying, 0, now, now
		return changeTo(l, failed, o), l.Last.Reason == storage.ReasonCrash
	}
	return s
}

func openOffer(name string, value []byte) (*sweep, error) {
	var host storage.HostID
	if err := scanMark(name, markOffer, "%d", &host); err != nil {
		return nil, err
	}
	s := newOffer(host)
	return s, s.restore(value)
}

// offerCrashes queues the URLs again at which another version crashed.
func (q *sweepQueue) offerCrashes(version string, to *batch) error {
	marks, err := q.store.Marks(markCrash)
	if err != nil {
		return err
	}
	for name, crashed := range marks {
		if string(crashed) == version {
			continue
		}
		var host storage.HostID
		if err := scanMark(name, markCrash, "%d", &host); err != nil {
			return fmt.Errorf("mark %s: %w", name, err)
		}
		q.add(newOffer(host), to)
		to.setMark(name, nil)
	}
	return nil
}
