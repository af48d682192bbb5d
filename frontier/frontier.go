package frontier

import (
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Frontier is the scheduler. One goroutine owns it: no method may be called
// while another runs.
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
	limits          map[limitKey]*limit
	overrides       *overrides
	clock           time.Time     // as last read; its wall reading says which hours are in force
	clockAhead      time.Duration // of due times; see dueTime

	lookups lookups // in line to be looked up

	matchWork int // see the constant; other in tests
	matching  int // match leases out
	matchLine []matchTurn

	leases    map[uint64]*outstanding
	lastLease uint64
	spare     []*outstanding // of leases that ended, to be used again

	drops         map[storage.HostID]*drop
	pendingOrders map[storage.HostID]*pendingOrders
	dormantJobs   map[storage.HostID][]pendingJob // for hosts that are dormant
	jobsByName    map[string][]pendingJob         // for hosts without an id yet

	domains   []domain          // budgets; the first stands for none
	domainIDs map[string]uint32 // index in domains by registrable domain

	wants    []LoadRequest
	rechecks []Recheck
	out      storage.Batch

	activeHosts int
	activeBytes int
	activating  int // hosts whose first load is under way
}

// New returns an empty frontier. Instants count from epoch, which should carry
// a monotonic reading, so that a clock that is set never shortens a wait.
func New(o Options, scope *Scope, epoch time.Time) (*Frontier, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	hosts := new(register)
	f := &Frontier{
		o: o, scope: scope, epoch: epoch,
		hosts:         hosts,
		woken:         newHeap(hosts),
		limits:        make(map[limitKey]*limit),
		overrides:     newOverrides(o.Overrides),
		clock:         epoch,
		leases:        make(map[uint64]*outstanding),
		drops:         make(map[storage.HostID]*drop),
		pendingOrders: make(map[storage.HostID]*pendingOrders),
		dormantJobs:   make(map[storage.HostID][]pendingJob),
		jobsByName:    make(map[string][]pendingJob),
		domains:       make([]domain, 1),
		domainIDs:     make(map[string]uint32),
		matchWork:     matchWork,
	}
	for l := range lanes {
		f.dormant[l], f.ready[l] = newHeap(hosts), newHeap(hosts)
	}
	return f, nil
}

// Scope is the scope in force.
func (f *Frontier) Scope() *Scope { return f.scope }

// SetScope changes the scope. URLs that are queued already are asked about
// when their turn comes.
func (f *Frontier) SetScope(s *Scope) { f.scope = s }

// Restore takes over a host that the store knows, at the start.
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
	f.spreadKnown(polite, now)
	f.saveTimes(h, polite)
	h.queued, h.due, h.nextDue = s.Waiting()
	h.recrawls, h.nextRecrawl = s.Renewing()
	f.schedule(h, f.instant(now))
	return nil
}

// restored is the politeness of a host that comes from the store: what was
// committed, never less than what this process knows, and the debt of a crash.
func (f *Frontier) restorePoliteness(state politeness.State, h *host, now time.Time) *politeness.Host {
	polite := politeness.NewHost(f.politeness(h), state, now)
	if known := f.time(h.ready); h.ready != always {
		if h.waitReason.Holds() {
			polite.Trim(known) // a wall clock that was set back since prolongs nothing
		}
		if known.After(polite.Owed(now)) {
			polite.Owe(now, known.Sub(now), h.waitReason)
		}
	}
	if !f.o.OwedSince.IsZero() {
		if left := f.o.OwedSince.Add(restartHold(polite.Delay(now), state)).Sub(now); left > 0 {
			polite.Owe(now, left, politeness.ReasonRestart)
		}
	}
	return polite
}

// Debt is how long a host must be left alone after a crash: its delay in
// force, and no less than ten seconds where no robots.txt was read that could
// have asked for more.
func restartHold(delay time.Duration, state politeness.State) time.Duration {
	if state.LastEnd.IsZero() {
		return max(delay, RestartDelay)
	}
	return delay
}

// RestartDelay is what a host owes after a crash when its Crawl-delay was never learned.
const RestartDelay = 10 * time.Second

// remember keeps of a host that is not active, or ceases to be, when it may be asked. A pause is not owed to it: so
// it is kept apart, to be ended without a look at the rest.
func (f *Frontier) saveTimes(h *host, polite *politeness.Host) {
	e := polite.Explain(f.clock)
	h.ready, h.waitReason, h.parked = f.instant(polite.Owed(f.clock)), e.Reason, e.Parked
	h.delay = float32(e.Delay.Seconds())
	if e.Reason == politeness.ReasonPause {
		h.workAt = f.instant(e.Until)
	}
}

// named takes note of what a host's name says about it.
func (f *Frontier) setName(h *host, name string, fetched uint32) {
	h.override = f.overrides.find(name)
	f.joinDomain(h, name, fetched)
}

// host returns the entry of a host and makes one if need be.
func (f *Frontier) host(id storage.HostID) *host {
	h := f.hosts.get(id)
	if h == nil {
		h = &host{id: id, ready: always, workAt: always, failingSince: never}
		f.hosts.put(h)
	}
	return h
}

// Hosts that may all be asked at once, at the start of a process or when a page leads to many, would be asked in one
// burst, and again and again after each delay. So each is held for a random part of its delay, at most, and of a
// millisecond for every host there is: a crawl of a few hosts begins at once.

// spreadEach is by how much every known host lengthens the time over which starts are spread.
const spreadEach = time.Millisecond

// spread is how long a host is held that could start now.
func (f *Frontier) spread(delay time.Duration) time.Duration {
	most := min(delay, time.Duration(f.hosts.known-1)*spreadEach)
	return time.Duration(f.jitter() * float64(most))
}

// spreadKnown holds a host of the store.
func (f *Frontier) spreadKnown(polite *politeness.Host, now time.Time) {
	if !polite.Owed(now).After(now) {
		polite.Owe(now, f.spread(polite.Delay(now)), politeness.ReasonStart)
	}
}

// spreadNew holds a host that was discovered.
func (f *Frontier) spreadNew(h *host, now instant) {
	if d := f.spread(f.o.Politeness.Delay); d > 0 {
		h.ready, h.waitReason = now+instant(d), politeness.ReasonStart
	}
}

// NextWake is the earliest instant at which Next may have something that it has
// not now; false if only an event can bring that about.
func (f *Frontier) NextWake() (time.Time, bool) {
	at := never
	for l := range lanes {
		if h := f.ready[l].top(); h != nil && f.laneOpen(l) {
			at = min(at, h.readyAt)
		}
		if h := f.dormant[l].top(); h != nil && f.canActivate() && f.laneMayActivate(l) {
			at = min(at, h.readyAt)
		}
	}
	if h := f.woken.top(); h != nil {
		at = min(at, h.readyAt)
	}
	at = min(at, f.nextRecrawlWake())
	if at == never {
		return time.Time{}, false
	}
	return f.time(max(at, 0)), true
}

// Finished reports whether nothing is left that can be asked soon: no lease is
// out, and every host with work either cannot be asked before within has
// passed, or could not be asked for at least that long.
func (f *Frontier) Finished(now time.Time, within time.Duration) bool {
	if len(f.leases)+f.lookups.queued()+len(f.wants)+len(f.jobsByName) > 0 {
		return false
	}
	// The hosts that are due first mostly say it all.
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

func (f *Frontier) postponed(h *host, now, within instant) bool {
	switch h.state {
	case empty, waitingForRobots, recrawlOnly, waitingToRecrawl:
		return true
	case overBudget:
		return f.isOverBudget(h)
	case dormant, woken, waiting:
		return h.readyAt > now+within || h.failingSince != never && now-h.failingSince >= within
	}
	return false
}

// Leases is the number of leases that are out.
func (f *Frontier) Leases() int { return len(f.leases) }

// TakeBatch hands over what has gathered for the store since the last call.
func (f *Frontier) TakeBatch() storage.Batch {
	b := f.out
	f.out = storage.Batch{}
	return b
}

// Committed says that a batch which TakeBatch handed over, with whatever its
// owner added, is on disk, and what that changed.
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
		case h == nil || h.active == nil || b.Done[i].When != 0: // those with a condition are its owner's, not leased or settled here
		case h.active.loading:
			h.active.commitsDuringLoad = append(h.active.commitsDuringLoad, b.Done[i].Ordinal)
		default:
			h.active.busy.Remove(b.Done[i].Ordinal)
		}
	}
	t := f.instant(now)
	for i := range r.Touched {
		f.applyTouched(&r.Touched[i], t)
	}
	for _, name := range b.Ensure {
		f.deliverJobs(name, r.Ensured[name], now)
	}
}

// updateCommitted takes note that a host update is on disk. Those of orders were made before all others that are not.
func (f *Frontier) updateCommitted(h *host) {
	if pending := f.pendingOrders[h.id]; pending != nil && pending.uncommitted > 0 {
		pending.uncommitted--
		f.forgetOrders(h)
	} else if h.active != nil {
		h.active.uncommitted--
	}
}

func (f *Frontier) applyTouched(c *storage.Touched, now instant) {
	if f.hosts.get(c.Host) == nil {
		f.spreadNew(f.host(c.Host), now)
	}
	h := f.host(c.Host)
	if h.active == nil && c.Queued > h.queued {
		// Perhaps of an origin that is not held as the others are.
		h.workAt, h.robotsReason = min(h.workAt, now+idleTime), robots.ReasonNone
	}
	if a := h.active; a != nil {
		a.tail = c.Tail
		if c.Due > h.due || c.Due > 0 && c.NextDue < h.nextDue {
			a.dueGrew(c.NextDue)
		}
	}
	h.queued, h.due, h.nextDue = c.Queued, c.Due, c.NextDue
	h.recrawls, h.nextRecrawl = c.Renewals, c.NextRenewal
	f.schedule(h, now)
}

// settle records the outcome of a URL in the batch.
func (f *Frontier) recordOutcome(h *host, head *storage.Head, o storage.Outcome) {
	f.out.Done = append(f.out.Done, storage.Done{
		Host: h.id, Ordinal: head.Ordinal, Origin: head.Origin, Priority: head.Priority, Outcome: o,
	})
}

// update records the host's politeness and cursors in the batch.
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
	if f.o.Renew != nil {
		u.Site, _ = a.site.AppendBinary(nil) // its error is always nil
	}
	f.out.Hosts = append(f.out.Hosts, u)
	a.uncommitted++
}

// policy puts a robots record into the batch.
func (f *Frontier) storeRecord(p storage.Policy, r robots.Record) {
	if encoded, err := r.AppendBinary(nil); err == nil {
		p.Record = encoded
		f.out.Policies = append(f.out.Policies, p)
	}
}
