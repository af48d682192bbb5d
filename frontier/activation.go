package frontier

// maxActivating is how many hosts may be on their way from dormant to active.
const maxActivating = 256

// activateDue makes dormant hosts active that may be fetched from soon. Those that other hosts wait
// for need no room, because the hosts that wait may have taken all of it.
func (f *Frontier) activateDue(now instant) {
	for f.woken.nextAt() <= now {
		f.activate(f.woken.top())
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

// nextDormant is the dormant host that is due first in the lanes that may activate hosts; nil if
// none is due soon.
func (f *Frontier) nextDormant(now instant) (first *host) {
	soonest := now + 1
	for l := range lanes {
		if at := f.dormant[l].nextAt(); at < soonest && f.laneMayActivate(l) {
			first, soonest = f.dormant[l].top(), at
		}
	}
	return first
}

// laneMayActivate reports whether a lane leaves room for the others. Hosts that are not quick may
// wait long for lookups and workers, so they get half of the room, and untried ones no more than
// the lookups have use for.
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

// canActivate reports whether a host may become active now. Only few are loaded at a time, because
// their size is known only when they are loaded.
func (f *Frontier) canActivate() bool { return f.hasRoom() && f.activating < maxActivating }

// hasRoom reports whether there is room for another active host.
func (f *Frontier) hasRoom() bool {
	return f.activeHosts < f.o.ActiveHosts && f.activeBytes < f.o.ActiveBytes
}

func (f *Frontier) activate(h *host) {
	f.unschedule(h)
	h.active = &active{
		jobs: f.dormantJobs[h.id], loadAfter: always, notBefore: always, recheckAt: always, batchAt: always,
		putsSince: never,
	}
	delete(f.dormantJobs, h.id)
	h.workAt = always
	f.activeHosts++
	f.activating++
	h.state = loading
	f.requestLoad(h)
}

// retires reports whether h should become dormant: nothing is in flight or uncommitted, and h has
// no work for idleTime or its room is needed.
func (f *Frontier) retires(h *host, wake instant, work bool, now instant) bool {
	a := h.active
	pending := a.inFlight + a.uncommitted + len(a.busy) + len(a.jobs)
	if pending > 0 || a.loading || a.lookingUp || h.isBlocked() {
		return false
	}
	return !work || wake > now+idleTime || wake > now+lead && f.roomNeeded(wake) || f.sessionOver(h, wake)
}

// sessionOver reports whether h has had its session and other hosts wait for room.
func (f *Frontier) sessionOver(h *host, wake instant) bool {
	return f.o.Session > 0 && h.active.served >= f.o.Session && f.roomNeeded(wake)
}

// roomNeeded reports whether there is no room and a dormant host would use it before an instant.
func (f *Frontier) roomNeeded(by instant) bool {
	if f.hasRoom() {
		return false
	}
	for l := range lanes {
		if f.dormant[l].nextAt() < by && f.laneMayActivate(l) {
			return true
		}
	}
	return false
}

// retire makes an active host dormant.
func (f *Frontier) retire(h *host, wake instant, work bool) {
	a := h.active
	h.robotsReason, h.workAt = a.robotsHold(), wake
	switch {
	case work:
	case f.isOverBudget(h):
		h.workAt = always
	default:
		h.workAt, h.queued = always, 0 // all of its queue was read; a commit that brings more ends this
	}
	f.saveTimes(h, &a.polite, a.wallKind())
	f.deactivate(h)
	f.scheduleDormant(h)
}

// deactivate drops what is in memory of an active host.
func (f *Frontier) deactivate(h *host) {
	for class := range limitClasses {
		f.setLimit(h, class, nil)
	}
	f.countLane(h, lanes)
	f.activeHosts--
	f.activeBytes -= h.active.bytes
	h.active = nil
}

// updateBytes updates the sum of what active hosts hold in memory.
func (f *Frontier) updateBytes(h *host) {
	n := h.active.measure()
	f.activeBytes += n - h.active.bytes
	h.active.bytes = n
}

// measure estimates what an active host holds in memory.
func (a *active) measure() int {
	n := 900 // what does not depend on its queues, with its share of maps
	for i := range a.queues {
		q := &a.queues[i]
		n += 400 + len(q.record.Body) + q.Bytes()
		if q.rules != nil {
			n += q.rules.Size()
		}
	}
	return n
}
