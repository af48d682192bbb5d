package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// LoadRequest requests the next URLs of a host, and the first time for all that an active host
// needs.
type LoadRequest struct {
	Host   storage.HostID
	Now    time.Time      // due times are compared with it
	Queues []QueueRequest // those that are known already; none: the host becomes active
	Max    int            // new URLs of each queue wanted
	Due    int            // due URLs of each queue wanted

	Recrawls int // pages to recrawl of each queue wanted
}

// QueueRequest is the part of a LoadRequest about one queue.
type QueueRequest struct {
	From  uint32
	Max   int  // new URLs wanted; 0: none
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
	Record robots.Record // zero: none is stored, or it was not wanted
	Rules  *robots.Rules
}

// requestLoad requests the next URLs of a host.
func (m *inMemory) requestLoad(h *host) {
	a := h.active
	if a.loading {
		return
	}
	a.loading = true
	heads := m.headsOf(a)
	a.dueWanted = heads + len(a.busy) // busy ones are left out
	r := LoadRequest{Host: h.id, Now: m.dueTime(m.clock), Max: heads, Due: a.dueWanted}
	if m.o.Recrawl != nil {
		r.Recrawls = a.dueWanted
	}
	for i := range a.queues {
		q := &a.queues[i]
		r.Queues = append(r.Queues, QueueRequest{
			From: q.ReadTo(), Max: max(0, heads-q.Len(queue.New)), Known: q.known,
		})
	}
	m.wants = append(m.wants, r)
}

// TakeWants returns the load requests since the last call. Each must be answered with Loaded or LoadFailed.
func (f *Frontier) TakeWants() []LoadRequest {
	w := f.memory.wants
	f.memory.wants = nil
	return w
}

// Loaded takes in what was loaded of a host. The error is that of stored values that cannot be decoded.
func (f *Frontier) Loaded(l *Load, now time.Time) error {
	h := f.hosts.get(l.Host.ID)
	if h == nil || h.active == nil {
		return nil
	}
	a := h.active
	f.readClock(now)
	a.loading = false
	opening := !a.loaded
	if opening {
		f.memory.activating--
		state, err := politeness.DecodeState(l.Host.Politeness)
		if err != nil {
			return err
		}
		f.budgets.setName(h, l.Host.Name, 0)
		f.restorePoliteness(&a.polite, state, h, now)
		a.name, a.loaded = l.Host.Name, true
		h.setLimit(byDomain, f.limits.ofDomain(a.name))
		h.setLimit(byGroup, f.limits.ofGroup(a.name, nil)) // a group by alias follows with the address
		if f.o.NoLookups {
			h.setLimit(byAddress, &f.limits.none)
			a.expires = never
		}
		if a.site, err = recrawl.DecodeSite(l.Host.Site); err != nil {
			return err
		}
		if a.wall, err = wall.DecodeState(l.Host.Wall); err != nil {
			return err
		}
	}
	a.read, a.dueRead = l.Host.Tail, uint32(l.At.Unix())
	a.recrawlsRead, a.dueLater = a.dueRead, 0
	a.tail = max(a.tail, a.read)
	missed := a.dueMissed
	if a.dueMissed {
		a.dueMissed, a.dueRead = false, 0
	}
	for i := range l.Host.Queues {
		f.memory.loadQueue(a, i, l)
	}
	a.applyCommitted()
	if a.hasRead(!missed) {
		f.memory.requestLoad(h)
	}
	f.commands.applyDrop(h, now)
	h.setPace()
	if opening {
		f.commands.applyCommands(h, now)
	}
	f.memory.updateBytes(h)
	f.schedule(h, f.instant(now))
	return nil
}

// hasRead says that what is due was read. It reports whether queues wait for more, because it was not all.
func (a *active) hasRead(all bool) (waits bool) {
	for i := range a.queues {
		q := &a.queues[i]
		q.awaitsRead = q.awaitsRead && !all
		waits = waits || q.awaitsRead
	}
	return waits
}

// applyCommitted removes from busy what was committed during a load.
func (a *active) applyCommitted() {
	for _, ordinal := range a.commitsDuringLoad {
		a.committed(ordinal)
	}
	a.commitsDuringLoad = nil
}

// loadQueue takes in one queue.
func (m *inMemory) loadQueue(a *active, i int, l *Load) {
	from, got := &l.Host.Queues[i], &l.Queues[i]
	if i == len(a.queues) {
		a.queues = append(a.queues, originQueue{
			Queue: queue.Make(uint8(i), from.Cursor), origin: from.Origin, heldUntil: always,
		})
		m.setOptedOut(a)
	}
	q := &a.queues[i]
	if !q.known {
		if m.o.NoRobots {
			got.Record, got.Rules = robots.Record{}, m.allowAll
		}
		q.setRules(got.Record, got.Rules)
		q.known = got.Rules != nil
	}
	a.isDueLater(got.Heads.NextDue)
	q.Load(&got.Heads, a.busy, m.headsOf(a), a.dueWanted)
}

// LoadFailed says that a load failed. It is requested again after idleTime.
func (f *Frontier) LoadFailed(id storage.HostID, now time.Time) {
	h := f.hosts.get(id)
	if h == nil || h.active == nil {
		return
	}
	a, t := h.active, f.instant(now)
	f.readClock(now)
	a.loading = false
	a.applyCommitted()
	a.hasRead(true) // as far as that can be told
	if !a.loaded {
		f.memory.activating--
		if len(a.jobs) > 0 {
			f.jobs.dormant[id] = append(f.jobs.dormant[id], a.jobs...)
		}
		f.memory.deactivate(h)
		h.ready = max(h.ready, t+idleTime)
	} else {
		a.loadAfter = t + idleTime
	}
	f.schedule(h, t)
}

// putHold holds a URL while puts of it are not committed.
type putHold struct {
	puts  int                // not committed
	taken []storage.Position // its positions that are busy because of them
}

// putHolds are the URLs that puts hold.
type putHolds struct {
	byURL map[string]*putHold
}

// holds reports whether a put holds a URL that was taken from its queue. It is then busy until the
// put is on disk.
func (ph *putHolds) holds(h *host, head *storage.Head, url func() string) bool {
	if len(ph.byURL) == 0 {
		return false
	}
	p := ph.byURL[url()]
	if p != nil {
		h.active.busy.Add(head.Ordinal)
		p.taken = append(p.taken, storage.Position{Host: h.id, Ordinal: head.Ordinal})
	}
	return p != nil
}

// release ends that a URL is busy: its outcome is on disk.
func (r *register) release(at storage.Position) {
	h := r.get(at.Host)
	switch {
	case h == nil || h.active == nil:
	case h.active.loading:
		h.active.commitsDuringLoad = append(h.active.commitsDuringLoad, at.Ordinal)
	default:
		h.active.committed(at.Ordinal)
	}
}

// committed takes a URL off busy whose outcome is on disk.
func (a *active) committed(ordinal uint32) {
	a.busy.Remove(ordinal)
	for i := range a.queues {
		a.queues[i].Done(ordinal)
	}
}

// nextBatchAt is when a host may give out the next batch; always: at once.
func (b *base) nextBatchAt(h *host) instant {
	if h.active.batchAt == always {
		return always
	}
	return h.active.batchAt + instant(h.active.polite.Delay(b.clock))
}

// maxPutWait is for how long a host waits until URLs are read that were put with dates in the past.
const maxPutWait = instant(time.Second)

// readsPuts reports whether a host, with Options.Batches, waits until URLs are read that were put with
// dates in the past: they come before those in memory. Puts that never end do not hold it for ever.
func (b *base) readsPuts(a *active, now instant) bool {
	if !b.o.Batches || !a.loading || a.dueRead > 0 && !a.dueMissed {
		a.putsSince = never
		return false
	}
	a.putsSince = min(a.putsSince, now)
	return now-a.putsSince < maxPutWait
}

// ReadsPuts reports whether a host, with Options.Batches, has nothing to hand out only because URLs are
// being read that were put.
func (f *Frontier) ReadsPuts(id storage.HostID) bool {
	h := f.hosts.get(id)
	return f.o.Batches && h != nil && h.active != nil && h.active.loaded && h.active.loading && h.state == loading &&
		f.politeAt(h) <= f.instant(f.clock)
}

// applySet drops what is in memory of a URL whose outcome somebody else has set. What the store has
// of it now is loaded when it is due.
func (r *register) applySet(at storage.Position) {
	h := r.get(at.Host)
	if h == nil || h.active == nil {
		return
	}
	a := h.active
	for i := range a.queues {
		a.queues[i].Remove(at.Ordinal)
	}
	if a.loading && !a.busy.Has(at.Ordinal) { // the load may bring what the store knew before
		a.busy.Add(at.Ordinal)
		a.commitsDuringLoad = append(a.commitsDuringLoad, at.Ordinal)
	}
}

// isPutBack reports whether a conditional outcome comes from PutBack.
func isPutBack(o *storage.Outcome) bool {
	return o.State == storage.Retrying && o.Reason == storage.ReasonOperator
}

// isLeftOut reports whether a conditional outcome comes from LeaveOut or a drop, or gives up a URL without a lease.
func isLeftOut(o *storage.Outcome) bool {
	return o.State == storage.Failed || o.State == storage.Excluded && o.Reason == storage.ReasonOperator
}

// leased returns the lease of a URL; nil: it is not leased.
func (r *register) leased(at storage.Position, leases *leases) *outstanding {
	if h := r.get(at.Host); h != nil && h.active != nil && h.active.busy.Has(at.Ordinal) {
		for _, out := range leases.out {
			isOfURL := out.lease.Kind == Page || out.lease.Kind == Match
			if isOfURL && out.host == h && out.lease.Head.Ordinal == at.Ordinal {
				return out
			}
		}
	}
	return nil
}

// OffPlan says that the next commit takes a URL off the recrawl plan. If it is leased, its plan begins again with the
// response; that of a deleted URL does not.
func (f *Frontier) OffPlan(at storage.Position, deleted bool) {
	if out := f.hosts.leased(at, f.leases); out != nil {
		out.lease.Head.Last.History, out.deleted = recrawl.History{}, deleted
	}
}
