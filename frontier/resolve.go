package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// minTTL is how long an answer of DNS is kept at least, here as in internal/fetch. Hosts wait for their
// turn at an address that many share; most of them should not be asked for their
// address a second time because of that.
const minTTL = 30 * time.Second

// hopelessFor is for how long the URLs of a hopeless host end without another lookup.
const failFor = time.Minute

// resolved reports whether the host has an address that holds at an instant.
func (a *active) resolved(at instant) bool { return a.limits[byAddress] != nil && a.expires > at }

// pin gives a host one of the addresses that its name has. A host that comes
// back to the address where the next request is reserved for it keeps its turn.
func (f *Frontier) pin(h *host, r *ResolveReport, now instant) {
	a := h.active
	pinned := r.Addresses[int(h.addressTurn)%len(r.Addresses)]
	to := f.ofAddress(pinned)
	if a.limits[byAddress] != to {
		f.releaseReserved(h, now)
	}
	f.setLimit(h, byAddress, to)
	a.pinned, a.expires, h.absent = pinned, now+instant(max(r.TTL, minTTL)), 0
	if h.hasReserved() {
		f.waitForReserved(h, now)
	}
}

// unresolved is a host whose name leads nowhere: it waits as a host does that
// does not answer, unless it is clear that nothing will come of it.
func (f *Frontier) lookupFailed(h *host, r *ResolveReport) {
	if r.Absent {
		h.setNextLookup(f.instant(r.End) + instant(r.TTL))
		h.absent = min(h.absent, f.o.MaxAttempts-1) + 1
	}
	if r.Final || h.absent >= f.o.MaxAttempts {
		h.active.failUntil, h.active.failReason = f.instant(r.End)+instant(failFor), r.Reason
	} else {
		h.active.polite.Ended(r.End, politeness.Result{Signal: politeness.SignalUnreachable, Cause: uint16(storage.ReasonCause(r.Reason)), Jitter: f.jitter()})
		h.setFailing(politeness.SignalUnreachable, f.instant(r.End))
	}
	f.failJobs(h, r.End)
	f.update(h, r.End, 0, 0)
}

// giveUp settles all URLs of a hopeless host that are in memory; the others
// follow when they are.
func (f *Frontier) failQueued(h *host, now instant) {
	a := h.active
	if a.failUntil <= now {
		return
	}
	at, settled := f.time(now), len(f.out.Done)
	for i := range a.queues {
		q := &a.queues[i]
		for q.Len(queue.New)+q.Len(queue.Due) > 0 {
			head, _ := q.Take()
			f.failURL(h, &head, at)
			q.Done(head.Ordinal)
		}
		for q.Len(queue.Recrawl) > 0 {
			head := q.TakeRecrawl()
			f.failURL(h, &head, at)
		}
	}
	f.failJobs(h, at)
	if len(f.out.Done) > settled {
		f.update(h, at, 0, 0)
	}
}

// failURL records that a URL cannot be fetched because the host has no address.
func (f *Frontier) failURL(h *host, head *storage.Head, at time.Time) {
	h.active.busy.Add(head.Ordinal)
	o := storage.Outcome{State: storage.Failed, Reason: h.active.failReason, At: at}
	f.planRecrawl(h, head, &o, nil)
	f.recordOutcome(h, head, o)
}

func (f *Frontier) jitter() float64 {
	if f.o.Jitter == nil {
		return 0
	}
	return f.o.Jitter()
}
