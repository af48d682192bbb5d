package frontier

import (
	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/robots"
)

// maxActivating is how many hosts may be on their way from dormant to active.
const maxActivating = 256

// inMemory says which hosts are active, and what is read for them.
type inMemory struct {
	*base
	lanes    *laneQueues
	budgets  *budgets
	lookups  *lookups
	recrawls *recrawlPlan

	wants       []LoadRequest
	activating  int // hosts in their first load
	activeHosts int
	activeBytes int
	allowAll    *robots.Rules // of all origins, with Options.NoRobots
}

// activateDue makes dormant hosts active that may be fetched from soon. Those that other hosts wait
// for need no room, because the hosts that wait may have taken all of it.
func (s *scheduler) activateDue(now instant) {
	for s.lanes.woken.nextAt() <= now {
		s.activate(s.lanes.woken.top())
	}
	s.activateForRecrawls(now)
	for s.memory.canActivate() {
		h := s.memory.nextDormant(now)
		switch {
		case h == nil:
			return
		case s.budgets.isOver(h):
			s.schedule(h, now)
		default:
			s.activate(h)
		}
	}
}

// nextDormant is the dormant host that is due first in the lanes that may activate hosts; nil if none is due soon.
func (m *inMemory) nextDormant(now instant) (first *host) {
	soonest := now + 1
	for l := range lanes {
		if at := m.lanes.dormant[l].nextAt(); at < soonest && m.laneMayActivate(l) {
			first, soonest = m.lanes.dormant[l].top(), at
		}
	}
	return first
}

// laneMayActivate reports whether a lane leaves room for the others. Hosts that are not quick may
// wait long for lookups and workers, so they get half of the room, and untried ones no more than
// the lookups have use for.
func (m *inMemory) laneMayActivate(l lane) bool {
	half := max(m.o.ActiveHosts/2, 1)
	switch {
	case l == quick:
		return true
	case m.lanes.traffic.hosts[l] >= half:
		return false
	}
	return l == slow || m.lookups.untried() < min(maxActivating+4*m.o.Resolvers, half)
}

// canActivate reports whether a host may become active now. Only few are loaded at a time, because
// their size is known only when they are loaded.
func (m *inMemory) canActivate() bool { return m.hasRoom() && m.activating < maxActivating }

// hasRoom reports whether there is room for another active host.
func (m *inMemory) hasRoom() bool {
	return m.activeHosts < m.o.ActiveHosts && m.activeBytes < m.o.ActiveBytes
}

func (s *scheduler) activate(h *host) {
	s.lanes.remove(h)
	h.active = &active{
		jobs: s.jobs.dormant[h.id], loadAfter: always, notBefore: always, recheckAt: always, batchAt: always,
		putsSince: never,
	}
	delete(s.jobs.dormant, h.id)
	h.workAt = always
	s.memory.activeHosts++
	s.memory.activating++
	h.state = loading
	s.memory.requestLoad(h)
}

// retires reports whether h should become dormant: nothing is in flight or uncommitted, and h has
// no work for idleTime or its room is needed.
func (m *inMemory) retires(h *host, wake instant, work bool, now instant) bool {
	a := h.active
	pending := a.inFlight + a.uncommitted + len(a.busy) + len(a.jobs)
	if pending > 0 || a.loading || a.lookingUp || h.isBlocked() {
		return false
	}
	return !work || wake > now+idleTime || wake > now+lead && m.roomNeeded(wake) || m.sessionOver(h, wake)
}

// sessionOver reports whether h has had its session and other hosts wait for room.
func (m *inMemory) sessionOver(h *host, wake instant) bool {
	return m.o.Session > 0 && h.active.served >= m.o.Session && m.roomNeeded(wake)
}

// roomNeeded reports whether there is no room and a dormant host would use it before an instant.
func (m *inMemory) roomNeeded(by instant) bool {
	if m.hasRoom() {
		return false
	}
	for l := range lanes {
		if m.lanes.dormant[l].nextAt() < by && m.laneMayActivate(l) {
			return true
		}
	}
	return false
}

// retire makes an active host dormant.
func (s *scheduler) retire(h *host, wake instant, work bool) {
	a := h.active
	h.robotsReason, h.workAt = a.robotsHold(), wake
	switch {
	case work:
	case s.budgets.isOver(h):
		h.workAt = always
	default:
		h.workAt, h.backlog.Queued = always, 0 // all of its queue was read; a commit that brings more ends this
	}
	s.saveTimes(h, &a.polite, a.wallKind())
	s.memory.deactivate(h)
	s.scheduleDormant(h)
}

// deactivate drops what is in memory of an active host.
func (m *inMemory) deactivate(h *host) {
	for class := range limitClasses {
		h.setLimit(class, nil)
	}
	m.lanes.count(h, lanes)
	m.activeHosts--
	m.activeBytes -= h.active.bytes
	h.active = nil
}

// updateBytes updates the sum of what active hosts hold in memory.
func (m *inMemory) updateBytes(h *host) {
	n := h.active.measure()
	m.activeBytes += n - h.active.bytes
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

// needsHeads reports whether more URLs should be loaded: a queue runs low, or no queue can go on,
// so that a new queue may have begun behind the URLs that were read.
func (a *active) needsHeads(heads int) bool {
	moves := false
	for i := range a.queues {
		q := &a.queues[i]
		if q.Low(heads, a.tail) {
			return true
		}
		moves = moves || !q.isBlocked() && q.heldUntil == always && q.Len(queue.New) > 0
	}
	return !moves && a.read < a.tail
}

// readDueAt is when due URLs should be loaded again.
func (m *inMemory) readDueAt(h *host) instant {
	a := h.active
	if h.backlog.Due == 0 || a.loading {
		return never
	}
	known := len(a.busy)
	for i := range a.queues {
		known += a.queues[i].Len(queue.Due)
	}
	return m.nextReadAt(a, h.backlog.NextDue, a.dueRead, a.dueLater, int(h.backlog.Due) > known)
}

// nextReadAt is when rows with times should be loaded again. Those up to the second read are in
// memory; next is the earliest one that the store knows. It may be one in memory that hides others,
// so hidden ones are loaded again every idleTime, or at later if that is known of one; 0: it is not.
func (b *base) nextReadAt(a *active, next, read, later uint32, hidden bool) instant {
	switch {
	case next > read:
		return max(b.fromUnix(next), a.loadAfter)
	case hidden && later > 0:
		return max(min(b.fromUnix(read)+idleTime, b.fromUnix(later)), a.loadAfter)
	case hidden:
		return max(b.fromUnix(read)+idleTime, a.loadAfter)
	}
	return never
}

// dueGrew records that there are more due URLs on disk. Those with a priority are due as soon as
// they are discovered, so the last load may have missed them.
func (a *active) dueGrew(nextDue uint32) {
	if a.loading {
		a.dueMissed = true
	} else if nextDue <= a.dueRead {
		a.dueRead = 0
	}
}

// isDueLater records that a URL on disk is due at a time after the last load; 0: none is.
func (a *active) isDueLater(due uint32) {
	if due > 0 && (a.dueLater == 0 || due < a.dueLater) {
		a.dueLater = due
	}
}

// refill requests a load if it is time for one.
func (m *inMemory) refill(h *host, now instant) {
	a := h.active
	if a.loadAfter <= now {
		a.loadAfter = always
	}
	low := a.loadAfter == always && a.needsHeads(m.headsOf(a))
	if !m.budgets.isOver(h) && (low || m.readDueAt(h) <= now) || m.readRecrawlsAt(h) <= now {
		m.requestLoad(h)
	}
}
