//go:build !core

package frontier

import (
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// What a frontier needs that shares a gate with others.

// Abandon tells the gate that a remote lease, whose end this frontier will not see, ends at an instant at the latest.
func (f *Frontier) Abandon(id uint64, at time.Time) {
	if out := f.leases.out[id]; out != nil {
		f.gate.end(out, &Report{Sent: true, End: at})
	}
}

// Admissible says that the gate may admit a request of a host that it has refused.
func (f *Frontier) Admissible(id storage.HostID, now time.Time) {
	h := f.hosts.get(id)
	if h == nil || h.active == nil || !h.active.loaded {
		return
	}
	f.readClock(now)
	t := f.instant(now)
	h.active.notBefore, h.active.recheckAt = always, always
	if h.hasReserved() && (h.state == waiting || h.state == waitingToRecrawl) {
		f.lanes.remove(h)
		f.waitForReserved(h, t)
		return
	}
	f.schedule(h, t)
}

// Holds reports whether politeness holds a host for longer than a restart would.
func (f *Frontier) Holds(now time.Time) bool {
	until := f.instant(now.Add(RestartDelay))
	for h := range f.hosts.all {
		ready := h.ready
		switch {
		case h.active != nil && h.active.loaded:
			ready = f.instant(h.active.polite.Ready(now))
		case h.waitReason == politeness.ReasonPause:
			ready = h.workAt
		}
		if ready > until {
			return true
		}
	}
	return false
}
