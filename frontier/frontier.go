package frontier

import (
	"time"

	"github.com/amble-crawler/amble/internal/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Frontier decides which request is made next. One goroutine owns it: no method may be called while
// another runs.
type Frontier struct {
	o     Options
	scope *Scope
	epoch time.Time

	hosts           *register
	dormant         [lanes]hostHeap
	woken           hostHeap
	ready           [lanes]hostHeap
	dormantRecrawls recrawlHeap
	activeRecrawls  [lanes]recrawlHeap
	traffic         traffic
	share           share
	limits          map[LimitKey]*limit
	allowAll        *robots.Rules // of all origins, with Options.NoRobots
	noLimit         limit         // in place of that of an address, with Options.NoLookups
	overrides       *overrides
	groups          *groups
	clock           time.Time     // last reading; its wall clock says which hours are in force
	clockAhead      time.Duration // of due times; see dueTime

	lookups lookups // hosts that wait for a lookup of their name

	matchWork int // the constant matchWork, except in tests
	matching  int // Match leases in flight
	matchLine []matchTurn

	leases    map[uint64]*outstanding
	remote    bool  // LeaseRemote runs
	inBatch   Batch // of the request that begins; zero: none does
	batchSize int   // the most URLs of a host that a fetcher has wanted so far
	lastLease uint64
	spare     []*outstanding // ended leases, for reuse

	puts            map[string]*putHold // by URL
	completedLimits map[storage.HostID]*completedLimit
	drops           map[storage.HostID]*drop
	pendingCommands map[storage.HostID]*pendingCommands
	dormantJobs     map[storage.HostID][]pendingJob // of hosts that are dormant
	jobsByName      map[string][]pendingJob         // of hosts that have no id yet
	queries         queries

	domains   []domain          // budgets; the first one stands for none
	domainIDs map[string]uint32 // index in domains by registrable domain

	wants    []LoadRequest
	rechecks []Recheck
	walls    []WallBegun
	batch    storage.Batch

	counts      hostCounts
	activeHosts int
	activeBytes int
	activating  int // hosts in their first load
}

// New returns an empty frontier. Instants count from epoch, which should carry a monotonic reading,
// so that setting the clock never shortens a wait. The error is that of o.Validate.
func New(o Options, scope *Scope, epoch time.Time) (*Frontier, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	hosts := new(register)
	f := &Frontier{
		o: o, scope: scope, epoch: epoch, share: newShare(&o),
		hosts:           hosts,
		traffic:         traffic{waste: newWaste()},
		woken:           newHeap(hosts),
		limits:          make(map[LimitKey]*limit),
		overrides:       newOverrides(o.Overrides),
		groups:          newGroups(o.Groups),
		clock:           epoch,
		leases:          make(map[uint64]*outstanding),
		puts:            make(map[string]*putHold),
		completedLimits: make(map[storage.HostID]*completedLimit),
		drops:           make(map[storage.HostID]*drop),
		pendingCommands: make(map[storage.HostID]*pendingCommands),
		dormantJobs:     make(map[storage.HostID][]pendingJob),
		jobsByName:      make(map[string][]pendingJob),
		queries:         queries{waiting: make(map[uint64]pendingJob)},
		domains:         make([]domain, 1),
		domainIDs:       make(map[string]uint32),
		matchWork:       matchWork,
		allowAll:        robots.Compile(nil),
	}
	for l := range lanes {
		f.dormant[l], f.ready[l] = newHeap(hosts), newHeap(hosts)
	}
	return f, nil
}

// Scope returns the scope in force.
func (f *Frontier) Scope() *Scope { return f.scope }

// SetScope replaces the scope. URLs in the queues are checked against it before they are fetched.
func (f *Frontier) SetScope(s *Scope) {
	before := f.scope
	if f.scope = s; before.optOuts != s.optOuts {
		f.applyOptOuts()
	}
}

// Restore adds a host of the store when the process starts. The error is that of a stored
// politeness that cannot be decoded.
func (f *Frontier) Restore(s *storage.Host, now time.Time) error {
	state, err := politeness.DecodeState(s.Politeness)
	if err != nil {
		return err
	}
	f.readClock(now)
	h := f.host(s.ID)
	if h.fetched = s.Of(storage.Fetched); h.fetched > 0 {
		h.lookup = resolved
	}
	f.setName(h, s.Name, h.fetched)
	h.restoreLatency(&state)
	polite := f.restorePoliteness(state, h, now)
	f.tellGateStored(s.Name, polite)
	f.spreadKnown(polite, now)
	f.saveTimes(h, polite, storedWallKind(&state))
	h.backlog = s.Backlog()
	f.counts.count(h, s.URLs() > 0, s.Of(storage.Queued)+s.Of(storage.Retrying) > 0)
	f.schedule(h, f.instant(now))
	return nil
}

// forgetRequests makes a host new whose URLs were all deleted: no delay runs since the last batch
// or request.
func (h *host) forgetRequests() {
	h.marks.set(isNew, true)
	switch a := h.active; {
	case a == nil:
		h.ready = always
	case a.loaded:
		a.polite.ForgetEnd()
		fallthrough
	default:
		a.batchAt = always
	}
}

// restorePoliteness is the politeness of a host of the store: what was committed, at least what
// this process knows, and the restart hold.
func (f *Frontier) restorePoliteness(state politeness.State, h *host, now time.Time) *politeness.Host {
	polite := politeness.NewHost(f.politeness(h), state, now)
	if h.marks.has(isNew) {
		polite.ForgetEnd()
	}
	if known := f.time(h.ready); h.ready != always {
		if h.waitReason.Holds() {
			polite.Trim(known) // so that setting the wall clock back prolongs nothing
		}
		if known.After(polite.ReadyUnpaused(now)) {
			polite.HoldFor(now, known.Sub(now), h.waitReason)
		}
	}
	if !f.o.HeldSince.IsZero() {
		if left := f.o.HeldSince.Add(f.restartHold(polite.Delay(now), state)).Sub(now); left > 0 {
			polite.HoldFor(now, left, politeness.ReasonRestart)
		}
	}
	return polite
}

// restartHold is how long a host is left alone after a crash: its delay in force, and RestartDelay
// at least where no request to it is known, because its robots.txt may demand more.
func (f *Frontier) restartHold(delay time.Duration, state politeness.State) time.Duration {
	if state.LastEnd.IsZero() && !f.o.NoRobots {
		return max(delay, RestartDelay)
	}
	return delay
}

// RestartDelay is the least restart hold of a host whose crawl delay is not known.
const RestartDelay = 10 * time.Second

// saveTimes keeps when a host that is not active may be fetched from. A pause is kept apart from
// the other holds, so that it can end without loading the host. behind is the wall that it is behind.
func (f *Frontier) saveTimes(h *host, polite *politeness.Host, behind wall.Kind) {
	e := polite.Explain(f.clock)
	h.ready, h.waitReason, h.closed = f.instant(polite.ReadyUnpaused(f.clock)), e.Reason, newClosed(behind, e.Parked)
	h.delay = float32(e.Delay.Seconds())
	if e.Reason == politeness.ReasonPause {
		h.workAt = f.instant(e.Until)
	}
}

// setName sets what depends on a host's name: its override and its domain.
func (f *Frontier) setName(h *host, name string, fetched uint32) {
	h.override = f.overrides.find(name)
	f.addToDomain(h, name, fetched)
}

// host returns the entry of a host, and makes one if there is none.
func (f *Frontier) host(id storage.HostID) *host {
	h := f.hosts.get(id)
	if h == nil {
		h = &host{id: id, ready: always, workAt: always, failingSince: never}
		f.hosts.put(h)
	}
	return h
}

// When a process starts, or a page links to many hosts, all of these hosts could be fetched from at
// once, and again after each delay. To avoid such bursts, each of them is held for a random part of
// its delay, and of one millisecond for each known host. So a crawl of a few hosts starts at once.

// spreadEach is by how much each known host lengthens the time over which starts are spread.
const spreadEach = time.Millisecond

// spread is the hold of a host that could start now.
func (f *Frontier) spread(delay time.Duration) time.Duration {
	if f.o.Batches {
		return 0 // remote fetchers make the requests, at their own pace
	}
	most := min(delay, time.Duration(f.hosts.known-1)*spreadEach)
	return time.Duration(f.jitter() * float64(most))
}

// spreadKnown holds a host of the store.
func (f *Frontier) spreadKnown(polite *politeness.Host, now time.Time) {
	if !polite.ReadyUnpaused(now).After(now) {
		polite.HoldFor(now, f.spread(polite.Delay(now)), politeness.ReasonStart)
	}
}

// spreadNew holds a discovered host.
func (f *Frontier) spreadNew(h *host, now instant) {
	if d := f.spread(f.o.Politeness.Delay); d > 0 {
		h.ready, h.waitReason = now+instant(d), politeness.ReasonStart
	}
}

// NextWake returns the earliest instant at which Next may have a lease that it has not now; false
// if only an event can change that.
func (f *Frontier) NextWake() (time.Time, bool) {
	at := f.nextWake(f.laneOpen)
	return at, !at.IsZero()
}

// nextWake is the earliest instant at which a host of an open lane may be due; zero: only an event
// can change that.
func (f *Frontier) nextWake(isOpen func(lane) bool) time.Time {
	at := never
	for l := range lanes {
		if isOpen(l) {
			at = min(at, f.ready[l].nextAt())
		}
		if f.canActivate() && f.laneMayActivate(l) {
			at = min(at, f.dormant[l].nextAt())
		}
	}
	at = min(at, f.woken.nextAt(), f.nextRecrawlWake(isOpen))
	if at == never {
		return time.Time{}
	}
	return f.time(max(at, 0))
}

// Finished reports whether nothing can be fetched soon: no lease is in flight, and every host with
// work may not be fetched from for the time within, or has been failing for that long.
func (f *Frontier) Finished(now time.Time, within time.Duration) bool {
	if len(f.leases)+f.lookups.queued()+len(f.wants)+len(f.jobsByName)+len(f.queries.waiting) > 0 {
		return false
	}
	// The hosts that are due first usually decide it.
	for l := range lanes {
		for _, h := range [...]*host{f.ready[l].top(), f.dormant[l].top()} {
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
		return f.isOverBudget(h)
	case dormant, woken, waiting:
		return h.readyAt > now+within && !f.waitsForGate(h) || h.failingSince != never && now-h.failingSince >= within
	}
	return false
}

// waitsForGate reports whether nothing but the gate keeps a host from requests, and does not know for how
// long: another frontier or node has what the host shares with it.
func (f *Frontier) waitsForGate(h *host) bool {
	return h.active != nil && h.readyAt <= h.active.recheckAt
}

// TakeBatch returns what has gathered for the store since the last call.
func (f *Frontier) TakeBatch() storage.Batch {
	b := f.batch
	f.batch = storage.Batch{}
	return b
}

// Committed says that a batch from TakeBatch is on disk, with what its owner added to it, and what
// the commit changed.
func (f *Frontier) Committed(b *storage.Batch, r storage.Result, now time.Time) {
	f.readClock(now)
	for i := range b.Hosts {
		if h := f.hosts.get(b.Hosts[i].Host); h != nil {
			f.updateCommitted(h)
		}
	}
	for i := range b.Done {
		h := f.hosts.get(b.Done[i].Host)
		if isPutBack(&b.Done[i]) {
			f.forgetName(b.Done[i].Host)
		}
		switch {
		case h == nil || h.active == nil || b.Done[i].When != 0: // conditional outcomes are the owner's, not of a lease
		case h.active.loading:
			h.active.commitsDuringLoad = append(h.active.commitsDuringLoad, b.Done[i].Ordinal)
		default:
			h.active.busy.Remove(b.Done[i].Ordinal)
		}
	}
	for _, at := range r.Set {
		f.applySet(at)
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
// others.
func (f *Frontier) updateCommitted(h *host) {
	if pending := f.pendingCommands[h.id]; pending != nil && pending.uncommitted > 0 {
		pending.uncommitted--
		f.forgetCommands(h)
	} else if h.active != nil {
		h.active.uncommitted--
	}
}

func (f *Frontier) applyHostChange(c *storage.HostChange, now instant) {
	if f.hosts.get(c.Host) == nil {
		f.spreadNew(f.host(c.Host), now)
	}
	h := f.host(c.Host)
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
	f.counts.count(h, c.URLs > 0, c.Queued+c.Due > 0)
	if f.o.Batches && c.URLs == 0 {
		h.forgetRequests()
		if h.active != nil && h.active.name != "" { // it may have told the gate once more meanwhile
			f.ForgetRequests(h.id, h.active.name)
		}
	}
	if l := f.completedLimits[h.id]; l != nil {
		l.completed = c.Completed
	}
	f.schedule(h, now)
}

// recordOutcome adds the outcome of a URL to the batch.
func (f *Frontier) recordOutcome(h *host, head *storage.Head, o storage.Outcome) {
	f.batch.Done = append(f.batch.Done, storage.Done{
		Host: h.id, Ordinal: head.Ordinal, Origin: head.Origin, Priority: head.Priority, Outcome: o,
	})
}

// update adds the host's politeness and cursors to the batch.
func (f *Frontier) update(h *host, now time.Time, requests uint32, bytes uint64) {
	a := h.active
	state, _ := a.polite.State(now).AppendBinary(nil) // its error is always nil
	u := storage.HostUpdate{
		Host: h.id, Requests: requests, Bytes: bytes, Politeness: state,
		Cursors: make([]storage.Cursor, len(a.queues)),
	}
	for i := range a.queues {
		u.Cursors[i] = storage.Cursor{Origin: uint8(i), Next: a.queues[i].Cursor()}
	}
	if f.o.Recrawl != nil {
		u.Site, _ = a.site.AppendBinary(nil) // its error is always nil
	}
	if f.o.Walls {
		u.Wall, _ = a.wall.AppendBinary(make([]byte, 0, 40)) // its error is always nil
	}
	f.batch.Hosts = append(f.batch.Hosts, u)
	a.uncommitted++
}

// storeRecord adds a robots record to the batch. packed is its body as robots.Pack returns it; nil: that
// is done here.
func (f *Frontier) storeRecord(p storage.Policy, r robots.Record, packed []byte) {
	if packed == nil {
		packed = robots.Pack(r.Body)
	}
	if encoded, err := r.AppendPacked(nil, packed); err == nil {
		p.Record = encoded
		f.batch.Policies = append(f.batch.Policies, p)
	}
}
