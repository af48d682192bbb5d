package frontier

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// View is where one host stands.
type View struct {
	Host     storage.HostID
	Place    string
	Next     time.Time     // when it is asked next, if all stays as it is; zero: an event decides
	Delay    time.Duration // between requests
	Robots   robots.Reason // why robots.txt holds all it has to do; ReasonNone: it does not
	InFlight int           // requests
	Address  netip.Addr    // pinned; zero: none is
	Polite   politeness.Explanation
	Active   bool // Polite is known; of others the store holds what there is to know
}

// Look says where a host stands; false if the frontier does not know it.
func (f *Frontier) Look(id storage.HostID) (View, bool) {
	h := f.hosts.get(id)
	if h == nil {
		return View{}, false
	}
	v := View{Host: id, Place: h.state.String(), Delay: decimal(h.delay), Robots: f.robotsHold(h)}
	if h.state == waiting || h.state == dormant || h.state == woken {
		v.Next = f.timeOrZero(max(f.nextFetch(h), 0))
	}
	if h.state == recrawlOnly || h.state == waitingToRecrawl {
		v.Next = f.time(max(h.recrawlAt, f.share.nextAt, 0))
	}
	if a := h.active; a != nil {
		v.InFlight, v.Address = a.inFlight, a.pinned
		if a.polite != nil {
			v.Active, v.Polite = true, f.explain(h)
			v.Delay = v.Polite.Delay
		}
	}
	return v, true
}

// decimal is a number of seconds as the shortest decimal that it stands for: 200 ms, not 200.000003.
func decimal(seconds float32) time.Duration {
	exact, _ := strconv.ParseFloat(strconv.FormatFloat(float64(seconds), 'g', -1, 32), 64) // of a number that was formatted
	return time.Duration(exact * float64(time.Second)).Round(time.Microsecond)
}

// explain says why an active host is not asked before an instant: for reasons of its own, or because of a limit that it shares.
func (f *Frontier) explain(h *host) politeness.Explanation {
	e := h.active.polite.Explain(f.clock)
	for _, l := range h.active.limits {
		if l == nil {
			continue
		}
		ready := l.polite.Ready()
		if busy := h.state == limited && !l.polite.Free(); !busy && (!ready.After(e.Until) || !ready.After(f.clock)) {
			continue
		}
		if ready.Before(f.clock) {
			ready = f.clock
		}
		e.Reason, e.Source, e.Since, e.Until = politeness.ReasonLimit, politeness.Source{Name: l.key.String()}, e.Until, ready
	}
	return e
}

// known is an instant for those who ask; zero where it is too far away to mean anything but that somebody has to end the wait.
func (f *Frontier) timeOrZero(i instant) time.Time {
	if i > never/2 {
		return time.Time{}
	}
	return f.time(i)
}
