package frontier

import (
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// Gate decides about requests together with other frontiers, which have hosts in common with this
// one, or hosts under a common limit. No request begins without its admission. The frontier
// consults it last: when the host, its limits and the robots rules allow the request as far as this
// frontier knows.
//
// A Gate belongs to one frontier. What it refuses, it says so with an instant from which on it is worth
// trying again; [Frontier.Admissible] says that this has come earlier.
type Gate interface {
	// Begin admits a request that begins now, and counts it until End, or refuses it.
	Begin(r *GateRequest) Admission
	// Adopt counts a request that has begun before, whether there is room for it or not.
	Adopt(r *GateRequest)
	// End ends a request that Begin or Adopt has counted.
	End(r *GateRequest, e GateEnd)
	// Tell tells what this frontier knows of a host.
	Tell(host string, k HostTerms, now time.Time)
	// Forget forgets what this frontier knows of a host, and when its requests to it have ended.
	Forget(host string, now time.Time)
}

// GateRequest is a request to a host at an instant.
type GateRequest struct {
	ID     storage.HostID // of the host, for Admissible
	Host   string
	Limits []GateLimit // shared ones, one for each class; nil: there are none
	Now    time.Time
	Batch
	HostTerms
}

// Batch is what a fetcher gets of a host at a time, with Options.Batches. It keeps the delay between
// these requests itself; the delay runs from the beginning of the batch too.
type Batch struct {
	Most int  // requests to the host in flight, of all frontiers, delay or not; 0: the request is of no batch
	More bool // the batch has begun with an earlier request
}

// GateLimit is a limit that hosts share. The zero value is none.
type GateLimit struct {
	Key     LimitKey
	Options politeness.LimitOptions
}

// LimitKey is what the hosts of a limit have in common. One of the three is set.
type LimitKey struct {
	Domain  string
	Group   string
	Network netip.Prefix
}

// IsZero reports whether the key is that of no limit.
func (k LimitKey) IsZero() bool { return k == LimitKey{} }

// HostTerms is what a frontier knows of a host.
type HostTerms struct {
	Delay    time.Duration // in force
	Default  bool          // nobody has set Delay for this host: only requests of this frontier keep it
	Until    time.Time     // no request before; zero: no such hold
	InFlight int           // the most requests in flight
	LastEnd  time.Time     // of a request; zero: unknown, or the gate has seen it
}

// Admission is the answer to a request.
type Admission struct {
	OK bool
	// Of a refusal: when to try again, whether that is only in case nobody wakes it, because the end of
	// the wait is not known, and whether the host itself is the cause. Its limits are then not kept for
	// it.
	Again  time.Time
	Busy   bool
	OfHost bool
}

// GateEnd is the end of a request.
type GateEnd struct {
	At   time.Time
	Made bool // false: nothing left the machine; all is as if it had not begun
	Void bool // nothing came of the admission, which is the last one: no batch has begun by it
	// What came of a request, and how long it took: for the budgets of its limits.
	Signal   politeness.Signal
	Duration time.Duration
	HostTerms
}

// gateSide is the frontier's side of its Gate: what it asks and tells.
type gateSide struct {
	*base
	limits  *sharedLimits
	inBatch Batch // of the request that begins; zero: none does
}

// terms is what is known of an active host.
func (g *gateSide) terms(h *host) HostTerms {
	k := g.termsOf(&h.active.polite)
	if k.InFlight = h.active.polite.InFlightLimit(); !h.active.learned() {
		k.InFlight = 1
	}
	return k
}

// termsOf is what the politeness of a host says. With Options.Batches a pause holds the host for
// all: a client sets it because the host wants to be left alone.
func (g *gateSide) termsOf(polite *politeness.Host) HostTerms {
	if g.o.Batches {
		return HostTerms{
			Delay: polite.Delay(g.clock), Default: !polite.HasSetDelay(), Until: polite.Ready(g.clock),
			LastEnd: polite.LastEnd(),
		}
	}
	return HostTerms{Delay: polite.Delay(g.clock), Until: polite.ReadyUnpaused(g.clock)}
}

// request returns the request of a lease, or one that a host could make, for the gate.
func (g *gateSide) request(h *host, limits *[limitClasses]*limit) *GateRequest {
	r := &GateRequest{ID: h.id, Host: h.active.name, Now: g.clock}
	for class, l := range limits {
		if l != nil && l != &g.limits.none {
			if r.Limits == nil {
				r.Limits = make([]GateLimit, limitClasses)
			}
			r.Limits[class] = GateLimit{Key: l.key, Options: l.whole}
		}
	}
	return r
}

// passGate returns the request of a host whose limits allow it, if the gate admits it. If not, it returns
// nil, and the host waits.
func (t *turn) passGate() *GateRequest {
	h := t.host
	r := t.s.gate.request(h, &h.active.limits)
	r.HostTerms, r.Batch = t.s.gate.terms(h), t.s.gate.inBatch
	answer := t.s.o.Gate.Begin(r)
	if answer.OK {
		return r
	}
	again := max(t.s.instant(answer.Again), t.at+1)
	if h.active.recheckAt = always; answer.Busy {
		h.active.recheckAt = again
	}
	if answer.OfHost {
		h.active.notBefore = again
		t.s.releaseReserved(h, t.at)
		t.s.schedule(h, t.at)
		return nil
	}
	t.s.lanes.remove(h)
	t.s.lanes.reserveSlot(h)
	h.reserveBelow(limitClasses)
	t.s.lanes.pushReady(h, again)
	return nil
}

// passed takes note of what became of an admission: a lease of a request, or nothing.
func (g *gateSide) passed(h *host, admitted *GateRequest, out *outstanding) {
	if out != nil && out.lease.Kind != Match {
		out.lease.Gate = admitted
		return
	}
	g.o.Gate.End(admitted,
		GateEnd{At: g.clock, Void: true, Signal: politeness.SignalAborted, HostTerms: g.terms(h)})
}

// admitNow reports whether the gate admits a request besides those of the frontier. With take, it
// counts as one that ends now; k is then what is known behind it.
func (g *gateSide) admitNow(r *GateRequest, take bool, k HostTerms) (again time.Time, may bool) {
	if g.o.Gate == nil {
		return time.Time{}, true
	}
	answer := g.o.Gate.Begin(r)
	if answer.OK {
		g.o.Gate.End(r, GateEnd{At: g.clock, Made: take, Signal: politeness.SignalAborted, HostTerms: k})
	}
	return answer.Again, answer.OK
}

// end ends the request of a lease, when all that it has brought is known.
func (g *gateSide) end(out *outstanding, r *Report) {
	if out.lease.Gate == nil {
		return
	}
	h, request := out.host, *out.lease.Gate
	request.Now = g.clock
	k := HostTerms{Delay: decimal(h.delay), Until: g.time(max(h.ready, 0)), InFlight: 1}
	if h.active != nil {
		k = g.terms(h)
		h.active.toldGate = &k
	}
	g.o.Gate.End(&request, GateEnd{At: r.End, Made: r.Sent, Signal: r.signal(), Duration: r.Duration, HostTerms: k})
}

// tell tells the gate what is known of an active host, if that has changed.
func (g *gateSide) tell(h *host) {
	if g.o.Gate == nil || h.active.name == "" {
		return
	}
	if k, known := g.terms(h), h.active.toldGate; known == nil || k != *known {
		h.active.toldGate = &k
		g.o.Gate.Tell(h.active.name, k, g.clock)
	}
}

// tellStored tells the gate what is known of a host that is not active.
func (g *gateSide) tellStored(name string, polite *politeness.Host) {
	if g.o.Gate != nil {
		g.o.Gate.Tell(name, g.termsOf(polite), g.clock)
	}
}

// ForgetRequests has the gate forget the requests to a host, which has this name, because all of its URLs are deleted.
func (f *Frontier) ForgetRequests(id storage.HostID, name string) {
	if f.o.Gate == nil {
		return
	}
	f.o.Gate.Forget(name, f.clock)
	if h := f.hosts.get(id); h != nil {
		h.forgetRequests() // now, so that nothing tells the gate of them before the deletion is committed
		if h.active != nil {
			h.active.toldGate = nil
		}
	}
}

// forgetRequests makes a host new whose URLs were all deleted: no delay runs since the last batch or request.
func (h *host) forgetRequests() {
	h.marks.set(isNew, true)
	switch a := h.active; {
	case a == nil:
		h.ready = always
	case a.loaded:
		a.polite.ForgetEnd()
		fallthrough
	default:
		a.batchAt = always
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
