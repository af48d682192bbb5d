// Package sweep changes the outcomes of URLs in the background: of those that another robots.txt
// allows, that an operator drops, deletes or puts back, that a wall has refused, or whose setting has
// become more generous. It decides and reads; the caller commits what it finds. It has no clock.
//
// A Sweep is one walk over URLs, and a Sweeper makes its steps. Its mark in the database holds how
// far it has come, and Source makes the sweeps again that an earlier process did not finish.
package sweep

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/storage"
)

// Sweep is a walk over the URLs of one host, or of all, in the background, which changes the
// outcome of some. A mark in the database holds how far it has come, so that a restart goes on from
// there. It is written in the transaction that changes URLs, so each is changed once, whatever
// happens.
//
// The owner of a sweep and its Sweeper have it in turn: whoever has it may call its methods.
type Sweep struct {
	mark   string
	states storage.States   // those whose outcome it may change
	host   storage.HostID   // whose URLs; NoHost: those of all hosts
	at     storage.Position // where it goes on
	below  uint32           // the ordinal at which the sweep of a host ends
	drops  bool             // it drops the queue of the host
	most   int              // URLs changed in one step
	decide decision         // nil: to be got from ready
	ready  func() (decision, error)
	lost   []Span                              // when responses were stored that are lost; nil: none are
	encode func() []byte                       // the value of the mark while it goes on
	ended  func(*frontier.Frontier, time.Time) // called when the end is on disk; nil: nothing to do

	// advance makes a step of a sweep that does not decide about each URL, but deletes URLs. It has no
	// use for states, most, decide and ready. Nil: the sweep decides.
	advance func(DeletionStore, *Step) error

	superseded []Superseded  // since the last step
	forgotten  []PlannedPage // since the last step
	began      func(n int)   // called with the number of sweeps that a step began; nil: it begins none

	inspected, changed atomic.Uint64 // URLs so far; changed those on disk, or soon
}

// decision returns the change of a URL; false: it stays as it is.
type decision func(*storage.Located, time.Time) (storage.Done, bool)

// Bounds of one step of a sweep.
const (
	MostChanged   = 1_000  // URLs changed
	MostInspected = 20_000 // URLs examined
)

// unbounded is the end of a sweep that takes in URLs found meanwhile.
const unbounded = math.MaxUint32

// passedCost is how many hosts are passed over in about the time that a URL takes to be examined.
const passedCost = 8

// newHostSweep returns a sweep of the URLs of a host, up to an ordinal.
func newHostSweep(mark string, host storage.HostID, states storage.States, below uint32) *Sweep {
	s := &Sweep{
		mark: mark, states: states, host: host, at: storage.Position{Host: host}, below: below, most: MostChanged,
	}
	s.encode = func() []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, s.at.Ordinal), s.below)
	}
	return s
}

// restore takes over what the mark of a sweep of a host holds.
func (s *Sweep) restore(value []byte) error {
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

// Mark returns the name of the sweep's mark. Two sweeps for the same cause have the same.
func (s *Sweep) Mark() string { return s.mark }

// Encode returns the value of its mark while the sweep goes on.
func (s *Sweep) Encode() []byte { return s.encode() }

// Host returns the host whose URLs it walks over; NoHost: those of all hosts.
func (s *Sweep) Host() storage.HostID { return s.host }

// Below returns the ordinal at which the sweep of a host ends.
func (s *Sweep) Below() uint32 { return s.below }

// Deletes reports whether it deletes URLs, in place of a change of their outcomes.
func (s *Sweep) Deletes() bool { return s.advance != nil }

// Drops reports whether it drops the queue of its host.
func (s *Sweep) Drops() bool { return s.drops }

// Ended takes note that the end is on disk.
func (s *Sweep) Ended(f *frontier.Frontier, now time.Time) {
	if s.ended != nil {
		s.ended(f, now)
	}
}

// Took takes note that a step is in the batch of the next commit.
func (s *Sweep) Took(p *Step) {
	s.changed.Add(uint64(len(p.Done)))
	if s.began != nil {
		s.began(len(p.Begins))
	}
}

// walkStore is what a sweep reads.
type walkStore interface {
	Walk(context.Context, storage.Position, storage.States, func(*storage.Located) error) (storage.Position, error)
}

// Walk examines the next URLs of a sweep that deletes none, and returns the changes. end: there are
// no more.
func (s *Sweep) Walk(
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
		case inspected >= MostInspected || len(done) == s.most:
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
				s.forgotten = forget(s.forgotten, l.At.Host, &l.Head, d.Outcome)
			}
		}
		return ctx.Err()
	})
	return done, err == nil && !paused, err
}

// Forgotten returns the pages that the last steps of Walk take off the recrawl plan.
func (s *Sweep) Forgotten() []PlannedPage {
	pages := s.forgotten
	s.forgotten = nil
	return pages
}

// examine decides about a URL. One at which the decision panics stays as it is.
func (s *Sweep) examine(log *slog.Logger, l *storage.Located, now time.Time) (d storage.Done, ok bool) {
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

// Step is what one step of a sweep found.
type Step struct {
	Sweep *Sweep
	Done  []storage.Done // changes
	End   bool           // there are no more
	Err   error

	Superseded []Superseded // URLs whose line in the output counts no more

	Payloads []storage.Payload // of responses that are lost: no later one can refer to them

	Forgotten []PlannedPage // pages on the recrawl plan that are deleted or left out

	// Of a sweep that deletes URLs.
	Purges []storage.Purge
	Begins []*Sweep // deletions to begin
}

// Superseded is a URL with a final state that was that of a wall, and has become none.
type Superseded struct {
	URL      string
	Depth    uint16
	Attempts uint8
	Why      string // the kind of the wall
}

// PlannedPage is a page that is taken off the recrawl plan.
type PlannedPage struct {
	At         storage.Position
	History    recrawl.History
	Importance recrawl.Importance
}

// forget adds a page of a host to a list if a new outcome takes it off the recrawl plan.
func forget(to []PlannedPage, host storage.HostID, u *storage.Head, after storage.Outcome) []PlannedPage {
	if h := recrawl.History(u.Last.History); h.Planned() && !recrawl.History(after.History).Planned() {
		at := storage.Position{Host: host, Ordinal: u.Ordinal}
		to = append(to, PlannedPage{at, h, recrawl.ImportanceOf(u.Priority, u.Depth)})
	}
	return to
}

// payloadStore finds the responses that hold bodies.
type payloadStore interface {
	Payload(storage.HostID, uint64) (storage.Payload, bool, error)
}

// lostPayloads returns payloads that replace those of lost responses of URLs, without the digest of a body:
// so the next response with such a body is stored as a whole.
func (s *Sweep) lostPayloads(store payloadStore, urls []storage.Done) (lost []storage.Payload, err error) {
	for i := range urls {
		d := &urls[i]
		if d.Outcome.Digest == 0 {
			continue
		}
		p, known, err := store.Payload(d.Host, d.Outcome.Digest)
		if err != nil {
			return nil, err
		}
		if known && within(s.lost, p.At) {
			p.SHA256 = [32]byte{}
			lost = append(lost, p)
		}
	}
	return lost, nil
}

// Store is what a Sweeper reads.
type Store interface {
	walkStore
	DeletionStore
	payloadStore
}

// Sweeper makes the steps of sweeps. It changes nothing itself.
type Sweeper struct {
	Store  Store
	Log    *slog.Logger
	Now    func() time.Time
	Sweeps <-chan *Sweep // to make a step of
	Steps  chan<- *Step
}

// Run makes one step of each sweep that it gets, until there are no more or the context ends.
func (s *Sweeper) Run(ctx context.Context) {
	for c := range s.Sweeps {
		step := &Step{Sweep: c}
		if c.advance != nil {
			step.Err = c.advance(s.Store, step)
		} else {
			step.Done, step.End, step.Err = c.Walk(ctx, s.Store, s.Log, s.Now())
			if step.Err == nil && len(c.lost) > 0 {
				step.Payloads, step.Err = c.lostPayloads(s.Store, step.Done)
			}
			step.Superseded, c.superseded = c.superseded, nil
			step.Forgotten = c.Forgotten()
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case s.Steps <- step:
		case <-ctx.Done():
			return
		}
	}
}
