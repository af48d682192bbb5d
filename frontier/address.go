package frontier

import (
	"net/netip"
	"slices"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// minTTL keeps answers of DNS long enough for the request they were asked for.
const minTTL = 10 * time.Second

// resolved reports whether the host has an address that holds at an instant.
func (a *active) resolved(at instant) bool { return a.address != nil && a.expires > at }

// queueName puts a host in line to be resolved.
func (f *Frontier) queueName(h *host) {
	h.place = resolving
	if !h.active.resolving {
		h.active.resolving = true
		f.names = append(f.names, h)
	}
}

// nextName gives out the resolution of the name that waits longest.
func (f *Frontier) nextName() (Lease, bool) {
	if len(f.names) == 0 || f.resolving >= f.o.Resolvers {
		return Lease{}, false
	}
	h := f.names[0]
	f.names[0] = nil
	f.names = f.names[1:]
	f.resolving++
	return f.lease(h, Lease{Kind: Resolve}, false), true
}

// CompleteResolve ends a Resolve lease.
func (f *Frontier) CompleteResolve(id uint64, r ResolveReport) error {
	out, err := f.settleLease(id, Resolve)
	if err != nil {
		return err
	}
	f.resolving--
	h, now := out.host, f.instant(r.End)
	a := h.active
	a.resolving = false
	switch {
	case r.Aborted:
	case len(r.Addresses) > 0:
		f.setAddress(h, f.addressOf(politeness.AddressKey(r.Addresses[0])))
		a.pinned, a.expires, a.absent = r.Addresses[0], now+instant(max(r.TTL, minTTL)), 0
	default:
		f.unresolved(h, &r)
	}
	f.place(h, now)
	return nil
}

// unresolved is a host whose name leads nowhere: it waits as a host does that
// does not answer, unless it is clear that nothing will come of it.
func (f *Frontier) unresolved(h *host, r *ResolveReport) {
	a := h.active
	f.setAddress(h, nil)
	if r.Absent {
		a.absent++
	}
	if r.Final || a.absent >= int(f.o.MaxAttempts) {
		f.giveUp(h, r)
	} else {
		a.polite.Ended(r.End, politeness.Result{Signal: politeness.SignalUnreachable, Jitter: f.jitter()})
		h.setTrouble(politeness.SignalUnreachable, f.instant(r.End))
	}
	f.failErrands(h, r.End)
	f.update(h, r.End, 0, 0)
}

// giveUp settles all URLs of the host that are in memory; the others follow
// when they are.
func (f *Frontier) giveUp(h *host, r *ResolveReport) {
	for i := range h.active.queues {
		q := &h.active.queues[i]
		for _, heads := range [][]storage.Head{q.due, q.heads} {
			for j := range heads {
				h.active.busy[heads[j].Ordinal] = struct{}{}
				f.settle(h, &heads[j], storage.Outcome{State: storage.Failed, Reason: r.Reason, At: r.End})
			}
		}
		q.due, q.heads = nil, nil
	}
}

// failErrands answers the errands that this host cannot serve: for their
// owners robots.txt is unreachable.
func (f *Frontier) failErrands(h *host, end time.Time) {
	jobs := h.active.jobs
	h.active.jobs = nil
	for _, e := range jobs {
		record, _ := f.o.Robots.Next(e.job.Previous, robots.Outcome{URL: e.url.String(), Redirects: e.job.Hops, Failure: robots.FailureDNS, Jitter: f.jitter()}, end)
		f.settled(f.setPolicy(e.job, record, record.Rules(f.o.Tokens...), end), h, end)
	}
}

func (f *Frontier) jitter() float64 {
	if f.o.Jitter == nil {
		return 0
	}
	return f.o.Jitter()
}

// addressOf returns the entry of an address and makes one if need be. It is as
// if each had been asked when the frontier began: the process before may have.
func (f *Frontier) addressOf(key netip.Prefix) *address {
	a := f.addresses[key]
	if a == nil {
		a = &address{key: key, polite: politeness.NewAddress(&f.o.Politeness)}
		a.polite.Owe(f.epoch)
		f.addresses[key] = a
	}
	return a
}

// setAddress gives an active host an address, or none.
func (f *Frontier) setAddress(h *host, to *address) {
	from := h.active.address
	if from == to {
		return
	}
	h.active.address = to
	if to != nil {
		to.users++
	}
	if from != nil {
		from.users--
	}
}

// Sweep forgets addresses that nobody uses and to which nothing is owed. It is
// to be called now and then.
func (f *Frontier) Sweep(now time.Time) {
	for key, a := range f.addresses {
		if a.users == 0 && a.polite.Idle(now) {
			delete(f.addresses, key)
		}
	}
}

// admitted asks the address of a host whose turn has come. If it says no, the
// host is in the address's line, or waits for all that are.
func (f *Frontier) admitted(h *host, now instant) bool {
	a := h.active.address
	ready := f.instant(a.polite.Ready())
	switch {
	case a.probe != nil && a.probe != h, a.probe != h && len(a.line) > 0:
		f.crowd(h, len(a.line))
		f.promote(a, now)
	case !a.polite.Free():
		a.probe = nil
		f.crowd(h, 0)
	case ready > now:
		f.ready.remove(h)
		a.probe = h
		f.await(h, ready)
	default:
		return true
	}
	return false
}

// crowd moves a host from the ready heap into its address's line.
func (f *Frontier) crowd(h *host, at int) {
	f.ready.remove(h)
	h.place = crowded
	a := h.active.address
	a.line = slices.Insert(a.line, at, h)
}

// promote lets the first of an address's line wait for the address on behalf
// of all, as soon as that is free.
func (f *Frontier) promote(a *address, now instant) {
	if a.probe != nil || len(a.line) == 0 || !a.polite.Free() {
		return
	}
	h := a.line[0]
	a.line = slices.Delete(a.line, 0, 1)
	a.probe = h
	f.await(h, max(now, f.instant(a.polite.Ready())))
}

// release takes note that a request to an address ended.
func (f *Frontier) release(a *address, end time.Time) {
	a.polite.Ended(end)
	f.promote(a, f.instant(end))
}
