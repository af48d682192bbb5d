package frontier

import (
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// state is what a host is waiting for. A host is in exactly one state; schedule decides which.
type state uint8

const (
	// empty: it has no work. A commit that brings a URL ends this.
	empty state = iota
	// dormant: it has work on disk and nothing in memory. It is in the dormant heap of its lane, by
	// the instant at which it may be fetched from.
	dormant
	// woken: it is dormant, and a robots job makes it active whether there is room or not.
	woken
	// loading: it becomes active; its queues are being read. Loaded or LoadFailed ends this.
	loading
	// resolving: it needs an address. It is in a list of lookups, or its lookup is leased.
	resolving
	// waiting: it has work. It is in the ready heap of its lane, by the instant at which it may be
	// fetched from.
	waiting
	// limited: it may be fetched from, but is among the waiters of a shared limit.
	limited
	// leased: as many requests are in flight as it may have, or its session is over and ends with
	// the commit of what it did.
	leased
	// waitingForRobots: all its work waits for a robots.txt, or for a match against one.
	waitingForRobots
	// overBudget: it has work on disk, but its budget of pages is spent, or that of its domain.
	overBudget
	// recrawlOnly: it is dormant and has only pages to recrawl.
	recrawlOnly
	// waitingToRecrawl: it is active and has only pages to recrawl.
	waitingToRecrawl

	states = iota
)

// String returns the name of the state, as docs/GLOSSARY.md has it.
func (s state) String() string {
	return [...]string{
		empty: "empty", dormant: "dormant", woken: "woken", loading: "loading", resolving: "resolving",
		waiting: "waiting", limited: "limited", leased: "leased", waitingForRobots: "waiting for robots",
		overBudget: OverBudget, recrawlOnly: "recrawl only", waitingToRecrawl: "waiting to recrawl",
	}[s]
}

// OverBudget is View.State of a host whose budget of pages is spent.
const OverBudget = "over budget"

// scheduler moves hosts between their states. It composes the parts of a Frontier: what changes one of
// them for the sake of another is a method of the scheduler; all else is a method of its part.
type scheduler struct {
	*base
	hosts    *register
	lookups  *lookups
	recrawls *recrawlPlan
	budgets  *budgets
	pages    *seedPages
	lanes    *laneQueues
	limits   *sharedLimits
	gate     *gateSide
	results  *results
	memory   *inMemory
	leases   *leases
	matches  *matches
	puts     *putHolds
	commands *commands
	jobs     *robotsJobs
}

// newScheduler returns the parts of an empty frontier.
func newScheduler(b *base) *scheduler {
	n := b.o.Hosts
	s := &scheduler{
		base: b, lookups: new(lookups), recrawls: &recrawlPlan{b, newRecrawlAccount(&b.o)},
		hosts: &register{hosts: make([]*host, 0, n+1), index: make([]int32, 0, n+1), room: make([]host, n)},
		budgets: &budgets{
			base: b, domains: make([]domain, 1), ids: make(map[string]uint32),
			completed: make(map[storage.HostID]*completedLimit), requisites: make(map[storage.HostID]uint32),
		},
		limits:  &sharedLimits{base: b, all: make(map[LimitKey]*limit), groups: newGroups(b.o.Groups)},
		results: &results{base: b},
		puts:    &putHolds{make(map[string]*putHold)},
		jobs: &robotsJobs{
			base: b, dormant: make(map[storage.HostID][]pendingJob), byName: make(map[string][]pendingJob),
			queries: queries{waiting: make(map[uint64]pendingJob)},
		},
	}
	s.lanes = newLaneQueues(b, s.hosts, s.recrawls)
	s.gate = &gateSide{base: b, limits: s.limits}
	s.memory = &inMemory{
		base: b, lanes: s.lanes, budgets: s.budgets, lookups: s.lookups, recrawls: s.recrawls,
		allowAll: robots.Compile(nil),
	}
	s.pages = newSeedPages(b, &s.results.batch)
	s.leases = &leases{base: b, lanes: s.lanes, out: make(map[uint64]*outstanding)}
	s.matches = &matches{base: b, leases: s.leases, work: matchWork}
	s.commands = &commands{
		base: b, results: s.results, recrawls: s.recrawls,
		pending: make(map[storage.HostID]*pendingCommands), drops: make(map[storage.HostID]*drop),
	}
	return s
}

// lead is how long before it may be fetched from a host is loaded and resolved.
const lead = instant(2 * time.Second)

// idleTime is how long a host may have nothing to do before it becomes dormant.
const idleTime = instant(time.Minute)

// schedule moves a host to the state that it belongs in. It is called after everything that happens
// to the host. A host that waits for a shared limit, or has reserved one, keeps its turn there;
// Next sees what has changed.
func (s *scheduler) schedule(h *host, now instant) {
	if h.state == limited || h.hasReserved() {
		return
	}
	s.lanes.remove(h)
	s.lanes.set(h)
	a := h.active
	if a == nil {
		s.scheduleDormant(h)
		return
	}
	if !a.loaded {
		h.state = loading
		return
	}
	h.delay = float32(a.polite.Delay(s.clock).Seconds())
	s.gate.tell(h)
	s.failQueued(h, now)
	s.memory.refill(h, now)
	if s.readsPuts(a, now) {
		h.state = loading
		return
	}
	if s.leases.isFull(a) {
		h.state = leased
		return
	}
	polite := s.politeAt(h)
	wake, work := s.memory.workAt(h, polite)
	recrawlAt := s.memory.recrawlAt(h, polite)
	soonest := min(wake, max(recrawlAt, s.recrawls.account.nextAt))
	hasAddress := a.resolved(max(soonest, now))
	if !hasAddress {
		wake, soonest = max(wake, h.nextLookup()), max(soonest, h.nextLookup())
	}
	if !work && recrawlAt == never {
		s.concludeWall(h, now)
	}
	switch {
	case s.memory.retires(h, soonest, work || recrawlAt < never, now):
		s.retire(h, wake, work)
	case !work && recrawlAt == never:
		h.state = h.idleState()
	case s.memory.sessionOver(h, soonest) && (a.inFlight > 0 || a.uncommitted > 0 || len(a.busy) > 0):
		h.state = leased // becomes dormant when all its outcomes are committed
	case a.failUntil > now:
		s.lanes.pushReady(h, soonest)
	case a.lookingUp || !hasAddress && max(soonest-lead, h.nextLookup()) <= now:
		s.requestLookup(h, now)
	case !hasAddress:
		s.lanes.pushReady(h, max(soonest-lead, h.nextLookup()))
	default:
		s.lanes.wait(h, wake, work, recrawlAt)
	}
}

// wait lets a host wait for its new URLs, for its pages to recrawl, or for both.
func (q *laneQueues) wait(h *host, wake instant, work bool, recrawlAt instant) {
	h.state = waitingToRecrawl
	if work {
		q.pushReady(h, q.turnKey(h, wake))
	}
	if recrawlAt < never {
		q.pushRecrawl(h, inActiveHeap, recrawlAt)
	}
}

// turnLength is how many requests in a row a host without a delay may have before the others that are
// due. With one request a turn, the connection to each of many hosts would be closed before its next
// turn, and every request would need a new one. A host that few requests have reached has one a turn
// while many such hosts do not answer: tarpits that answer a request or two would keep those waiting
// that nobody has tried.
const turnLength = 8

// inTurn is the key of a host that is due and has not had all requests of its turn.
const inTurn = always - 1

// turnKey is the key under which a host waits that has work from wake on.
func (q *laneQueues) turnKey(h *host, wake instant) instant {
	n := h.active.inTurn
	if h.delay > 0 || n == 0 || n == turnLength || wake > q.instant(q.clock) {
		return wake
	}
	if h.lane == slow || h.lane == untried && q.traffic.lost.isHigh() {
		return wake
	}
	return inTurn
}

// countInTurn counts a request of a due host.
func (h *host) countInTurn() {
	if h.readyAt != inTurn {
		h.active.inTurn = 0
	}
	h.active.inTurn = min(h.active.inTurn+1, turnLength)
}

// idleState is the state of an active host that has nothing to do at the moment.
func (h *host) idleState() state {
	switch a := h.active; {
	case a.loading:
		return loading
	case a.inFlight+a.reading > 0:
		return leased
	case h.isBlocked():
		return waitingForRobots
	}
	return empty
}

// remove removes a host from its heaps.
func (q *laneQueues) remove(h *host) {
	q.removeRecrawl(h)
	switch h.state {
	case dormant:
		q.dormant[h.heapLane].remove(h)
	case woken:
		q.woken.remove(h)
	case waiting:
		q.ready[h.heapLane].remove(h)
	}
	h.state = empty
}

func (q *laneQueues) pushReady(h *host, key instant) {
	h.state, h.readyAt, h.heapLane = waiting, key, h.lane
	if h.active.hasSlot { // every lane is open to it
		h.heapLane = quick
	}
	q.ready[h.heapLane].push(h, h.active.topPriority())
}

func (q *laneQueues) pushDormant(h *host, key instant) {
	h.state, h.readyAt, h.heapLane = dormant, key, h.lane
	q.dormant[h.heapLane].push(h, 0)
}

// scheduleDormant schedules a host that is not active.
func (s *scheduler) scheduleDormant(h *host) {
	switch {
	case len(s.jobs.dormant[h.id]) > 0:
		h.state, h.readyAt = woken, h.ready-lead
		s.lanes.woken.push(h, 0)
	case h.backlog.Queued+h.backlog.Due > 0 && s.budgets.isOver(h):
		s.budgets.setOverBudget(h)
	case h.backlog.Queued > 0:
		s.lanes.pushDormant(h, max(h.ready, h.workAt)-lead)
	case h.backlog.Due > 0:
		s.lanes.pushDormant(h, max(h.ready, h.workAt, s.fromUnix(h.backlog.NextDue))-lead)
	default:
		h.state = empty
	}
	s.scheduleRecrawls(h)
}

// scheduleRecrawls schedules the recrawls of a host that is not active.
func (s *scheduler) scheduleRecrawls(h *host) {
	if s.o.Recrawl == nil || h.backlog.Recrawls == 0 || h.state == woken || s.budgets.hasCompleted(h) {
		return
	}
	at := max(h.ready, s.fromUnix(h.backlog.NextRecrawl))
	if h.robotsReason != robots.ReasonNone {
		at = max(at, h.workAt)
	}
	if h.state == empty {
		h.state = recrawlOnly
	}
	s.lanes.pushRecrawl(h, inDormantHeap, at-lead)
}

// maxReading is how many responses of a host may be read while as many requests are in flight as may
// be. With one the host is fetched from all the time, and more would only take workers from others.
const maxReading = 1

// isFull reports whether as many requests to the host are in flight as may be: one until a
// robots.txt was read, because it may demand a delay. Responses that are still being read count
// beyond maxReading.
func (ls *leases) isFull(a *active) bool {
	if ls.o.Batches {
		return a.inFlight >= max(ls.batchSize, 1)
	}
	if a.inFlight+a.reading == 0 {
		return false
	}
	most := 1
	if a.learned() {
		most = a.polite.InFlightLimit()
	}
	return a.inFlight >= most || a.inFlight+a.reading >= most+maxReading
}

// learned reports whether a robots.txt of the host was read, by this process or an earlier one.
func (a *active) learned() bool {
	for i := range a.queues {
		if a.queues[i].known {
			return true
		}
	}
	return false
}

// workAt is when an active host has work and politeness allows it, which it does from polite on;
// false if that depends on an event.
func (m *inMemory) workAt(h *host, polite instant) (instant, bool) {
	a := h.active
	at := never
	if len(a.jobs) > 0 {
		at = always
	}
	if m.budgets.isOver(h) {
		return max(at, polite), len(a.jobs) > 0
	}
	least := m.budgets.leastPriority(h)
	for i := range a.queues {
		if q := &a.queues[i]; !q.isBlocked() && a.offers(q, least) {
			at = min(at, q.heldUntil)
		}
	}
	if a.loadAfter != always && a.needsHeads(m.headsOf(a)) {
		at = min(at, a.loadAfter)
	}
	at = min(at, m.readDueAt(h))
	if at == never {
		return never, false
	}
	return max(at, polite), true
}

// politeAt is when politeness allows a request to an active host.
func (b *base) politeAt(h *host) instant {
	return max(b.instant(h.active.polite.Ready(b.clock)), h.active.notBefore, b.nextBatchAt(h))
}

// isBlocked reports whether one of the host's queues is blocked.
func (h *host) isBlocked() bool {
	for i := range h.active.queues {
		if h.active.queues[i].isBlocked() {
			return true
		}
	}
	return false
}

// setFailing records since when a host is failing.
func (h *host) setFailing(s politeness.Signal, now instant) {
	switch {
	case s == politeness.SignalOK:
		h.failingSince = never
	case s != politeness.SignalAborted && s != politeness.SignalRefused && h.failingSince == never:
		h.failingSince = now
	}
}
