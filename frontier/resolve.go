package frontier

import (
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// minTTL is how long an answer of DNS is kept at least. Hosts wait for their
// turn at an address that many share; most of them should not be asked for their
// address a second time because of that.
const minTTL = time.Minute

// resolved reports whether the host has an address that holds at an instant.
func (a *active) resolved(at instant) bool { return a.limits[byAddress] != nil && a.expires > at }

// queueName puts a host in line to be resolved.
func (f *Frontier) queueName(h *host) {
	h.place = resolving
	if !h.active.resolving {
		h.active.resolving = true
		f.names = append(f.names, h)
	}
}

// nextName gives out the resolution of the name that waits longest.
func (f *Frontier) nextName() *outstanding {
	if len(f.names) == 0 || f.resolving >= f.o.Resolvers {
		return nil
	}
	h := f.names[0]
	f.names[0] = nil
	f.names = f.names[1:]
	f.resolving++
	return f.lease(h, Resolve)
}

// CompleteResolve ends a Resolve lease.
func (f *Frontier) CompleteResolve(id uint64, r ResolveReport) error {
	out, err := f.settleLease(id, Resolve)
	if err != nil {
		return err
	}
	f.read(r.End)
	f.resolving--
	h, now := out.host, f.instant(r.End)
	h.active.resolving = false
	switch {
	case r.Aborted:
		f.yield(h, now)
	case len(r.Addresses) > 0:
		f.pin(h, &r, now)
	default:
		f.yield(h, now)
		f.setLimit(h, byAddress, nil)
		f.unresolved(h, &r)
	}
	f.place(h, now)
	return nil
}

// pin gives a host one of the addresses that its name has. A host that comes
// back to the address where the next request is reserved for it keeps its turn.
func (f *Frontier) pin(h *host, r *ResolveReport, now instant) {
	a := h.active
	pinned := r.Addresses[int(h.turn)%len(r.Addresses)]
	to := f.ofAddress(pinned)
	if a.limits[byAddress] != to {
		f.yield(h, now)
	}
	f.setLimit(h, byAddress, to)
	a.pinned, a.expires, h.absent = pinned, now+instant(max(r.TTL, minTTL)), 0
	if h.reserved() {
		f.awaitLimits(h, now)
	}
}

// unresolved is a host whose name leads nowhere: it waits as a host does that
// does not answer, unless it is clear that nothing will come of it.
func (f *Frontier) unresolved(h *host, r *ResolveReport) {
	if r.Absent {
		h.absent = min(h.absent, f.o.MaxAttempts-1) + 1
	}
	if r.Final || h.absent >= f.o.MaxAttempts {
		h.active.hopeless, h.active.whyHopeless = f.instant(r.End)+instant(minTTL), r.Reason
	} else {
		h.active.polite.Ended(r.End, politeness.Result{Signal: politeness.SignalUnreachable, Jitter: f.jitter()})
		h.setTrouble(politeness.SignalUnreachable, f.instant(r.End))
	}
	f.failErrands(h, r.End)
	f.update(h, r.End, 0, 0)
}

// giveUp settles all URLs of a hopeless host that are in memory; the others
// follow when they are.
func (f *Frontier) giveUp(h *host, now instant) {
	a := h.active
	if a.hopeless <= now {
		return
	}
	at, settled := f.time(now), len(f.out.Done)
	for i := range a.queues {
		q := &a.queues[i]
		for q.waits() {
			head, _ := q.take()
			a.busy.add(head.Ordinal)
			o := storage.Outcome{State: storage.Failed, Reason: a.whyHopeless, At: at}
			f.plan(h, &head, &o, nil)
			f.settle(h, &head, o)
		}
		f.loseRenewals(h, q, at)
	}
	f.failErrands(h, at)
	if len(f.out.Done) > settled {
		f.update(h, at, 0, 0)
	}
}

// failErrands answers the errands that this host cannot serve: for their
// owners robots.txt is unreachable.
func (f *Frontier) failErrands(h *host, end time.Time) {
	jobs := h.active.jobs
	h.active.jobs = nil
	for _, e := range jobs {
		record, _ := f.o.Robots.Next(e.job.Previous, robots.Outcome{URL: e.url.String(), Redirects: e.job.Hops, Failure: robots.FailureDNS, Jitter: f.jitter()}, end)
		f.settled(f.setPolicy(e.job, record, f.rulesKept(e.job, &record), end), h, end)
	}
}

// rulesKept are the rules of a robots.txt that could not be asked for: those of its copy, where
// there is one. They are compiled already.
func (f *Frontier) rulesKept(job RobotsJob, record *robots.Record) *robots.Rules {
	if q := f.hosts.get(job.Owner).queueOf(job.Origin); q != nil && q.known {
		return q.rules
	}
	return record.Rules(f.o.Tokens...)
}

func (f *Frontier) jitter() float64 {
	if f.o.Jitter == nil {
		return 0
	}
	return f.o.Jitter()
}
