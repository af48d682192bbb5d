package crawl

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/gates"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/gc"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// Shared is what the engines of one process share: the client with its connections, names and
// bandwidth, the spool, the room for sorting, the permissions to parse, the requests that workers may
// have in flight, and the requests a second. It is safe for concurrent use.
//
// An engine makes its own unless Options.Shared is another's. Whoever closes the engine that made it
// has closed the others before.
type Shared struct {
	client  *fetch.Client
	spool   *spool.Pool
	room    *hostsort.Room
	parsers work.Parsers
	marks   *wall.Marks
	gates   *gates.Gates // nil: there is one engine
	heap    *gc.Pace     // how much garbage the process may have
	now     func() time.Time

	keptDelay atomic.Pointer[time.Duration]           // of hosts, set by clients; nil: that of the options
	optOuts   atomic.Pointer[map[string]optout.Entry] // that commands recorded, by mark; nil: none

	mu      sync.Mutex // guards what follows; nothing blocks under it
	workers int        // requests that workers may have in flight
	used    int        // those that they have
	limits  processLimits
	rate    rateLimit
	names   int      // lookups that may be in flight
	lookups int      // those that are
	waiting []*share // engines that have something to fetch and were refused, the longest wait first
	lending []*share // engines that wait for a request of a worker, or a lookup, to end
}

// newShared opens what engines share, in the data directory of the first of them.
func newShared(o *Options, space *disk.Space, grants frontier.Grants) (*Shared, error) {
	s := &Shared{
		now: o.Now, limits: processLimits{part: 1, perSecond: o.MaxRate},
		parsers: work.NewParsers(), marks: inspect.KnownMarks(), workers: o.Workers, rate: newRateLimit(o.MaxRate),
		names: o.Frontier.Resolvers,
	}
	if o.Several {
		s.gates = gates.New(newKeeper(o, grants), o.Now)
	}
	var err error
	if s.spool, err = spool.Open(o.Spool); err != nil {
		return nil, err
	}
	s.room = newSortRoom(s.spool, space)
	fo := o.Fetch
	fo.Spool = s.spool
	if s.client, err = fetch.New(fo, o.Now); err != nil {
		return nil, err
	}
	s.heap = gc.StartPace()
	return s, nil
}

// newKeeper returns the keeper of the engines of a process. A crawl that is not open may have known of a
// robots.txt, and its last request may just have ended.
func newKeeper(o *Options, grants frontier.Grants) *frontier.Keeper {
	usual, before := o.Frontier.Politeness.Delay, frontier.Before{}
	switch {
	case o.IgnoreRobots && o.Earlier:
		before.Until = o.Now().Add(usual)
	case o.Earlier:
		before.LastEnd = o.Now()
		before.Until = before.LastEnd.Add(frontier.RestartDelay)
	}
	if o.IgnoreRobots {
		usual = 0 // clients may have set less for some hosts
	}
	keeper := frontier.NewKeeper(usual, before)
	if grants != nil {
		keeper.Share(grants)
	}
	return keeper
}

// Close closes what the engines have shared, which are closed.
func (s *Shared) Close() {
	s.client.Close()
	s.heap.Stop()
}

// Shared returns what other engines of this process may share with this one, for as long as this one
// is open.
func (e *Engine) Shared() *Shared { return e.shared }

// requestBurst is the time whose requests may be handed out at once, one at least.
const requestBurst = 100 * time.Millisecond

// share is the part that one engine has of the requests of all. Its dispatcher owns it.
type share struct {
	of   *Shared
	wake chan struct{} // holds one: it may be admitted now
	gate *gates.Gate   // nil: there is one engine
	full bool          // the last request was refused because too many are in flight
	kept bool          // at the end of the run fetchers had leases, or hosts had holds

	// Under of.mu.
	waiting bool // it is in of.waiting
	lends   bool // it is in of.lending
}

func newShare(of *Shared) *share {
	s := &share{of: of, wake: make(chan struct{}, 1)}
	if of.gates != nil {
		s.gate = of.gates.Add(s.ring)
	}
	return s
}

// frontierGate returns the gate of the engine's frontier; nil: it needs none.
func (s *share) frontierGate() frontier.Gate {
	if s.gate == nil {
		return nil
	}
	return s.gate
}

// lock keeps the other engines from taking what admits has found, until unlock.
func (s *share) lock() { s.of.mu.Lock() }

func (s *share) unlock() { s.of.mu.Unlock() }

// admits reports whether a worker may make a request now, one of so many beyond those that all engines
// may have in flight. If the limit of requests a second is what forbids it, next is when it may. The
// caller holds the lock.
func (s *share) admits(beyond int, now time.Time) (ok bool, next time.Time) {
	ahead := len(s.of.waiting)
	if s.waiting {
		ahead = slices.Index(s.of.waiting, s)
	}
	if s.full = s.of.used+ahead >= s.of.workers+beyond; s.full {
		return false, time.Time{}
	}
	next = s.of.rate.wait(ahead, now)
	return next.IsZero(), next
}

// queue takes note of whether the engine has something to fetch and was refused. One that is admitted
// and goes on goes to the end of the queue. The caller holds the lock.
func (s *share) queue(waits bool) {
	switch {
	case waits == s.waiting:
	case waits:
		s.of.waiting, s.waiting = append(s.of.waiting, s), true
	default:
		i := slices.Index(s.of.waiting, s)
		s.of.waiting, s.waiting = slices.Delete(s.of.waiting, i, i+1), false
		s.of.wakeUp(i)
	}
}

// beginLookup counts the lookup of a name, if one more may be in flight. If not, the engine is woken
// when one has ended.
func (s *share) beginLookup() bool {
	s.lock()
	defer s.unlock()
	if s.of.lookups >= s.of.names {
		s.waitToLend()
		return false
	}
	s.of.lookups++
	return true
}

// endLookup takes note that a lookup has ended.
func (s *share) endLookup() {
	s.lock()
	defer s.unlock()
	s.of.lookups--
	s.of.wakeUp(len(s.of.waiting))
}

// waitToLend has the engine woken when a request of a worker has ended, for pages of fetchers that may
// need one, or a lookup. The caller holds the lock.
func (s *share) waitToLend() {
	if !s.lends {
		s.of.lending, s.lends = append(s.of.lending, s), true
	}
}

// begin counts a request of a worker. The caller holds the lock.
func (s *share) begin() { s.of.used++ }

// end takes note that a request of a worker has ended.
func (s *share) end() {
	s.lock()
	defer s.unlock()
	s.of.used--
	s.of.wakeUp(0)
}

// leave takes note that the engine has nothing to fetch at the moment.
func (s *share) leave() {
	s.lock()
	defer s.unlock()
	s.full = false
	s.queue(false)
}

// change puts other limits in force.
func (s *share) change(l *Live, now time.Time) { s.of.change(l, now) }

// Change puts the limits of requests and lookups in force that live options have: also if no engine is open.
func (s *Shared) Change(l Live) { s.change(&l, s.now()) }

func (s *Shared) change(l *Live, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers, s.names = l.Workers, l.Resolvers
	s.limits.perSecond = l.MaxRate
	s.rate.set(s.limits.ratePart(), now)
	s.wakeUp(0)
}

// wakeUp wakes the engines that wait, from an index in the queue on: each finds out for itself whether
// its turn has come. The caller holds the lock.
func (s *Shared) wakeUp(from int) {
	for _, w := range s.waiting[from:] {
		w.ring()
	}
	for _, w := range s.lending {
		w.lends = false
		w.ring()
	}
	s.lending = s.lending[:0]
}

func (s *share) ring() {
	select {
	case s.wake <- struct{}{}:
	default: // it has not looked yet
	}
}

// Where a limit is 0 there is none, so a part of nothing is the least that stands still.
const (
	leastRate      = 1e-9
	leastBandwidth = 1
)

// setBandwidth limits the received bytes a second of all nodes of a cluster, and of each host.
func (s *Shared) setBandwidth(all int64, ofHost func(host string) int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits.bandwidth, s.limits.ofHost = all, ofHost
	s.client.SetBandwidth(s.limits.bandwidthPart(), ofHost)
}

// inForce returns the limits of this process.
func (s *Shared) inForce() (perSecond float64, bandwidth int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits.ratePart(), s.limits.bandwidthPart()
}

// Granted says that what this process has of a limit that others share may have changed.
func (s *Shared) Granted(k frontier.LimitKey) { s.gates.Granted(k) }

// Forget has the other engines of the process forget what this one, whose run has ended, has requested:
// its crawl is deleted, and its fetchers decide everything. Of any other crawl that still counts.
func (e *Engine) Forget() {
	if e.share.gate == nil || !e.o.IgnoreRobots {
		return
	}
	e.share.gate.Delete(e.o.Now())
}

// MustReopen reports whether the next process has to open the crawl, because at the end of the run fetchers
// had leases of it, or hosts had holds that other crawls keep too. It is false if there are no other crawls.
// It may be called when Run has returned.
func (e *Engine) MustReopen() bool { return e.share.kept }

// mayBegin takes note of the requests that were refused and may be admitted now.
func (g *gathering) mayBegin() {
	if g.share.gate == nil {
		return
	}
	for _, host := range g.share.gate.TakeWoken() {
		g.f.Admissible(host, g.o.Now())
	}
	g.collect()
}

// leaveGate ends the part of the engine. A fetcher may work on a lease until its deadline.
func (pm *permits) leaveGate() {
	if pm.share.gate == nil {
		return // no other engine has to know
	}
	pm.share.kept = pm.remote.Len() > 0 || pm.f.Holds(pm.o.Now())
	for x := range pm.remote.All() {
		pm.f.Abandon(x.FrontierID, x.Ends)
	}
	pm.share.gate.Leave(pm.o.Now())
}
