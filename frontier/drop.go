package frontier

import (
	"time"

	"github.com/amble-crawler/amble/storage"
)

// drop is the end of a host's queue by the operator's wish: whoever owns the
// store excludes what waits there, and the frontier what it has in memory.
type drop struct {
	below uint32 // ordinals below it
	done  bool   // the store holds none of them any more
}

// Drop excludes those URLs of a host that wait and have an ordinal below the given one: those in memory at once, and
// those that are read, or come back from a lease, before the caller has done the same in the store and said so with
// Dropped. What is leased is let finish.
func (f *Frontier) Drop(id storage.HostID, below uint32, now time.Time) {
	h := f.host(id)
	f.drops[id] = &drop{below: below}
	f.applyDrop(h, now)
	f.schedule(h, f.instant(now))
}

// Dropped says that no URL below an ordinal that Drop was to exclude waits in the store any more.
func (f *Frontier) Dropped(id storage.HostID, below uint32, now time.Time) {
	if d := f.drops[id]; d != nil && d.below <= below {
		d.done = true
		f.applyDrop(f.host(id), now)
	}
}

// DropMatters is which states a drop ends.
func DropMatters() storage.States { return storage.In(storage.Queued, storage.Retrying) }

// DropOutcome is what it makes of them.
func DropOutcome(now time.Time) storage.Outcome {
	return storage.Outcome{State: storage.Excluded, Reason: storage.ReasonOperator, At: now}
}

// applyDrop excludes what is in memory. A drop that is over is forgotten when
// nothing can come any more that was read before.
func (f *Frontier) applyDrop(h *host, now time.Time) {
	d, a := f.drops[h.id], h.active
	if d == nil {
		return
	}
	if d.done && (a == nil || !a.loading && a.inFlight == 0 && a.matching == 0) {
		defer delete(f.drops, h.id)
	}
	if a == nil || a.polite == nil {
		return
	}
	settled := len(f.out.Done)
	for i := range a.queues {
		f.dropQueue(h, &a.queues[i], d, now)
	}
	if len(f.out.Done) > settled {
		f.update(h, now, 0, 0)
	}
}

func (f *Frontier) dropQueue(h *host, q *originQueue, d *drop, now time.Time) {
	dropped := q.DropBelow(d.below, func(last *storage.Outcome) bool {
		isPutBack := d.done && last.Reason == storage.ReasonOperator // since the drop
		return isPutBack || !DropMatters().Has(last.State)
	})
	for i := range dropped {
		h.active.busy.Add(dropped[i].Ordinal)
		f.recordOutcome(h, &dropped[i], DropOutcome(now))
	}
}
