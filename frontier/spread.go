package frontier

import (
	"time"

	"github.com/amble-crawler/amble/politeness"
)

// Hosts that may all be asked at once, at the start of a process or when a page leads to many, would be asked in one
// burst, and again and again after each delay. So each is held for a random part of its delay, at most, and of a
// millisecond for every host there is: a crawl of a few hosts begins at once.

// spreadEach is by how much every known host lengthens the time over which starts are spread.
const spreadEach = time.Millisecond

// spread is how long a host is held that could start now.
func (f *Frontier) spread(delay time.Duration) time.Duration {
	most := min(delay, time.Duration(f.hosts.known-1)*spreadEach)
	return time.Duration(f.jitter() * float64(most))
}

// spreadKnown holds a host of the store.
func (f *Frontier) spreadKnown(polite *politeness.Host, now time.Time) {
	if !polite.Owed(now).After(now) {
		polite.Owe(now, f.spread(polite.Delay(now)), politeness.ReasonStart)
	}
}

// spreadNew holds a host that was discovered.
func (f *Frontier) spreadNew(h *host, now instant) {
	if d := f.spread(f.o.Politeness.Delay); d > 0 {
		h.ready, h.waitReason = now+instant(d), politeness.ReasonStart
	}
}
