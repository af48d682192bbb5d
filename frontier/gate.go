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
	// Know tells what this frontier knows of a host.
	Know(host string, k Knowledge, now time.Time)
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
	Knowledge
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

// Knowledge is what a frontier knows of a host.
type Knowledge struct {
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
	Knowledge
}

// knowledge is what is known of an active host.
func (f *Frontier) knowledge(h *host) Knowledge {
	k := f.knowledgeOf(&h.active.polite)
	if k.InFlight = h.active.polite.InFlightLimit(); !h.active.learned() {
		k.InFlight = 1
	}
	return k
}

// knowledgeOf is what the politeness of a host says. With Options.Batches a pause holds the host for
// all: a client sets it because the host wants to be left alone.
func (f *Frontier) knowledgeOf(polite *politeness.Host) Knowledge {
	if f.o.Batches {
		return Knowledge{
			Delay: polite.Delay(f.clock), Default: !polite.HasSetDelay(), Until: polite.Ready(f.clock),
			LastEnd: polite.LastEnd(),
		}
	}
	return Knowledge{Delay: polite.Delay(f.clock), Until: polite.ReadyUnpaused(f.clock)}
}

// gateRequest returns the request of a lease, or one that a host could make, for the gate.
func (f *Frontier) gateRequest(h *host, limits *[limitClasses]*limit) *GateRequest {
	r := &GateRequest{ID: h.id, Host: h.active.name, Now: f.clock}
	for class, l := range limits {
		if l != nil && l != &f.noLimit {
			if r.Limits == nil {
				r.Limits = make([]GateLimit, limitClasses)
			}
			r.Limits[class] = GateLimit{Key: l.key, Options: l.polite.Options()}
		}
	}
	return r
}

// passGate returns the request of a host whose limits allow it, if the gate admits it. If not, it returns
// nil, and the host waits.
func (f *Frontier) passGate(t *turn) *GateRequest {
	h := t.host
	r := f.gateRequest(h, &h.active.limits)
	r.Knowledge, r.Batch = f.knowledge(h), f.inBatch
	answer := f.o.Gate.Begin(r)
	if answer.OK {
		return r
	}
	again := max(f.instant(answer.Again), t.at+1)
	if h.active.recheckAt = always; answer.Busy {
		h.active.recheckAt = again
	}
	if answer.OfHost {
		h.active.notBefore = again
		f.releaseReserved(h, t.at)
		f.schedule(h, t.at)
		return nil
	}
	f.unschedule(h)
	f.reserveSlot(h)
	h.reserveBelow(limitClasses)
	f.pushReady(h, again)
	return nil
}

// passed takes note of what became of an admission: a lease of a request, or nothing.
func (f *Frontier) passed(h *host, admitted *GateRequest, out *outstanding) {
	if out != nil && out.lease.Kind != Match {
		out.lease.Gate = admitted
		return
	}
	f.o.Gate.End(admitted, GateEnd{At: f.clock, Void: true, Knowledge: f.knowledge(h)})
}

// admitNow reports whether the gate admits a request besides those of the frontier. With take, it
// counts as one that ends now; k is then what is known behind it.
func (f *Frontier) admitNow(r *GateRequest, take bool, k Knowledge) (again time.Time, may bool) {
	if f.o.Gate == nil {
		return time.Time{}, true
	}
	answer := f.o.Gate.Begin(r)
	if answer.OK {
		f.o.Gate.End(r, GateEnd{At: f.clock, Made: take, Knowledge: k})
	}
	return answer.Again, answer.OK
}

// endInGate ends the request of a lease, when all that it has brought is known.
func (f *Frontier) endInGate(out *outstanding, r *Report) {
	if out.lease.Gate == nil {
		return
	}
	h, request := out.host, *out.lease.Gate
	request.Now = f.clock
	k := Knowledge{Delay: decimal(h.delay), Until: f.time(max(h.ready, 0)), InFlight: 1}
	if h.active != nil {
		k = f.knowledge(h)
		h.active.gateKnows = &k
	}
	f.o.Gate.End(&request, GateEnd{At: r.End, Made: r.Sent, Knowledge: k})
}

// tellGate tells the gate what is known of an active host, if that has changed.
func (f *Frontier) tellGate(h *host) {
	if f.o.Gate == nil || h.active.name == "" {
		return
	}
	if k, known := f.knowledge(h), h.active.gateKnows; known == nil || k != *known {
		h.active.gateKnows = &k
		f.o.Gate.Know(h.active.name, k, f.clock)
	}
}

// tellGateStored tells the gate what is known of a host that is not active.
func (f *Frontier) tellGateStored(name string, polite *politeness.Host) {
	if f.o.Gate != nil {
		f.o.Gate.Know(name, f.knowledgeOf(polite), f.clock)
	}
}

// ForgetRequests has the gate forget the requests to a host, which has this name, because all of its
// URLs are deleted.
func (f *Frontier) ForgetRequests(id storage.HostID, name string) {
	if f.o.Gate == nil {
		return
	}
	f.o.Gate.Forget(name, f.clock)
	if h := f.hosts.get(id); h != nil {
		h.forgetRequests() // now, so that nothing tells the gate of them before the deletion is committed
		if h.active != nil {
			h.active.gateKnows = nil
		}
	}
}

// Abandon tells the gate that a remote lease, whose end this frontier will not see, ends at an instant
// at the latest.
func (f *Frontier) Abandon(id uint64, at time.Time) {
	if out := f.leases[id]; out != nil {
		f.endInGate(out, &Report{Sent: true, End: at})
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
		f.unschedule(h)
		f.waitForReserved(h, t)
		return
	}
	f.schedule(h, t)
}
