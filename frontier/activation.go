package frontier

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

// opens reports whether a host may become active now: few at a time, because
// what they weigh is known only when they are loaded.
func (f *Frontier) canActivate() bool { return f.hasRoom() && f.activating < maxActivating }

// room reports whether another host may become active.
func (f *Frontier) hasRoom() bool {
	return f.activeHosts < f.o.ActiveHosts && f.activeBytes < f.o.ActiveBytes
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

// weigh keeps the sum of what active hosts hold in memory.
func (f *Frontier) updateBytes(h *host) {
	n := h.active.measure()
	f.activeBytes += n - h.active.bytes
	h.active.bytes = n
}

// measure estimates what an active host keeps in memory.
func (a *active) measure() int {
	n := 900 // all of it that does not depend on its queues, its share of maps included
	for i := range a.queues {
		q := &a.queues[i]
		n += 400 + len(q.record.Body) + q.Bytes()
		if q.rules != nil {
			n += q.rules.Size()
		}
	}
	return n
}
