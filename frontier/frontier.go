package frontier

import (
	"time"

	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Frontier decides which request is made next. One goroutine owns it: no method may be called while
// another runs. Its methods are what the owner calls; the parts behind them are those of scheduler.
type Frontier struct {
	*scheduler
	restored politeness.Host // of the host that is restored: there are many
	fresh    host            // with the times of one without a request that is restored at freshAt
	freshAt  time.Time
}

// New returns an empty frontier. Instants count from epoch, which should carry a monotonic reading,
// so that setting the clock never shortens a wait. The error is that of o.Validate.
func New(o Options, scope *Scope, epoch time.Time) (*Frontier, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	b := &base{
		timescale: timescale{epoch: epoch, clock: epoch}, o: o, scope: scope, overrides: newOverrides(o.Overrides),
	}
	return &Frontier{scheduler: newScheduler(b)}, nil
}

// Scope returns the scope in force.
func (f *Frontier) Scope() *Scope { return f.scope }

// SetScope replaces the scope. URLs in the queues are checked against it before they are fetched.
func (f *Frontier) SetScope(s *Scope) {
	before := f.scope
	if f.scope = s; before.optOuts != s.optOuts {
		f.applyOptOuts()
	}
	f.pages.forget(before)
}

// Restore adds a host of the store when the process starts. The error is that of a politeness that cannot be decoded.
func (f *Frontier) Restore(s *storage.Host, now time.Time) error {
	state, err := politeness.DecodeState(s.Politeness)
	if err != nil {
		return err
	}
	f.readClock(now)
	h := f.hosts.ensure(s.ID)
	if h.fetched = s.Pages(); s.Of(storage.Fetched) > 0 {
		h.lookup = resolved
	}
	f.budgets.restore(h, s)
	if len(s.Politeness) > 0 || !f.restoreFresh(h, now) {
		h.restoreLatency(&state)
		polite := f.restorePoliteness(&f.restored, state, h, now)
		f.gate.tellStored(s.Name, polite)
		if !polite.ReadyUnpaused(now).After(now) {
			polite.HoldFor(now, f.spread(polite.Delay(now)), politeness.ReasonStart)
		}
		f.saveTimes(h, polite, storedWallKind(&state))
	}
	h.backlog = s.Backlog()
	f.budgets.counts.count(h, s.URLs() > 0, s.Of(storage.Queued)+s.Of(storage.Retrying) > 0)
	f.schedule(h, f.instant(now))
	return nil
}

// restoreFresh sets the times of a host without a request. They are the same for all that are restored at an instant,
// but for the spread of their starts. It reports whether that is so.
func (f *Frontier) restoreFresh(h *host, now time.Time) bool {
	p := &f.o.Politeness
	if h.ready != always || h.marks.has(isNew) || f.o.Gate != nil || p.Paused || p.Hours != nil {
		return false
	}
	if f.freshAt != now {
		f.freshAt, f.fresh = now, host{ready: always}
		f.saveTimes(&f.fresh, f.restorePoliteness(&f.restored, politeness.State{}, &f.fresh, now), wall.KindNone)
	}
	h.ready, h.waitReason, h.closed, h.delay = f.fresh.ready, f.fresh.waitReason, f.fresh.closed, f.fresh.delay
	if d := f.spread(p.Delay); d > 0 && h.ready <= f.instant(now) {
		h.ready, h.waitReason = f.instant(now)+instant(d), politeness.ReasonStart
		h.closed = newClosed(wall.KindNone, d > politeness.ParkedAfter)
	}
	return true
}

// restorePoliteness makes polite that of a host of the store: what was committed, at least what this process knows,
// and the restart hold. It returns polite.
func (b *base) restorePoliteness(
	polite *politeness.Host, state politeness.State, h *host, now time.Time,
) *politeness.Host {
	polite.Restore(b.politeness(h), state, now)
	if h.marks.has(isNew) {
		polite.ForgetEnd()
	}
	if known := b.time(h.ready); h.ready != always {
		if h.waitReason.Holds() {
			polite.Trim(known) // so that setting the wall clock back prolongs nothing
		}
		if known.After(polite.ReadyUnpaused(now)) {
			polite.HoldFor(now, known.Sub(now), h.waitReason)
		}
	}
	if !b.o.HeldSince.IsZero() {
		if left := b.o.HeldSince.Add(b.restartHold(polite.Delay(now), state)).Sub(now); left > 0 {
			polite.HoldFor(now, left, politeness.ReasonRestart)
		}
	}
	return polite
}

// restartHold is how long a host is left alone after a crash: its delay in force, and RestartDelay
// at least where no request to it is known, because its robots.txt may demand more.
func (b *base) restartHold(delay time.Duration, state politeness.State) time.Duration {
	if state.LastEnd.IsZero() && !b.o.NoRobots {
		return max(delay, RestartDelay)
	}
	return delay
}

// RestartDelay is the least restart hold of a host whose crawl delay is not known.
const RestartDelay = 10 * time.Second

// saveTimes keeps when a host that is not active may be fetched from. A pause is kept apart from
// the other holds, so that it can end without loading the host. behind is the wall that it is behind.
func (b *base) saveTimes(h *host, polite *politeness.Host, behind wall.Kind) {
	e := polite.Explain(b.clock)
	h.ready, h.waitReason, h.closed = b.instant(e.Unpaused), e.Reason, newClosed(behind, e.Parked)
	h.delay = float32(e.Delay.Seconds())
	if e.Reason == politeness.ReasonPause {
		h.workAt = b.instant(e.Until)
	}
}

// When a process starts, or a page links to many hosts, all of these hosts could be fetched from at
// once, and again after each delay. To avoid such bursts, each of them is held for a random part of
// its delay, and of one millisecond for each known host. So a crawl of a few hosts starts at once.

// spreadEach is by how much each known host lengthens the time over which starts are spread.
const spreadEach = time.Millisecond

// spread is the hold of a host that could start now.
func (s *scheduler) spread(delay time.Duration) time.Duration {
	if s.o.Batches {
		return 0 // remote fetchers make the requests, at their own pace
	}
	most := min(delay, time.Duration(s.hosts.known-1)*spreadEach)
	return time.Duration(s.jitter() * float64(most))
}

// spreadNew holds a discovered host.
func (s *scheduler) spreadNew(h *host, now instant) {
	if d := s.spread(s.o.Politeness.Delay); d > 0 {
		h.ready, h.waitReason = now+instant(d), politeness.ReasonStart
	}
}

// NextWake returns the earliest instant at which Next may have a lease that it has not now; false
// if only an event can change that.
func (f *Frontier) NextWake() (time.Time, bool) {
	at := f.memory.nextWake(f.lanes.open)
	return at, !at.IsZero()
}

// nextWake is the earliest instant at which a host of an open lane may be due; zero: only an event can change that.
func (m *inMemory) nextWake(isOpen func(lane) bool) time.Time {
	at := never
	for l := range lanes {
		if isOpen(l) {
			at = min(at, m.lanes.ready[l].nextAt())
		}
		if m.canActivate() && m.laneMayActivate(l) {
			at = min(at, m.lanes.dormant[l].nextAt())
		}
	}
	at = min(at, m.lanes.woken.nextAt(), m.nextRecrawlWake(isOpen))
	if at == never {
		return time.Time{}
	}
	return m.time(max(at, 0))
}

// Finished reports whether nothing can be fetched soon: no lease is in flight, and every host with
// work may not be fetched from for the time within, or has been failing for that long.
func (f *Frontier) Finished(now time.Time, within time.Duration) bool {
	if len(f.leases.out)+f.lookups.queued()+len(f.memory.wants)+len(f.jobs.byName)+len(f.jobs.queries.waiting) > 0 {
		return false
	}
	// The hosts that are due first usually decide it.
	for l := range lanes {
		for _, h := range [...]*host{f.lanes.ready[l].top(), f.lanes.dormant[l].top()} {
			if h != nil && !f.postponed(h, f.instant(now), instant(within)) {
				return false
			}
		}
	}
	for h := range f.hosts.all {
		if !f.postponed(h, f.instant(now), instant(within)) {
			return false
		}
	}
	return true
}

// Holds reports whether politeness holds a host for longer than a restart would.
func (f *Frontier) Holds(now time.Time) bool {
	until := f.instant(now.Add(RestartDelay))
	for h := range f.hosts.all {
		ready := h.ready
		switch {
		case h.active != nil && h.active.loaded:
			ready = f.instant(h.active.polite.Ready(now))
		case h.waitReason == politeness.ReasonPause:
			ready = h.workAt
		}
		if ready > until {
			return true
		}
	}
	return false
}

func (f *Frontier) postponed(h *host, now, within instant) bool {
	switch h.state {
	case empty, waitingForRobots, recrawlOnly, waitingToRecrawl:
		return true
	case overBudget:
		return f.budgets.isOver(h)
	case dormant, woken, waiting:
		return h.readyAt > now+within && !h.waitsForGate() || h.failingSince != never && now-h.failingSince >= within
	}
	return false
}

// waitsForGate reports whether nothing but the gate keeps a host from requests, and does not know for how
// long: another frontier or node has what the host shares with it.
func (h *host) waitsForGate() bool {
	return h.active != nil && h.readyAt <= h.active.recheckAt
}

// TakeBatch returns what has gathered for the store since the last call.
func (f *Frontier) TakeBatch() storage.Batch {
	b := f.results.batch
	f.results.batch = storage.Batch{}
	return b
}

// Committed says that a batch from TakeBatch is on disk, with what its owner has added, and what the commit changed.
func (f *Frontier) Committed(b *storage.Batch, r storage.Result, now time.Time) {
	f.readClock(now)
	for i := range b.Hosts {
		if h := f.hosts.get(b.Hosts[i].Host); h != nil && f.commands.updateCommitted(h) {
			f.memory.requestLoad(h)
		}
	}
	for i := range b.Done {
		d := &b.Done[i]
		at := storage.Position{Host: d.Host, Ordinal: d.Ordinal}
		switch { // conditional outcomes are those of commands, not of leases
		case d.When == 0:
			f.hosts.release(at)
		case isPutBack(&d.Outcome):
			f.hosts.forgetName(d.Host)
		case isLeftOut(&d.Outcome):
			if out := f.hosts.leased(at, f.leases); out != nil {
				out.leftOut = true // it is not queued again
			}
			f.hosts.applySet(at)
		}
	}
	for _, at := range r.Set {
		f.hosts.applySet(at)
	}
	t := f.instant(now)
	for i := range r.Hosts {
		f.applyHostChange(&r.Hosts[i], t)
	}
	for _, name := range b.Ensure {
		f.deliverJobs(name, r.Ensured[name], now)
	}
}

// updateCommitted counts a host update that is on disk. Those of pending commands come before all
// others. It reports whether queues have to be read that waited for it.
func (c *commands) updateCommitted(h *host) (reads bool) {
	if pending := c.pending[h.id]; pending != nil && pending.uncommitted > 0 {
		pending.uncommitted--
		c.forget(h)
		return false
	}
	if h.active == nil {
		return false
	}
	h.active.uncommitted--
	for i := range h.active.queues {
		if q := &h.active.queues[i]; q.awaits > 0 {
			q.awaits--
			q.awaitsRead = q.awaits == 0
			reads = reads || q.awaitsRead
		}
	}
	h.active.dueMissed = h.active.dueMissed || reads && h.active.loading
	return reads
}

func (f *Frontier) applyHostChange(c *storage.HostChange, now instant) {
	if f.hosts.get(c.Host) == nil {
		f.spreadNew(f.hosts.ensure(c.Host), now)
	}
	h := f.hosts.ensure(c.Host)
	switch {
	case h.active != nil:
	case f.o.NoRobots && (c.Queued > h.backlog.Queued || c.PutDue > 0) && h.waitReason != politeness.ReasonPause:
		h.workAt = min(h.workAt, now) // it is due before what the host waits for, or nextDue says when it is
	case c.Queued > h.backlog.Queued:
		// The URL may be of an origin that robots.txt does not hold.
		h.workAt, h.robotsReason = min(h.workAt, now+idleTime), robots.ReasonNone
	}
	if a := h.active; a != nil {
		a.tail = c.Tail
		if c.Due > h.backlog.Due || c.Due > 0 && c.NextDue < h.backlog.NextDue {
			a.dueGrew(c.NextDue)
		}
		if c.PutDue > 0 {
			a.dueGrew(c.PutDue)
			a.isDueLater(c.PutDue)
		}
	}
	h.backlog = c.Backlog
	f.budgets.setRequisites(h.id, c.Waiting)
	f.budgets.counts.count(h, c.URLs > 0, c.Queued+c.Due > 0)
	if f.o.Batches && c.URLs == 0 {
		h.forgetRequests()
		if h.active != nil && h.active.name != "" { // it may have told the gate once more meanwhile
			f.ForgetRequests(h.id, h.active.name)
		}
	}
	if l := f.budgets.completed[h.id]; l != nil {
		l.completed = c.Completed
	}
	f.schedule(h, now)
}

// results gathers what the owner of the Frontier takes from it: for the store, for a sweep.
type results struct {
	*base
	batch    storage.Batch
	rechecks []Recheck
	walls    []WallBegun
}

// recordOutcome adds the outcome of a URL to the batch.
func (rs *results) recordOutcome(h *host, head *storage.Head, o storage.Outcome) {
	rs.batch.Done = append(rs.batch.Done, storage.Done{
		Host: h.id, Ordinal: head.Ordinal, Origin: head.Origin, Priority: head.Priority, Outcome: o,
	})
}

// update adds the host's politeness and cursors to the batch.
func (rs *results) update(h *host, now time.Time, requests uint32, bytes uint64) {
	a := h.active
	b, _ := a.polite.State(now).AppendBinary(make([]byte, 0, 112)) // with what follows; no error is ever returned
	u := storage.HostUpdate{
		Host: h.id, Requests: requests, Bytes: bytes, Politeness: b[:len(b):len(b)],
		Cursors: make([]storage.Cursor, len(a.queues)),
	}
	for i := range a.queues {
		u.Cursors[i] = storage.Cursor{Origin: uint8(i), Next: a.queues[i].Cursor()}
	}
	if rs.o.Recrawl != nil {
		if b, _ = a.site.AppendBinary(b[len(b):]); len(b) > 0 {
			u.Site = b[:len(b):len(b)]
		}
	}
	if rs.o.Walls {
		b, _ = a.wall.AppendBinary(b[len(b):])
		u.Wall = b[:len(b):len(b)]
	}
	rs.batch.Hosts = append(rs.batch.Hosts, u)
	a.uncommitted++
}

// storeRecord adds a robots record to the batch. packed is its body as robots.Pack returns it; nil: that is done here.
func (rs *results) storeRecord(p storage.Policy, r robots.Record, packed []byte) {
	if packed == nil {
		packed = robots.Pack(r.Body)
	}
	if encoded, err := r.AppendPacked(nil, packed); err == nil {
		p.Record = encoded
		rs.batch.Policies = append(rs.batch.Policies, p)
	}
}
