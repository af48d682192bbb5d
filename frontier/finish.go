package frontier

import "time"

// Finished reports whether nothing is left that can be asked soon: no lease is
// out, and every host with work either cannot be asked before within has
// passed, or could not be asked for at least that long.
func (f *Frontier) Finished(now time.Time, within time.Duration) bool {
	if len(f.leases)+f.lookups.queued()+len(f.wants)+len(f.jobsByName) > 0 {
		return false
	}
	// The hosts that are due first mostly say it all.
	for l := range lanes {
		for _, h := range [...]*host{f.ready[l].top(), f.dormant[l].top()} {
			if h != nil && !f.postponed(h, f.instant(now), instant(within)) {
				return false
			}
		}
	}
	for h := range f.hosts.all {
		if !f.postponed(h, f.instant(now), instant(within)) {
			return false
		}
	}
	return true
}

func (f *Frontier) postponed(h *host, now, within instant) bool {
	switch h.state {
	case empty, waitingForRobots, recrawlOnly, waitingToRecrawl:
		return true
	case overBudget:
		return f.isOverBudget(h)
	case dormant, woken, waiting:
		return h.readyAt > now+within || h.failingSince != never && now-h.failingSince >= within
	}
	return false
}

