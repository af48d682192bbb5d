package frontier

import (
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// LoadRequest asks for the next URLs of a host, and at first for all that
// becoming active takes.
type LoadRequest struct {
	Host   storage.HostID
	Queues []QueueRequest // those that are known already; none: the host becomes active
	Max    int            // URLs of each queue wanted
	Due    int            // due URLs of each queue wanted
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
	At     time.Time   // the time that counted for due URLs
}

// QueueLoad is what was read of one queue.
type QueueLoad struct {
	Heads  storage.Heads
	Record robots.Record // zero: none is stored, or it was not asked for
	Rules  *robots.Rules
}

// want asks for the next URLs of a host.
func (f *Frontier) want(h *host) {
	a := h.active
	if a.loading {
		return
	}
	a.loading = true
	a.dueAsked = f.o.Heads + len(a.busy) // busy ones are passed over
	r := LoadRequest{Host: h.id, Max: f.o.Heads, Due: a.dueAsked}
	for i := range a.queues {
		q := &a.queues[i]
		r.Queues = append(r.Queues, QueueRequest{From: q.next, Max: max(0, f.o.Heads-len(q.heads)), Known: q.known})
	}
	f.wants = append(f.wants, r)
}

// readDue asks for due URLs when their time has come.
func (f *Frontier) readDue(h *host, now instant) {
	if h.due > 0 && h.nextDue > h.active.dueRead && f.unix(h.nextDue) <= now {
		f.want(h)
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
	h := f.hosts[l.Host.ID]
	if h == nil || h.active == nil {
		return nil
	}
	a := h.active
	a.loading = false
	if a.polite == nil {
		state, err := politeness.DecodeState(l.Host.Politeness)
		if err != nil {
			return err
		}
		a.name, a.polite = l.Host.Name, f.restored(state, h, now)
		a.crawlDelay = state.CrawlDelay
	}
	a.tail = max(a.tail, l.Host.Tail)
	complete := true
	for i := range l.Host.Queues {
		complete = f.loadQueue(a, i, l) && complete
	}
	if a.dueRead = 0; complete {
		a.dueRead = uint32(l.At.Unix())
	}
	f.setCrawlDelay(h)
	f.place(h, f.instant(now))
	return nil
}

// loadQueue takes in one queue. It reports whether all its due URLs came.
func (f *Frontier) loadQueue(a *active, i int, l *Load) bool {
	from, got := &l.Host.Queues[i], &l.Queues[i]
	if i == len(a.queues) {
		a.queues = append(a.queues, queue{origin: from.Origin, next: from.Cursor, held: always})
	}
	q := &a.queues[i]
	if !q.known && got.Rules != nil {
		q.record, q.rules, q.known = got.Record, got.Rules, true
	}
	if got.Heads.Next > q.next {
		q.heads = append(q.heads, got.Heads.Queued...)
		q.next = got.Heads.Next
	}
	have := make(map[uint32]bool, len(q.due))
	for j := range q.due {
		have[q.due[j].Ordinal] = true
	}
	for _, head := range got.Heads.Due {
		if _, busy := a.busy[head.Ordinal]; !busy && !have[head.Ordinal] {
			q.due = append(q.due, head)
		}
	}
	return len(got.Heads.Due) < a.dueAsked
}

// LoadFailed says that a load could not be done. The host is asked for again
// after a while.
func (f *Frontier) LoadFailed(id storage.HostID, now time.Time) {
	h := f.hosts[id]
	if h == nil || h.active == nil {
		return
	}
	h.active.loading = false
	if h.active.polite == nil {
		f.errands[id] = append(f.errands[id], h.active.jobs...)
		h.active, h.ready = nil, f.instant(now)+instant(time.Minute)
		f.activeHosts--
		f.place(h, f.instant(now))
	}
}

// unix is the instant of a time in Unix seconds.
func (f *Frontier) unix(s uint32) instant { return f.instant(time.Unix(int64(s), 0)) }
