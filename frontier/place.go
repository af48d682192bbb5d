package frontier

import (
	"slices"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// place puts a host where it belongs. It is called after everything that
// happened to the host, and is the only function that moves it, but for
// crowd and promote, which know the line of an address.
func (f *Frontier) place(h *host, now instant) {
	if h.place == crowded {
		return // it keeps its turn; what changed is seen when that comes
	}
	f.leave(h, now)
	a := h.active
	if a == nil {
		f.placeDormant(h)
		return
	}
	f.weigh(h)
	if a.polite != nil {
		h.delay = float32(a.polite.Delay().Seconds())
	}
	wake, work := f.wake(h)
	switch {
	case a.polite == nil:
		h.place = loading
	case a.inFlight > 0 && a.inFlight >= a.polite.InFlightLimit():
		h.place = leased
	case f.retires(h, wake, work, now):
		f.retire(h, wake, work)
	case !work && a.loading:
		h.place = loading
	case !work && a.inFlight > 0:
		h.place = leased
	case !work && h.asking():
		h.place = parked
	case !work:
		h.place = idle
	case a.resolving || !a.resolved(max(wake, now)) && wake-lead <= now:
		f.queueName(h)
	case !a.resolved(max(wake, now)):
		f.await(h, wake-lead)
	default:
		f.await(h, wake)
	}
}

// leave takes a host out of the heap it is in.
func (f *Frontier) leave(h *host, now instant) {
	switch h.place {
	case dormant:
		f.dormant.remove(h)
	case waiting:
		f.ready.remove(h)
		if a := h.active.address; a != nil && a.probe == h {
			a.probe = nil
			defer f.promote(a, now)
		}
	}
	h.place = idle
}

func (f *Frontier) await(h *host, key instant) {
	h.place, h.key = waiting, key
	f.ready.push(h)
}

// placeDormant puts a host without active part among the dormant if it has work.
func (f *Frontier) placeDormant(h *host) {
	key := h.ready
	switch {
	case h.queued > 0 || len(f.errands[h.id]) > 0:
	case h.due > 0:
		key = max(key, f.unix(h.nextDue))
	default:
		h.place = idle
		return
	}
	h.place, h.key = dormant, key-lead
	f.dormant.push(h)
}

// wake is when a host has something to do and politeness lets it; false when
// that depends on an event. It asks for more heads where they run low.
func (f *Frontier) wake(h *host) (instant, bool) {
	a := h.active
	if a.polite == nil {
		return never, false
	}
	at := never
	if len(a.jobs) > 0 {
		at = always
	}
	for i := range a.queues {
		q := &a.queues[i]
		if !q.asked && len(q.heads)+len(q.due) > 0 {
			at = min(at, q.held)
		}
		if len(q.heads) <= f.o.Heads/4 && q.next < a.tail {
			f.want(h)
		}
	}
	if h.due > 0 && h.nextDue > a.dueRead && !a.loading {
		at = min(at, f.unix(h.nextDue))
	}
	if at == never {
		return never, false
	}
	return max(at, f.instant(a.polite.Ready())), true
}

// asking reports whether an answer about one of the host's origins is awaited.
func (h *host) asking() bool {
	return slices.ContainsFunc(h.active.queues, func(q queue) bool { return q.asked })
}

// retires decides whether an active host goes dormant: never with anything
// unsettled; and then if it has nothing to do for a while, or others need the room.
func (f *Frontier) retires(h *host, wake instant, work bool, now instant) bool {
	a := h.active
	if a.inFlight > 0 || a.uncommitted > 0 || a.loading || a.resolving || len(a.jobs) > 0 || len(a.busy) > 0 || h.asking() {
		return false
	}
	if !work || wake > now+keep {
		return true
	}
	next := f.dormant.top()
	return !f.room() && next != nil && next.key < wake
}

// retire drops the active part of a host.
func (f *Frontier) retire(h *host, wake instant, work bool) {
	a := h.active
	h.ready, h.reason, h.robots = f.instant(a.polite.Ready()), a.polite.Reason(), a.holding()
	if work {
		h.ready = max(h.ready, wake)
	} else {
		h.queued = 0 // all of it was read; a commit brings it back with more
	}
	f.setAddress(h, nil)
	f.activeHosts--
	f.activeBytes -= a.bytes
	h.active = nil
	f.placeDormant(h)
}

// holding is why robots.txt holds a queue of the host; ReasonNone if it holds none.
func (a *active) holding() robots.Reason {
	for i := range a.queues {
		if q := &a.queues[i]; q.held != always {
			return q.why
		}
	}
	return robots.ReasonNone
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

// activate makes dormant hosts active whose turn is near.
func (f *Frontier) activate(now instant) {
	for f.room() {
		h := f.dormant.top()
		if h == nil || h.key > now {
			return
		}
		f.leave(h, now)
		h.active = &active{busy: make(map[uint32]struct{}), jobs: f.errands[h.id]}
		delete(f.errands, h.id)
		f.activeHosts++
		h.place = loading
		f.want(h)
	}
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
