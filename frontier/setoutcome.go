package frontier

import (
	"time"

	"github.com/amble-crawler/amble/storage"
)

// The outcome of a URL can come from others than its lease: a put, or a command.

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

// isPutBack reports whether an outcome comes from PutBack and not from a lease.
func isPutBack(d *storage.Done) bool {
	return d.When != 0 && d.Outcome.State == storage.Retrying && d.Outcome.Reason == storage.ReasonOperator
}

// isLeftOut reports whether an outcome comes from LeaveOut or a drop.
func isLeftOut(d *storage.Done) bool {
	return d.When != 0 && d.Outcome.State == storage.Excluded && d.Outcome.Reason == storage.ReasonOperator
}

// commanded takes note that an outcome is on disk by which the operator puts a URL back, or leaves it out.
func (r *register) commanded(d *storage.Done, leases *leases) {
	switch {
	case isPutBack(d):
		r.forgetName(d.Host)
	case isLeftOut(d):
		r.leaveOut(storage.Position{Host: d.Host, Ordinal: d.Ordinal}, leases)
	}
}

// leaveOut drops what is in memory of a URL that is left out on disk. If it is leased, it is not queued again.
func (r *register) leaveOut(at storage.Position, leases *leases) {
	h := r.get(at.Host)
	if h == nil || h.active == nil {
		return
	}
	for _, out := range leases.out {
		if !h.active.busy.Has(at.Ordinal) {
			break
		}
		isOfPage := out.lease.Kind == Page || out.lease.Kind == Match
		out.leftOut = out.leftOut || isOfPage && out.host == h && out.lease.Head.Ordinal == at.Ordinal
	}
	r.applySet(at)
}
