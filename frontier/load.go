package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// LoadRequest asks for the next URLs of a host, and at first for all that
// becoming active takes.
type LoadRequest struct {
	Host   storage.HostID
	Now    time.Time      // that due times are compared with
	Queues []QueueRequest // those that are known already; none: the host becomes active
	Max    int            // URLs of each queue wanted
	Due    int            // due URLs of each queue wanted

	Renewals int // renewals of each queue wanted
}

// QueueRequest is where one queue goes on.
type QueueRequest struct {
	From  uint32
	Max   int  // URLs wanted; 0: none
	Known bool // its robots record is not needed again
}

// Load is the answer to a LoadRequest.
type Load struct {
	Host   storage.Host
	Queues []QueueLoad // one for each of Host.Queues
	At     time.Time   // LoadRequest.Now
}

// QueueLoad is what was read of one queue.
type QueueLoad struct {
	Heads  storage.Heads
	Record robots.Record // zero: none is stored, or it was not asked for
	Rules  *robots.Rules
}

// want asks for the next URLs of a host.
func (f *Frontier) requestLoad(h *host) {
	a := h.active
	if a.loading {
		return
	}
	a.loading = true
	a.dueWanted = f.o.Heads + len(a.busy) // busy ones are passed over
	r := LoadRequest{Host: h.id, Now: f.dueTime(f.clock), Max: f.o.Heads, Due: a.dueWanted}
	if f.o.Renew != nil {
		r.Renewals = a.dueWanted
	}
	for i := range a.queues {
		q := &a.queues[i]
		r.Queues = append(r.Queues, QueueRequest{From: q.ReadTo(), Max: max(0, f.o.Heads-q.Len(queue.New)), Known: q.known})
	}
	f.wants = append(f.wants, r)
}

// low reports whether more URLs should be read: where a queue runs out of them,
// and where no queue can move, because a new one may have begun behind them.
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

// readDueAt is when due URLs should be read again.
func (f *Frontier) readDueAt(h *host) instant {
	a := h.active
	if h.due == 0 || a.loading {
		return never
	}
	known := len(a.busy)
	for i := range a.queues {
		known += a.queues[i].Len(queue.Due)
	}
	return f.nextReadAt(a, h.nextDue, a.dueRead, int(h.due) > known)
}

// readAgainAt is when rows that have times should be read again: those up to read are in memory. The earliest of them that the
// store knows of may be in memory already, and hide others until it is settled: where there are such, they are looked for every
// now and then.
func (f *Frontier) nextReadAt(a *active, next, read uint32, hidden bool) instant {
	switch {
	case next > read:
		return max(f.fromUnix(next), a.loadAfter)
	case hidden:
		return max(f.fromUnix(read)+idleTime, a.loadAfter)
	}
	return never
}

// dueGrew takes note of more due URLs on disk. Those that have a priority are due as
// soon as they are found, so that they may have been missed.
func (a *active) dueGrew(nextDue uint32) {
	if a.loading {
		a.dueMissed = true
	} else if nextDue <= a.dueRead {
		a.dueRead = 0
	}
}

// refill asks for URLs when it is time to.
func (f *Frontier) refill(h *host, now instant) {
	a := h.active
	if a.loadAfter <= now {
		a.loadAfter = always
	}
	low := a.loadAfter == always && a.needsHeads(f.o.Heads)
	if !f.isOverBudget(h) && (low || f.readDueAt(h) <= now) || f.readRecrawlsAt(h) <= now {
		f.requestLoad(h)
	}
}

// TakeWants hands over the load requests since the last call. Each must be
// answered with Loaded or LoadFailed.
func (f *Frontier) TakeWants() []LoadRequest {
	w := f.wants
	f.wants = nil
	return w
}

// Loaded takes in what was read of a host.
func (f *Frontier) Loaded(l *Load, now time.Time) error {
	h := f.hosts.get(l.Host.ID)
	if h == nil || h.active == nil {
		return nil
	}
	a := h.active
	f.readClock(now)
	a.loading = false
	opening := a.polite == nil
	if opening {
		f.activating--
		state, err := politeness.DecodeState(l.Host.Politeness)
		if err != nil {
			return err
		}
		f.setName(h, l.Host.Name, 0)
		a.name, a.polite = l.Host.Name, f.restorePoliteness(state, h, now)
		f.setLimit(h, byDomain, f.ofDomain(a.name))
		if a.site, err = revisit.DecodeSite(l.Host.Site); err != nil {
			return err
		}
	}
	a.read, a.dueRead = l.Host.Tail, uint32(l.At.Unix())
	a.recrawlsRead = a.dueRead
	a.tail = max(a.tail, a.read)
	if a.dueMissed {
		a.dueMissed, a.dueRead = false, 0
	}
	for i := range l.Host.Queues {
		f.loadQueue(a, i, l)
	}
	a.applyCommitted()
	f.applyDrop(h, now)
	f.setPace(h)
	if opening {
		f.applyOrders(h, now)
	}
	f.updateBytes(h)
	f.schedule(h, f.instant(now))
	return nil
}

// forget ends what a load under way made necessary.
func (a *active) applyCommitted() {
	for _, ordinal := range a.commitsDuringLoad {
		a.busy.Remove(ordinal)
	}
	a.commitsDuringLoad = nil
}

// loadQueue takes in one queue.
func (f *Frontier) loadQueue(a *active, i int, l *Load) {
	from, got := &l.Host.Queues[i], &l.Queues[i]
	if i == len(a.queues) {
		a.queues = append(a.queues, originQueue{
			Queue: queue.Make(uint8(i), from.Cursor), origin: from.Origin, heldUntil: always,
		})
	}
	q := &a.queues[i]
	if !q.known && got.Rules != nil {
		q.record, q.rules, q.known = got.Record, got.Rules, true
	}
	q.Load(&got.Heads, a.busy, f.o.Heads, a.dueWanted)
}

// LoadFailed says that a load could not be done. The host is asked for again
// after a while.
func (f *Frontier) LoadFailed(id storage.HostID, now time.Time) {
	h := f.hosts.get(id)
	if h == nil || h.active == nil {
		return
	}
	a, t := h.active, f.instant(now)
	f.readClock(now)
	a.loading = false
	a.applyCommitted()
	if a.polite == nil {
		f.activating--
		if len(a.jobs) > 0 {
			f.dormantJobs[id] = append(f.dormantJobs[id], a.jobs...)
		}
		f.deactivate(h)
		h.ready = max(h.ready, t+idleTime)
	} else {
		a.loadAfter = t + idleTime
	}
	f.schedule(h, t)
}
