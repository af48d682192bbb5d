package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// lead is how long before its instant a host is loaded and resolved.
const lead = instant(2 * time.Second)

// keep is how long a host may have nothing to do before it goes dormant.
const idleTime = instant(time.Minute)

// place puts a host where it belongs. It is called after everything that
// happened to the host, and moves it between all places but those of the line
// of an address: a host whose turn there has come keeps it, and what changed is
// seen by Next.
func (f *Frontier) schedule(h *host, now instant) {
	if h.state == limited || h.hasReserved() {
		return
	}
	f.unschedule(h)
	f.setLane(h)
	a := h.active
	if a == nil {
		f.scheduleDormant(h)
		return
	}
	if a.polite == nil {
		h.state = loading
		return
	}
	h.delay = float32(a.polite.Delay(f.clock).Seconds())
	f.failQueued(h, now)
	f.refill(h, now)
	if a.inFlight >= a.inFlightLimit() {
		h.state = leased
		return
	}
	wake, work := f.workAt(h)
	recrawlAt := f.recrawlAt(h)
	soonest := min(wake, max(recrawlAt, f.share.nextAt))
	resolvedThen := a.resolved(max(soonest, now))
	if !resolvedThen {
		wake, soonest = max(wake, h.nextLookup()), max(soonest, h.nextLookup())
	}
	switch {
	case f.retires(h, soonest, work || recrawlAt < never, now):
		f.retire(h, wake, work)
	case !work && recrawlAt == never:
		h.state = h.idleState()
	case f.sessionOver(h, soonest) && (a.inFlight > 0 || a.uncommitted > 0 || len(a.busy) > 0):
		h.state = leased // goes dormant when all of it is committed
	case a.failUntil > now:
		f.pushReady(h, soonest)
	case a.lookingUp || !resolvedThen && max(soonest-lead, h.nextLookup()) <= now:
		f.requestLookup(h, now)
	case !resolvedThen:
		f.pushReady(h, max(soonest-lead, h.nextLookup()))
	default:
		f.waitForWork(h, wake, work, recrawlAt)
	}
}

// awaitBoth lets a host wait for its new URLs, for its renewals, or for both.
func (f *Frontier) waitForWork(h *host, wake instant, work bool, recrawlAt instant) {
	h.state = waitingToRecrawl
	if work {
		f.pushReady(h, wake)
	}
	if recrawlAt < never {
		f.pushRecrawl(h, inActiveHeap, recrawlAt)
	}
}

// pause is the place of an active host that has nothing to do at the moment.
func (h *host) idleState() state {
	switch a := h.active; {
	case a.loading:
		return loading
	case a.inFlight > 0:
		return leased
	case h.isBlocked():
		return waitingForRobots
	}
	return empty
}

// leave takes a host out of the heaps it is in.
func (f *Frontier) unschedule(h *host) {
	f.removeRecrawl(h)
	switch h.state {
	case dormant:
		f.dormant[h.heapLane].remove(h)
	case woken:
		f.woken.remove(h)
	case waiting:
		f.ready[h.heapLane].remove(h)
	}
	h.state = empty
}

func (f *Frontier) pushReady(h *host, key instant) {
	h.state, h.readyAt, h.heapLane = waiting, key, h.lane
	if h.active.hasSlot { // no lane is closed to it
		h.heapLane = quick
	}
	f.ready[h.heapLane].push(h, h.active.topPriority())
}

func (f *Frontier) pushDormant(h *host, key instant) {
	h.state, h.readyAt, h.heapLane = dormant, key, h.lane
	f.dormant[h.heapLane].push(h, 0)
}

// placeDormant puts a host without active part among the dormant if it has work.
func (f *Frontier) scheduleDormant(h *host) {
	switch {
	case len(f.dormantJobs[h.id]) > 0:
		h.state, h.readyAt = woken, h.ready-lead
		f.woken.push(h, 0)
	case h.queued+h.due > 0 && f.isOverBudget(h):
		f.setOverBudget(h)
	case h.queued > 0:
		f.pushDormant(h, max(h.ready, h.workAt)-lead)
	case h.due > 0:
		f.pushDormant(h, max(h.ready, h.workAt, f.fromUnix(h.nextDue))-lead)
	default:
		h.state = empty
	}
	f.scheduleRecrawls(h)
}

// placeRenewals puts a host without active part among those that sleep if it has renewals.
func (f *Frontier) scheduleRecrawls(h *host) {
	if f.o.Renew == nil || h.recrawls == 0 || h.state == woken {
		return
	}
	at := max(h.ready, f.fromUnix(h.nextRecrawl))
	if h.robotsReason != robots.ReasonNone {
		at = max(at, h.workAt)
	}
	if h.state == empty {
		h.state = recrawlOnly
	}
	f.pushRecrawl(h, inDormantHeap, at-lead)
}

// startable reports whether a host may be given a lease as far as it is itself
// concerned.
func (f *Frontier) canLease(h *host, now instant) bool {
	wake, work := f.workAt(h)
	return (work && wake <= now || f.recrawlAllowed(now) && f.recrawlAt(h) <= now) && h.active.inFlight < h.active.inFlightLimit()
}

// limit is how many requests to the host may be in flight: one until a robots.txt
// was read, because it may ask for a delay.
func (a *active) inFlightLimit() int {
	if !a.learned() {
		return 1
	}
	return a.polite.InFlightLimit()
}

// wake is when a host has something to do and politeness lets it; false when
// that depends on an event.
func (f *Frontier) workAt(h *host) (instant, bool) {
	a := h.active
	at := never
	if len(a.jobs) > 0 {
		at = always
	}
	if f.isOverBudget(h) {
		return max(at, f.instant(a.polite.Ready(f.clock))), len(a.jobs) > 0
	}
	for i := range a.queues {
		if q := &a.queues[i]; !q.isBlocked() && a.offers(q) {
			at = min(at, q.heldUntil)
		}
	}
	if a.loadAfter != always && a.needsHeads(f.o.Heads) {
		at = min(at, a.loadAfter)
	}
	at = min(at, f.readDueAt(h))
	if at == never {
		return never, false
	}
	return max(at, f.instant(a.polite.Ready(f.clock))), true
}

// asking reports whether an answer about one of the host's origins, or URLs, is awaited.
func (h *host) isBlocked() bool {
	for i := range h.active.queues {
		if h.active.queues[i].isBlocked() {
			return true
		}
	}
	return false
}

// retires decides whether an active host goes dormant: never with anything
// unsettled; and then if it has nothing to do for a while, or others need the room.
func (f *Frontier) retires(h *host, wake instant, work bool, now instant) bool {
	a := h.active
	if a.inFlight > 0 || a.uncommitted > 0 || a.loading || a.lookingUp || len(a.jobs) > 0 || len(a.busy) > 0 || h.isBlocked() {
		return false
	}
	return !work || wake > now+idleTime || wake > now+lead && f.roomNeeded(wake) || f.sessionOver(h, wake)
}

// outstays reports whether a host's session is over and others wait for room.
func (f *Frontier) sessionOver(h *host, wake instant) bool {
	return f.o.Session > 0 && h.active.served >= f.o.Session && f.roomNeeded(wake)
}

// needed reports whether there is no room, and a dormant host would use it
// before an instant.
func (f *Frontier) roomNeeded(by instant) bool {
	if f.hasRoom() {
		return false
	}
	for l := range lanes {
		if next := f.dormant[l].top(); next != nil && next.readyAt < by && f.laneMayActivate(l) {
			return true
		}
	}
	return false
}

// retire makes a host dormant.
func (f *Frontier) retire(h *host, wake instant, work bool) {
	a := h.active
	h.robotsReason, h.workAt = a.robotsHold(), wake
	switch {
	case work:
	case f.isOverBudget(h):
		h.workAt = always
	default:
		h.workAt, h.queued = always, 0 // all of it was read; a commit brings it back with more
	}
	f.saveTimes(h, a.polite)
	f.deactivate(h)
	f.scheduleDormant(h)
}

// deactivate drops the active part of a host.
func (f *Frontier) deactivate(h *host) {
	f.setLimit(h, byDomain, nil)
	f.setLimit(h, byAddress, nil)
	f.countLane(h, lanes)
	f.activeHosts--
	f.activeBytes -= h.active.bytes
	h.active = nil
}

// holding is why robots.txt holds all that the host has to do; ReasonNone if it
// does not.
func (a *active) robotsHold() robots.Reason {
	why := robots.ReasonNone
	for i := range a.queues {
		q := &a.queues[i]
		switch {
		case q.Len(queue.New)+q.Len(queue.Due)+q.Len(queue.Recrawl) == 0:
		case q.heldUntil == always || q.isBlocked():
			return robots.ReasonNone
		default:
			why = q.holdReason
		}
	}
	return why
}

// room reports whether another host may become active.
func (f *Frontier) hasRoom() bool {
	return f.activeHosts < f.o.ActiveHosts && f.activeBytes < f.o.ActiveBytes
}

// weigh keeps the sum of what active hosts hold in memory.
func (f *Frontier) updateBytes(h *host) {
	n := h.active.measure()
	f.activeBytes += n - h.active.bytes
	h.active.bytes = n
}

// opens reports whether a host may become active now: few at a time, because
// what they weigh is known only when they are loaded.
func (f *Frontier) canActivate() bool { return f.hasRoom() && f.activating < maxActivating }

// maxOpening is how many hosts may be on their way from dormant to active.
const maxActivating = 256

// activate makes dormant hosts active whose turn is near. Those that others wait
// for need no room: the ones that wait may have taken all there is.
func (f *Frontier) activateDue(now instant) {
	for h := f.woken.top(); h != nil && h.readyAt <= now; h = f.woken.top() {
		f.activate(h)
	}
	f.activateForRecrawls(now)
	for f.canActivate() {
		h := f.nextDormant(now)
		switch {
		case h == nil:
			return
		case f.isOverBudget(h):
			f.schedule(h, now)
		default:
			f.activate(h)
		}
	}
}

// nextDormant is the dormant host that is due first, of those that have use for becoming active;
// nil: that of none is near.
func (f *Frontier) nextDormant(now instant) (first *host) {
	for l := range lanes {
		h := f.dormant[l].top()
		if h != nil && h.readyAt <= now && (first == nil || h.readyAt < first.readyAt) && f.laneMayActivate(l) {
			first = h
		}
	}
	return first
}

// mayOpen reports whether dormant hosts of a lane may become active as far as the others are
// concerned: of those that are not quick, any number of which may wait for lookups and workers for
// long, half of the room holds as many as there is use for.
func (f *Frontier) laneMayActivate(l lane) bool {
	half := max(f.o.ActiveHosts/2, 1)
	switch {
	case l == quick:
		return true
	case f.traffic.hosts[l] >= half:
		return false
	}
	return l == slow || f.lookups.untried() < min(maxActivating+4*f.o.Resolvers, half)
}

func (f *Frontier) activate(h *host) {
	f.unschedule(h)
	h.active = &active{jobs: f.dormantJobs[h.id], loadAfter: always}
	delete(f.dormantJobs, h.id)
	h.workAt = always
	f.activeHosts++
	f.activating++
	h.state = loading
	f.requestLoad(h)
}

// setTrouble notes since when a host cannot be asked.
func (h *host) setFailing(s politeness.Signal, now instant) {
	switch {
	case s == politeness.SignalOK:
		h.failingSince = never
	case s != politeness.SignalAborted && h.failingSince == never:
		h.failingSince = now
	}
}
