//go:build !core

package crawl

// What the shards of a cluster use of an engine, and nobody else.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/optouts"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/recovery"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/slowdown"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// HasUncommitted reports whether a crawl that is not open has requests whose results are not committed,
// in its start ledger or in the mark, so that the request log may not have them.
func HasUncommitted(dir string) (has bool, err error) {
	s, err := storage.Open(dir, storage.Options{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	text, err := s.Mark(storage.MarkUncommitted)
	if err != nil || len(text) > 0 {
		return len(text) > 0, err
	}
	encoded, err := s.Mark(storage.MarkLedger)
	if err != nil {
		return false, err
	}
	committed, err := storage.DecodeOffset(encoded)
	if err != nil {
		return false, fmt.Errorf("mark %s: %w", storage.MarkLedger, err)
	}
	_, err = starts.Read(dir, committed, boot.ID(), func(uint64, starts.Start) { has = true })
	return has, err
}

// RestartHolds returns what gives a host, by its encoded politeness, the restart hold of requests that no commit knows
// of. The ledger has them.
func RestartHolds(o Options, ledger starts.Uncommitted) func(host string, encoded []byte) ([]byte, error) {
	o.fill()
	held := recovery.Holds{Ledger: ledger, Limits: newInForce(&o, o.Live()).politeness, Now: o.Now()}
	return held.Apply
}

// Snapshot has write copy the database while the crawl goes on: backup is [storage.Store.Backup]. The
// copy has the record of the log at at and all before it, and the URLs of other shards up to the
// sequence incoming. The error is ErrCopying, that of write, or that there is no journal.
func (e *Engine) Snapshot(write func(at storage.LogPosition, incoming uint64,
	backup func(begin func(size int64) (io.Writer, error)) (int64, error)) error) error {
	logged, ok := e.store.(*loggedStore)
	if !ok {
		return errors.New("a crawl without a journal has no snapshots")
	}
	if !e.copying.TryLock() {
		return ErrCopying
	}
	defer e.copying.Unlock()
	encoded, err := e.store.Mark(marks.Incoming)
	if err != nil {
		return err
	}
	incoming, err := storage.DecodeOffset(encoded)
	if err != nil {
		return fmt.Errorf("mark %s: %w", marks.Incoming, err)
	}
	at, err := logged.LogPosition()
	if err != nil {
		return err
	}
	return write(at, incoming, e.store.Backup)
}

// Wake has the dispatcher look what it may do now. The errors are those of Control.
func (c *commands) Wake(ctx context.Context) error {
	return c.mailbox.Load().call(ctx, func(*dispatcher) {})
}

// RecrawlDemand returns the price of the recrawl plan, in seconds, and the recrawls a day that its pages would
// need at another price: see recrawl.Plan.Demand. The errors are those of Control.
func (c *commands) RecrawlDemand(ctx context.Context, at float64) (price, perDay float64, err error) {
	err = c.mailbox.Load().call(ctx, func(d *dispatcher) {
		if d.plan != nil {
			price, perDay = d.plan.Demand(at, d.fetchedPages())
		}
	})
	return price, perDay, err
}

// SetPart makes this process use a part of the limits of requests and of bytes a second, from 0 to 1. At
// first it is all.
func (s *Shared) SetPart(part float64) { s.quota.SetPart(part) }

// Replay brings the database of a shard up to the end of its log.
func Replay(s *storage.Store, j Journal) error { return replay(s, j) }

// FinishOutput gives the output files of a shard that another process crawls now their final names, with what is
// committed of them: the log says how much.
func FinishOutput(o Options, log *slog.Logger) error {
	s, err := openStore(&o)
	if err != nil {
		return err
	}
	logged, err := openLogged(s, &o)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	o.fill()
	e := &Engine{space: newDiskSpace(&o)}
	e.o, e.log, e.store = o, log, logged
	return errors.Join(e.openOutput(), e.closeParts())
}

// OpenShared opens what engines share that come and go: each of them has it as Options.Shared, and a
// data directory of its own below that of the options. The options of the crawl are those of all of
// them. They have hosts, or limits, in common, and limits in common with other processes if there are
// grants; nil: they have not. The caller closes it when all engines are closed.
func OpenShared(o Options, grants frontier.Grants) (*Shared, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.fill()
	o.Several = true
	return newShared(&o, newDiskSpace(&o), newGates(&o, grants))
}

// CommandedOptOuts reads the opt-outs that commands recorded, by mark.
func CommandedOptOuts(s optouts.Reader) (map[string]optout.Entry, error) { return optouts.Commanded(s) }

// Granted says that what this process has of a limit that others share may have changed.
func (s *Shared) Granted(k frontier.LimitKey) { s.gates.Granted(k) }

// Rest is whether the engine of a shard has anything to do.
type Rest struct {
	// Quiet: nothing is under way or uncommitted.
	Quiet bool
	// Done: nothing can be fetched soon, nothing is under way or uncommitted. Only URLs from elsewhere can
	// change that.
	Done bool
	// Number is that of the last commit. As long as it stays the same, and Quiet, nothing was done.
	Number  uint64
	Fetched uint64 // pages, over all runs
}

// Rest returns whether the engine has anything to do. With closed the crawl takes no URLs from users from
// now on, if nothing is under way: they get ErrDraining. Without closed it takes them again. The errors are
// those of Control. Any goroutine may call it.
func (c *commands) Rest(ctx context.Context, closed bool) (r Rest, err error) {
	logged, ok := c.store.(*loggedStore)
	if !ok {
		return r, errors.New("a crawl without a journal rests when it has ended")
	}
	callErr := c.mailbox.Load().call(ctx, func(d *dispatcher) {
		var at storage.LogPosition
		at, err = logged.LogPosition()
		r = Rest{d.goesOn() && d.isQuiet(), d.isAtRest(), at.Number, d.fetchedPages()}
		d.mailbox.draining.Store(d.draining || closed && r.Quiet && err == nil)
	})
	return r, errors.Join(callErr, err)
}

// Fetched returns how many pages are fetched, over all runs, as committed.
func (c *commands) Fetched() uint64 { return c.store.Counters().Pages() }

// SetOptOuts puts opt-outs in force for all engines that borrow what s has, those that are opened later
// included, in place of those of an earlier call. An engine has them when Engine.TakeOptOuts has returned,
// or within a second. It is for a Shared of OpenShared.
func (s *Shared) SetOptOuts(entries []optout.Entry) {
	list := make(map[string]optout.Entry, len(entries))
	for _, e := range entries {
		list[marks.OptOut(e.Scope, e.Value)] = e
	}
	s.optOuts.Store(&list)
}

// TakeOptOuts returns when what Shared.SetOptOuts has set is in force. The error is ErrNotRunning, or that
// of the context. Any goroutine may call it.
func (c *commands) TakeOptOuts(ctx context.Context) error {
	return c.mailbox.Load().call(ctx, (*dispatcher).takeOptOuts)
}

// Share makes the limits of two crawls of one process, which share them, those of both together.
func (l *Limits) Share(more *Limits) {
	l.RateWait = max(l.RateWait, more.RateWait)
	l.Received, l.BandwidthWait = max(l.Received, more.Received), max(l.BandwidthWait, more.BandwidthWait)
	l.MaxRate, l.Bandwidth = max(l.MaxRate, more.MaxRate), max(l.Bandwidth, more.Bandwidth)
	l.HostBandwidth = max(l.HostBandwidth, more.HostBandwidth)
}

// Time returns the time by the clock of the options.
func (o Options) Time() time.Time {
	o.fill()
	return o.Now()
}

// Change puts the limits of requests and lookups in force that live options have: also if no engine is open.
func (s *Shared) Change(l Live) { s.quota.Change(l.quota()) }

// slowestListed is how many hosts a status names as the slowest.
const slowestListed = 10

// byWeight are the states of crawls that are parts of a larger one: the larger one is in the first that
// a part is in. It is stopping when all its parts are: a shard that goes to another node is only a part.
func byWeight() []string {
	return []string{"stalled", "running", "draining", "opened", "paused", "stopping", "finished"}
}

// Add makes s the status of a crawl that consists of the crawl of s and another one. The parts share no
// host, and no limit. The zero Status has no parts. The directories are those of the first part.
func (s *Status) Add(more *Status) {
	if s.State == "" {
		*s = Status{Started: more.Started, Since: more.Since, At: more.At, State: more.State, Reason: more.Reason,
			End: more.End, DataDir: more.DataDir, OutputDir: more.OutputDir, ProductToken: more.ProductToken}
	} else {
		s.addState(more)
	}
	addCounts(&s.URLs, more.URLs)
	addCounts(&s.Requisites, more.Requisites)
	addCounts(&s.HostStates, more.HostStates)
	addCounts(&s.Held, more.Held)
	addCounts(&s.Walls, more.Walls)
	addCounts(&s.WallMakers, more.WallMakers)
	addCounts(&s.Traps, more.Traps)
	addCounts(&s.Statuses, more.Statuses)
	addCounts(&s.Errors, more.Errors)
	addCounts(&s.Failed, more.Failed)
	s.Hosts, s.InFlight, s.Parked = s.Hosts+more.Hosts, s.InFlight+more.InFlight, s.Parked+more.Parked
	s.Requests, s.Bytes = s.Requests+more.Requests, s.Bytes+more.Bytes
	s.Run.Add(more.Run)
	s.Pace.Add(&more.Pace)
	s.Limits.add(&more.Limits)
	s.OptOuts = max(s.OptOuts, more.OptOuts) // all parts have the same
	s.PagesPerSec, s.BytesPerSec = s.PagesPerSec+more.PagesPerSec, s.BytesPerSec+more.BytesPerSec
	s.Finish = max(s.Finish, more.Finish)
	s.RequisitesFinish = max(s.RequisitesFinish, more.RequisitesFinish)
	s.Slowest = append(slices.Clip(s.Slowest), more.Slowest...)
	slices.SortStableFunc(s.Slowest, func(a, b SlowHost) int { return cmp.Compare(b.Finish, a.Finish) })
	s.Slowest = s.Slowest[:min(len(s.Slowest), slowestListed)]
	s.DeadSeeds = s.DeadSeeds.Add(more.DeadSeeds)
	s.Slowdowns = append(slices.Clip(s.Slowdowns), more.Slowdowns...)
	s.Slowdowns = s.Slowdowns[:min(len(s.Slowdowns), slowdown.Most)]
}

// addState merges the states, and the times.
func (s *Status) addState(more *Status) {
	if more.Started.Before(s.Started) {
		s.Started = more.Started
	}
	if more.At.Before(s.At) {
		s.At = more.At
	}
	a, b := slices.Index(byWeight(), s.State), slices.Index(byWeight(), more.State)
	switch {
	case b < a:
		s.State, s.Reason, s.Since, s.End = more.State, more.Reason, more.Since, more.End
	case a == b && more.Since.Before(s.Since):
		s.Since = more.Since
	}
	if a == b && s.Reason == waitsForURLs {
		s.Reason = more.Reason // all parts have to wait
	}
}

func addCounts[N int | uint64](to *map[string]N, more map[string]N) {
	for name, n := range more {
		if *to == nil {
			*to = make(map[string]N)
		}
		(*to)[name] += n
	}
}

// add adds the limits of another part.
func (l *Limits) add(more *Limits) {
	l.MaxRate, l.Bandwidth = l.MaxRate+more.MaxRate, l.Bandwidth+more.Bandwidth
	l.HostBandwidth = max(l.HostBandwidth, more.HostBandwidth)
	l.RateWait, l.BandwidthWait = l.RateWait+more.RateWait, l.BandwidthWait+more.BandwidthWait
	l.Received, l.ExitWhenDone = l.Received+more.Received, more.ExitWhenDone // all parts have the same
}
