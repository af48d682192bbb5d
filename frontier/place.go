package frontier

import (
	"slices"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// lead is how long before its instant a host is loaded and resolved.
const lead = instant(2 * time.Second)

// keep is how long a host may have nothing to do before it goes dormant.
const keep = instant(time.Minute)

// place puts a host where it belongs. It is called after everything that
// happened to the host, and moves it between all places but those of the line
// of an address: a host whose turn there has come keeps it, and what changed is
// seen by Next.
func (f *Frontier) place(h *host, now instant) {
	if h.place == crowded || h.reserved() {
		return
	}
	f.leave(h)
	f.setLane(h)
	a := h.active
	if a == nil {
		f.placeDormant(h)
		return
	}
	if a.polite == nil {
		h.place = loading
		return
	}
	h.delay = float32(a.polite.Delay(f.clock).Seconds())
	f.giveUp(h, now)
	f.refill(h, now)
	if a.inFlight >= a.limit() {
		h.place = leased
		return
	}
	wake, work := f.wake(h)
	renew := f.renewAt(h)
	soonest := min(wake, max(renew, f.share.opens))
	named := a.resolved(max(soonest, now))
	if !named {
		wake, soonest = max(wake, h.namelessUntil()), max(soonest, h.namelessUntil())
	}
	switch {
	case f.retires(h, soonest, work || renew < never, now):
		f.retire(h, wake, work)
	case !work && renew == never:
		h.place = h.pause()
	case f.outstays(h, soonest) && (a.inFlight > 0 || a.uncommitted > 0 || len(a.busy) > 0):
		h.place = leased // goes dormant when all of it is committed
	case a.hopeless > now:
		f.await(h, soonest)
	case a.lookingUp || !named && max(soonest-lead, h.namelessUntil()) <= now:
		f.lookUp(h, now)
	case !named:
		f.await(h, max(soonest-lead, h.namelessUntil()))
	default:
		f.awaitBoth(h, wake, work, renew)
	}
}

// awaitBoth lets a host wait for its new URLs, for its renewals, or for both.
func (f *Frontier) awaitBoth(h *host, wake instant, work bool, renew instant) {
	h.place = renewal
	if work {
		f.await(h, wake)
	}
	if renew < never {
		f.enterRenewals(h, renewing, renew)
	}
}

// pause is the place of an active host that has nothing to do at the moment.
func (h *host) pause() place {
	switch a := h.active; {
	case a.loading:
		return loading
	case a.inFlight > 0:
		return leased
	case h.asking():
		return parked
	}
	return idle
}

// leave takes a host out of the heaps it is in.
func (f *Frontier) leave(h *host) {
	f.leaveRenewals(h)
	switch h.place {
	case dormant:
		f.dormant[h.heap].remove(h)
	case called:
		f.called.remove(h)
	case waiting:
		f.ready[h.heap].remove(h)
	}
	h.place = idle
}

func (f *Frontier) await(h *host, key instant) {
	h.place, h.key, h.heap = waiting, key, h.lane
	if h.active.holdsPlace { // no lane is closed to it
		h.heap = quick
	}
	f.ready[h.heap].push(h, h.active.foremost())
}

func (f *Frontier) sleep(h *host, key instant) {
	h.place, h.key, h.heap = dormant, key, h.lane
	f.dormant[h.heap].push(h, 0)
}

// placeDormant puts a host without active part among the dormant if it has work.
func (f *Frontier) placeDormant(h *host) {
	switch {
	case len(f.errands[h.id]) > 0:
		h.place, h.key = called, h.ready-lead
		f.called.push(h, 0)
	case h.queued+h.due > 0 && f.spent(h):
		f.shelve(h)
	case h.queued > 0:
		f.sleep(h, max(h.ready, h.wake)-lead)
	case h.due > 0:
		f.sleep(h, max(h.ready, h.wake, f.unix(h.nextDue))-lead)
	default:
		h.place = idle
	}
	f.placeRenewals(h)
}

// placeRenewals puts a host without active part among those that sleep if it has renewals.
func (f *Frontier) placeRenewals(h *host) {
	if f.o.Renew == nil || h.renewals == 0 || h.place == called {
		return
	}
	at := max(h.ready, f.unix(h.nextRenewal))
	if h.robots != robots.ReasonNone {
		at = max(at, h.wake)
	}
	if h.place == idle {
		h.place = resting
	}
	f.enterRenewals(h, sleeping, at-lead)
}

// startable reports whether a host may be given a lease as far as it is itself
// concerned.
func (f *Frontier) startable(h *host, now instant) bool {
	wake, work := f.wake(h)
	return (work && wake <= now || f.renewable(now) && f.renewAt(h) <= now) && h.active.inFlight < h.active.limit()
}

// limit is how many requests to the host may be in flight: one until a robots.txt
// was read, because it may ask for a delay.
func (a *active) limit() int {
	if !a.learned() {
		return 1
	}
	return a.polite.InFlightLimit()
}

// wake is when a host has something to do and politeness lets it; false when
// that depends on an event.
func (f *Frontier) wake(h *host) (instant, bool) {
	a := h.active
	at := never
	if len(a.jobs) > 0 {
		at = always
	}
	if f.spent(h) {
		return max(at, f.instant(a.polite.Ready(f.clock))), len(a.jobs) > 0
	}
	for i := range a.queues {
		if q := &a.queues[i]; !q.stands() && a.offers(q) {
			at = min(at, q.held)
		}
	}
	if a.loadAfter != always && a.low(f.o.Heads) {
		at = min(at, a.loadAfter)
	}
	at = min(at, f.readDueAt(h))
	if at == never {
		return never, false
	}
	return max(at, f.instant(a.polite.Ready(f.clock))), true
}

// asking reports whether an answer about one of the host's origins, or URLs, is awaited.
func (h *host) asking() bool {
	return slices.ContainsFunc(h.active.queues, func(q queue) bool { return q.stands() })
}

// retires decides whether an active host goes dormant: never with anything
// unsettled; and then if it has nothing to do for a while, or others need the room.
func (f *Frontier) retires(h *host, wake instant, work bool, now instant) bool {
	a := h.active
	if a.inFlight > 0 || a.uncommitted > 0 || a.loading || a.lookingUp || len(a.jobs) > 0 || len(a.busy) > 0 || h.asking() {
		return false
	}
	return !work || wake > now+keep || wake > now+lead && f.needed(wake) || f.outstays(h, wake)
}

// outstays reports whether a host's session is over and others wait for room.
func (f *Frontier) outstays(h *host, wake instant) bool {
	return f.o.Session > 0 && h.active.served >= f.o.Session && f.needed(wake)
}

// needed reports whether there is no room, and a dormant host would use it
// before an instant.
func (f *Frontier) needed(by instant) bool {
	if f.room() {
		return false
	}
	for l := range lanes {
		if next := f.dormant[l].top(); next != nil && next.key < by && f.mayOpen(l) {
			return true
		}
	}
	return false
}

// retire makes a host dormant.
func (f *Frontier) retire(h *host, wake instant, work bool) {
	a := h.active
	h.robots, h.wake = a.holding(), wake
	switch {
	case work:
	case f.spent(h):
		h.wake = always
	default:
		h.wake, h.queued = always, 0 // all of it was read; a commit brings it back with more
	}
	f.remember(h, a.polite)
	f.deactivate(h)
	f.placeDormant(h)
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
func (a *active) holding() robots.Reason {
	why := robots.ReasonNone
	for i := range a.queues {
		q := &a.queues[i]
		switch {
		case !q.waits() && len(q.renewals) == 0:
		case q.held == always || q.stands():
			return robots.ReasonNone
		default:
			why = q.why
		}
	}
	return why
}

// room reports whether another host may become active.
func (f *Frontier) room() bool {
	return f.activeHosts < f.o.ActiveHosts && f.activeBytes < f.o.ActiveBytes
}

// weigh keeps the sum of what active hosts hold in memory.
func (f *Frontier) weigh(h *host) {
	n := h.active.measure()
	f.activeBytes += n - h.active.bytes
	h.active.bytes = n
}

// opens reports whether a host may become active now: few at a time, because
// what they weigh is known only when they are loaded.
func (f *Frontier) opens() bool { return f.room() && f.opening < maxOpening }

// maxOpening is how many hosts may be on their way from dormant to active.
const maxOpening = 256

// activate makes dormant hosts active whose turn is near. Those that others wait
// for need no room: the ones that wait may have taken all there is.
func (f *Frontier) activate(now instant) {
	for h := f.called.top(); h != nil && h.key <= now; h = f.called.top() {
		f.open(h)
	}
	f.wakens(now)
	for f.opens() {
		h := f.nextDormant(now)
		switch {
		case h == nil:
			return
		case f.spent(h):
			f.place(h, now)
		default:
			f.open(h)
		}
	}
}

// nextDormant is the dormant host that is due first, of those that have use for becoming active;
// nil: that of none is near.
func (f *Frontier) nextDormant(now instant) (first *host) {
	for l := range lanes {
		h := f.dormant[l].top()
		if h != nil && h.key <= now && (first == nil || h.key < first.key) && f.mayOpen(l) {
			first = h
		}
	}
	return first
}

// mayOpen reports whether dormant hosts of a lane may become active as far as the others are
// concerned: of those that are not quick, any number of which may wait for lookups and workers for
// long, half of the room holds as many as there is use for.
func (f *Frontier) mayOpen(l lane) bool {
	half := max(f.o.ActiveHosts/2, 1)
	switch {
	case l == quick:
		return true
	case f.traffic.hosts[l] >= half:
		return false
	}
	return l == slow || f.names.new() < min(maxOpening+4*f.o.Resolvers, half)
}

func (f *Frontier) open(h *host) {
	f.leave(h)
	h.active = &active{jobs: f.errands[h.id], loadAfter: always}
	delete(f.errands, h.id)
	h.wake = always
	f.activeHosts++
	f.opening++
	h.place = loading
	f.want(h)
}

// setTrouble notes since when a host cannot be asked.
func (h *host) setTrouble(s politeness.Signal, now instant) {
	switch {
	case s == politeness.SignalOK:
		h.trouble = never
	case s != politeness.SignalAborted && h.trouble == never:
		h.trouble = now
	}
}
