package frontier

import (
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// Change is what may be different from one moment to the next.
type Change struct {
	Politeness politeness.Options
	Overrides  []Override
	HostBudget uint32
	RenewShare float64
	Resolvers  int
	Workers    int
	// Overridden are the hosts that an override names, by its index. Those that are missing are found when they are loaded.
	Overridden map[storage.HostID]int
}

// Change puts other limits in force, for requests that begin from now on. What a host is owed since its last request counts by the new delay at once, longer
// or shorter.
func (f *Frontier) Change(c Change, now time.Time) {
	f.readClock(now)
	before := make(map[*host]time.Duration) // configured delays of hosts that are not in memory
	for h := range f.hosts.all {
		if h.active == nil {
			before[h] = f.politeness(h).Delay
		}
	}
	f.o.Politeness, f.o.Overrides, f.o.HostBudget, f.o.RenewShare = c.Politeness, c.Overrides, c.HostBudget, c.RenewShare
	f.o.Resolvers, f.o.Workers = c.Resolvers, c.Workers
	f.overrides = newOverrides(c.Overrides)
	for key, l := range f.limits {
		if key.domain == "" {
			_, o := f.addressLimit(key.network.Addr())
			l.polite.SetOptions(o)
		}
	}
	for h := range f.hosts.all {
		f.changeHost(h, before[h], c.Overridden, f.instant(now))
	}
}

func (f *Frontier) changeHost(h *host, before time.Duration, overridden map[storage.HostID]int, now instant) {
	h.override = 0
	if i, resolvedThen := overridden[h.id]; resolvedThen {
		h.override = uint16(i + 1)
	}
	if a := h.active; a != nil {
		if a.name != "" {
			h.override = f.overrides.find(a.name)
		}
		if a.polite != nil {
			a.polite.SetOptions(f.politeness(h))
		}
		f.schedule(h, now)
		return
	}
	f.unschedule(h)
	switch h.waitReason {
	case politeness.ReasonDelay:
		// What it waits for is the configured delay since its last request.
		longer := f.politeness(h).Delay - before
		h.ready += instant(longer)
		h.delay += float32(longer.Seconds())
	case politeness.ReasonPause:
		h.workAt = always // perhaps of an override that is gone; else it is found out when it is loaded
	}
	f.schedule(h, now)
}
