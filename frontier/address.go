package frontier

import (
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/politeness"
)

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

// Sweep forgets addresses that nobody uses and to which nothing is owed, and
// looks after hosts whose budget has room again. It is to be called now and then.
func (f *Frontier) Sweep(now time.Time) {
	for i := range f.domains {
		f.revive(uint32(i), len(f.domains[i].shelved), f.instant(now))
	}
	for key, a := range f.addresses {
		if a.users == 0 && a.polite.Idle(now) {
			delete(f.addresses, key)
		}
	}
}

// reserved reports whether the next request to the host's address is reserved
// for it.
func (h *host) reserved() bool {
	return h.active != nil && h.active.address != nil && h.active.address.first == h
}

// admitted asks the address of a host whose turn has come. If it says no, the
// host is in the address's line, or waits for all that are.
func (f *Frontier) admitted(h *host, now instant) bool {
	a := h.active.address
	switch {
	case a.first != h && (a.first != nil || len(a.line) > 0 || !a.polite.Free()):
		f.ready.remove(h)
		h.place = crowded
		a.line = append(a.line, h)
		f.promote(a, now)
		return false
	case f.instant(a.polite.Ready()) > now || !h.active.resolved(now):
		f.ready.remove(h)
		f.reserve(h, now)
		return false
	}
	return true
}

// promote reserves the next request to an address for the first in its line,
// as soon as the address is free.
func (f *Frontier) promote(a *address, now instant) {
	if a.first != nil || len(a.line) == 0 || !a.polite.Free() {
		return
	}
	h := a.line[0]
	a.line[0] = nil
	a.line = a.line[1:]
	f.reserve(h, now)
}

// reserve lets a host wait for its address on behalf of all in the line. A host
// that waited so long that its address has to be resolved again does that first.
func (f *Frontier) reserve(h *host, now instant) {
	a := h.active
	a.address.first = h
	at := max(now, f.instant(a.address.polite.Ready()))
	switch {
	case a.resolved(at):
		f.await(h, at)
	case at-lead > now:
		f.await(h, at-lead)
	default:
		f.queueName(h)
	}
}

// yield gives up what a host has reserved, and lets the next in line have it.
func (f *Frontier) yield(h *host, now instant) {
	if h.place == waiting {
		f.ready.remove(h)
		h.place = idle
	}
	if h.reserved() {
		a := h.active.address
		a.first = nil
		f.promote(a, now)
	}
}

// release takes note that a request to an address ended.
func (f *Frontier) release(a *address, end time.Time) {
	a.polite.Ended(end)
	f.promote(a, f.instant(end))
}
