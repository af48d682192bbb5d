package frontier

import (
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Row is one host in a table of all of them: what is in memory anyway.
type Row struct {
	Host    storage.HostID
	Place   string
	Left    int           // URLs that wait
	Next    time.Time     // when it is asked next, if all stays as it is; zero: an event decides
	Delay   time.Duration // between requests
	Finish  time.Duration // until the last of its URLs is fetched, at the delay in force
	Paused  bool          // by the operator
	Trouble bool          // it cannot be asked after errors that are not over
	Robots  robots.Reason // why robots.txt holds all it has to do; ReasonNone: it does not
}

// Rows calls each for the hosts that it knows of n successive ids. A table of any size is read in short steps by asking again.
func (f *Frontier) Rows(from storage.HostID, n int, now time.Time, each func(Row)) {
	t := f.instant(now)
	for id := from; id < from+storage.HostID(n); id++ {
		h := f.hosts.get(id)
		if h == nil {
			continue
		}
		left := int(h.queued) + int(h.due)
		r := Row{
			Host: id, Place: placeNames[h.place], Left: left, Delay: time.Duration(float64(h.delay) * float64(time.Second)), Trouble: h.trouble != never, Robots: f.held(h),
			Paused: f.paused(h),
		}
		start := t
		if h.place == waiting || h.place == dormant || h.place == called {
			start = max(f.asked(h), t)
			r.Next = f.known(start)
		}
		if left > 0 && !r.Paused {
			r.Finish = time.Duration(start-t) + time.Duration(max(f.affordable(h, left)-1, 0))*r.Delay
		}
		each(r)
	}
}

// paused reports whether the operator holds a host.
func (f *Frontier) paused(h *host) bool {
	if a := h.active; a != nil && a.polite != nil {
		return a.polite.Reason(f.clock) == politeness.ReasonPause
	}
	return h.reason == politeness.ReasonPause && h.wake > f.instant(f.clock)
}
