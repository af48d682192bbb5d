package frontier

import (
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
)

// A limit is shared by all hosts that have something in common: a registrable domain, an address, a range of
// addresses. A host belongs to one of each class at most, and is asked when all of them let it.
//
// A host whose turn has come asks its limits in the order of their classes. Where one is busy, the host joins the line of
// that limit and keeps those before it reserved, so that two hosts never wait for each other.
type limit struct {
	key         limitKey
	polite      politeness.Limit
	waiters     [2][]*host // hosts whose turn has come while it was busy: the quick ones, and the others
	othersNext  bool       // the next turn is that of the others
	reservedFor *host      // the host that the next request is reserved for: it waits for all in line
	users       int        // active hosts that have it
}

// limitKey is what the hosts of a limit have in common. One of the two is set.
type limitKey struct {
	domain  string
	network netip.Prefix
}

// The classes of limits, in the order in which they are asked. The domain comes first: an address that many share
// must not be kept for a host that waits for its domain.
const (
	byDomain = iota
	byAddress
	limitClasses
)

// String names the limit for reports.
func (k limitKey) String() string {
	switch {
	case k.domain != "":
		return "domain " + k.domain
	case k.network.IsSingleIP():
		return "address " + k.network.Addr().String()
	}
	return "addresses " + k.network.String()
}

// Range gives the addresses of a network limits of their own.
type Range struct {
	Network netip.Prefix
	Limit   politeness.LimitOptions
	Shared  bool // one limit for all of the network, as always for less than an IPv6 /64; else one for each address
}

// ofAddress is the limit of an address: that of the smallest range that it lies in, or its own.
func (f *Frontier) ofAddress(a netip.Addr) *limit {
	network, o := f.addressLimit(a)
	return f.limitOf(limitKey{network: network}, o)
}

// addressLimit is what an address has in common with others, and the numbers in force for that.
func (f *Frontier) addressLimit(a netip.Addr) (netip.Prefix, politeness.LimitOptions) {
	key, o, bits := politeness.AddressKey(a), f.o.Politeness.Address(), -1
	network := key
	for i := range f.o.Ranges {
		r := &f.o.Ranges[i]
		if r.Network.Bits() <= bits || !r.Network.Contains(a.Unmap().WithZone("")) {
			continue
		}
		network, o, bits = key, r.Limit, r.Network.Bits()
		if r.Shared || bits > key.Bits() {
			network = r.Network.Masked()
		}
	}
	return network, o
}

// ofDomain is the limit of a host's registrable domain; nil: there are none.
func (f *Frontier) ofDomain(name string) *limit {
	if f.o.Domain == (politeness.LimitOptions{}) {
		return nil
	}
	return f.limitOf(limitKey{domain: weburl.RegistrableDomain(name)}, f.o.Domain)
}

// limitOf returns a limit and makes it if need be. It is as if each had been used when the frontier began: the process
// before may have.
func (f *Frontier) limitOf(key limitKey, o politeness.LimitOptions) *limit {
	l := f.limits[key]
	if l == nil {
		l = &limit{key: key, polite: politeness.NewLimit(o)}
		l.polite.Owe(f.epoch)
		f.limits[key] = l
	}
	return l
}

// setLimit gives an active host a limit of a class, or none.
func (f *Frontier) setLimit(h *host, class int, to *limit) {
	from := h.active.limits[class]
	if from == to {
		return
	}
	h.active.limits[class] = to
	if to != nil {
		to.users++
	}
	if from != nil {
		from.users--
	}
}

// Sweep forgets limits that nobody uses and to which nothing is owed, and
// looks after hosts whose budget has room again. It is to be called now and then.
func (f *Frontier) Sweep(now time.Time) {
	for i := range f.domains {
		f.reviveDomain(uint32(i), len(f.domains[i].overBudget), f.instant(now))
	}
	for key, l := range f.limits {
		if l.users == 0 && l.polite.Idle(now) {
			delete(f.limits, key)
		}
	}
}

// open reports whether a host may take the next request without standing in line.
func (l *limit) isFree() bool { return l.reservedFor == nil && l.queued() == 0 && l.polite.Free() }

// waiting is how many hosts stand in line.
func (l *limit) queued() int { return len(l.waiters[0]) + len(l.waiters[1]) }

// join puts a host at the end of its line.
func (l *limit) enqueue(h *host) {
	i := min(int(h.lane), 1)
	l.waiters[i] = append(l.waiters[i], h)
}

// next takes the host whose turn it is out of its line. Where both kinds wait they take turns.
func (l *limit) dequeue() *host {
	i := 0
	if l.othersNext && len(l.waiters[1]) > 0 || len(l.waiters[0]) == 0 {
		i = 1
	}
	l.othersNext = i == 0
	h := l.waiters[i][0]
	l.waiters[i][0] = nil
	l.waiters[i] = l.waiters[i][1:]
	return h
}

// reserved reports whether a limit's next request is reserved for the host.
func (h *host) hasReserved() bool {
	if h.active == nil {
		return false
	}
	for _, l := range h.active.limits {
		if l != nil && l.reservedFor == h {
			return true
		}
	}
	return false
}

// admitted asks the limits of a host whose turn has come. If one says no, the
// host is in its line, or waits for all that are.
func (f *Frontier) acquireLimits(h *host, now instant) bool {
	a := h.active
	wait := !a.resolved(now)
	for class, l := range a.limits {
		switch {
		case l == nil:
		case l.reservedFor != h && !l.isFree():
			f.unschedule(h)
			f.releaseSlot(h)
			h.reserveBelow(class)
			h.state = limited
			l.enqueue(h)
			f.reserveNext(l, now)
			return false
		case f.instant(l.polite.Ready()) > now:
			wait = true
		}
	}
	if wait {
		f.unschedule(h)
		f.reserveSlot(h)
		h.reserveBelow(limitClasses)
		f.waitForReserved(h, now)
	}
	return !wait
}

// reserveBelow reserves the limits of the classes below one, which are all open to the host.
func (h *host) reserveBelow(class int) {
	for _, l := range h.active.limits[:class] {
		if l != nil {
			l.reservedFor = h
		}
	}
}

// promote reserves the next request of a limit for the first in its line, as
// soon as it is free.
func (f *Frontier) reserveNext(l *limit, now instant) {
	for l.reservedFor == nil && l.queued() > 0 && l.polite.Free() {
		h := l.dequeue()
		if !f.laneOpen(h.lane) { // others should not have to wait for its turn there
			h.state = empty
			f.releaseReserved(h, now)
			f.pushReady(h, min(h.readyAt, now))
			continue
		}
		f.reserveSlot(h)
		l.reservedFor = h
		f.waitForReserved(h, now)
	}
}

// awaitLimits lets a host wait for what is reserved for it. A host that waited so long that its address has to be
// resolved again does that first.
func (f *Frontier) waitForReserved(h *host, now instant) {
	a, at := h.active, now
	for _, l := range a.limits {
		if l != nil && l.reservedFor == h {
			at = max(at, f.instant(l.polite.Ready()))
		}
	}
	switch {
	case a.resolved(at):
		f.pushReady(h, at)
	case at-lead > now:
		f.pushReady(h, at-lead)
	default:
		f.requestLookup(h, now)
	}
}

// yield gives up what a host has reserved, and lets the next in each line have it.
func (f *Frontier) releaseReserved(h *host, now instant) {
	if h.state == waiting || h.state == waitingToRecrawl {
		f.unschedule(h)
	}
	for _, l := range h.active.limits {
		if l != nil && l.reservedFor == h {
			l.reservedFor = nil
			f.reserveNext(l, now)
		}
	}
	f.releaseSlot(h)
}

// release takes note that a request which counted against a limit ended.
func (f *Frontier) endInLimit(l *limit, end time.Time) {
	l.polite.Ended(end)
	f.reserveNext(l, f.instant(end))
}
