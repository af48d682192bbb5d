//go:build !core

package frontier

import (
	"slices"
	"time"

	"github.com/amble-crawler/amble/politeness"
)

// gateKey is a host, or a limit that hosts share.
type gateKey struct {
	host  string
	limit LimitKey
}

// gateEntry is what is known of a host or a limit.
type gateEntry struct {
	inFlight int
	lastEnd  time.Time         // of a request to a limit, or of frontiers that are not in known; zero: none is known
	known    []memberTerms     // of a host
	waiters  []*gateWaiter     // the oldest ticket first
	budget   politeness.Budget // of a limit
	hold     time.Time         // what a larger budget does not make earlier
	granted  *grantedLimit     // of a limit; nil: it needs no grants
}

// memberTerms is what one frontier knows of a host. LastEnd is that of its requests, or the beginning
// of its last batch.
type memberTerms struct {
	of *Member
	HostTerms
	before time.Time // LastEnd before the last admission
}

// gateWaiter is a request that was refused.
type gateWaiter struct {
	of      *Member
	request GateRequest
	entries gateEntries
	ticket  uint64
	at      time.Time // when it should come; zero: when it is woken
}

// gateEntries are those of a request: of its host, and of its limits; nil: none.
type gateEntries [1 + limitClasses]*gateEntry

// learn takes note of what a frontier knows of a host. The result is valid until the next call.
func (e *gateEntry) learn(u *Member, k HostTerms) *memberTerms {
	i := slices.IndexFunc(e.known, func(k memberTerms) bool { return k.of == u })
	if i < 0 {
		i, e.known = len(e.known), append(e.known, memberTerms{of: u})
	}
	before := e.known[i].LastEnd
	e.known[i].HostTerms = k
	e.known[i].end(before)
	return &e.known[i]
}

// end takes note of the end of a request.
func (k *memberTerms) end(at time.Time) {
	if at.After(k.LastEnd) {
		k.LastEnd = at
	}
}

// ended tells the budget of a limit of a request that was made.
func (e *gateEntry) ended(o politeness.LimitOptions, end *GateEnd) {
	if at := after(e.lastEnd, e.budget.InForce(o).Delay); at.After(e.hold) {
		e.hold = at
	}
	e.budget.Ended(o, end.Signal, end.Duration)
}

// begin counts a request.
func (all *gateEntries) begin(u *Member, r *GateRequest) {
	for _, e := range all {
		if e != nil {
			e.inFlight++
		}
	}
	k := all[0].learn(u, r.HostTerms)
	if k.before = k.LastEnd; r.Most > 0 {
		k.end(r.Now)
	}
}

// barrier is what keeps a request from beginning.
type barrier struct {
	at     time.Time // it is there until then
	busy   bool      // it is there until something happens
	ofHost bool      // it is the host's
}

func (b *barrier) isFree(now time.Time) bool { return !b.busy && !b.at.After(now) }

// add adds another barrier.
func (b *barrier) add(more barrier, now time.Time) {
	if more.isFree(now) {
		return
	}
	b.busy, b.ofHost = b.busy || more.busy, b.ofHost || more.ofHost
	if more.at.After(b.at) {
		b.at = more.at
	}
}

// check returns what keeps a request from beginning, besides older requests. With grants, that is the first
// thing of all: it needs no grant for what comes behind it yet, so nobody would wake it for that.
func (all *gateEntries) check(u *Member, r *GateRequest, now time.Time) (b barrier) {
	for i := range all {
		b.add(all.checkOne(i, u, r, now), now)
		if u.of.grants != nil && !b.isFree(now) {
			break
		}
	}
	return b
}

// checkOne is check for one entry.
func (all *gateEntries) checkOne(i int, u *Member, r *GateRequest, now time.Time) barrier {
	switch e := all[i]; {
	case e == nil:
		return barrier{}
	case i == 0:
		return e.checkHost(u, r)
	default:
		o := e.budget.InForce(r.Limits[i-1].Options)
		b := barrier{busy: o.InFlight > 0 && e.inFlight >= o.InFlight}
		if o.Delay > 0 {
			b.busy, b.at = e.inFlight > 0, after(e.lastEnd, o.Delay)
		}
		b.add(barrier{at: e.hold}, now)
		b.add(u.of.checkGrant(e, now), now)
		return b
	}
}

// checkHost returns what keeps a request to a host from beginning, by what all know.
func (e *gateEntry) checkHost(u *Member, r *GateRequest) barrier {
	delay, most, lastEnd, b := r.Delay, max(r.InFlight, 1), e.lastEnd, barrier{ofHost: true}
	for i := range e.known {
		k := &e.known[i]
		if k.of.deleted {
			continue
		}
		if k.LastEnd.After(lastEnd) {
			lastEnd = k.LastEnd
		}
		if k.of == u {
			continue // it has looked at the rest itself
		}
		if k.Until.After(b.at) {
			b.at = k.Until
		}
		if k.of.left {
			continue
		}
		if !k.Default {
			delay = max(delay, k.Delay)
		}
		if k.InFlight > 0 {
			most = min(most, k.InFlight)
		}
	}
	if r.Most > 0 {
		b.busy = e.inFlight >= r.Most
	} else {
		b.busy = e.inFlight >= most || delay > 0 && e.inFlight > 0
	}
	if end := after(lastEnd, delay); !r.More && end.After(b.at) {
		b.at = end
	}
	return b
}

// after returns the instant a delay after an end; zero: there was none.
func after(end time.Time, delay time.Duration) time.Time {
	if end.IsZero() {
		return end
	}
	return end.Add(delay)
}

// keeps reports whether a ticket keeps an entry: it is free, as are those that come before it.
func (w *gateWaiter) keeps(e *gateEntry, now time.Time) bool {
	for i := range w.entries {
		if w.entries[i] == nil {
			continue
		}
		if b := w.entries.checkOne(i, w.of, &w.request, now); !b.isFree(now) {
			return false
		}
		if w.entries[i] == e {
			return true
		}
	}
	return false
}

// wakeAll has all that wait for an entry come now.
func (e *gateEntry) wakeAll(now time.Time) {
	for _, w := range e.waiters {
		u := w.of
		if w.at.IsZero() {
			w.at = now
		}
		if !slices.Contains(u.woken, w.request.ID) {
			u.woken = append(u.woken, w.request.ID)
		}
		u.wake()
	}
}

// forget drops what frontiers that have left knew, and reports whether the entry can be dropped too.
func (e *gateEntry) forget(usual time.Duration, now time.Time) bool {
	e.known = slices.DeleteFunc(e.known, func(k memberTerms) bool {
		over := k.of.left && !k.Until.After(now) || k.of.deleted
		if over && !k.of.deleted && k.LastEnd.After(e.lastEnd) {
			e.lastEnd = k.LastEnd
		}
		return over
	})
	matters := func(k memberTerms) bool {
		return !k.Default && k.Delay > usual || k.Until.After(now) || now.Sub(k.LastEnd) <= gateKeep
	}
	return e.inFlight == 0 && len(e.waiters) == 0 && now.Sub(e.lastEnd) > gateKeep &&
		!slices.ContainsFunc(e.known, matters)
}

// isVoid reports whether the owner of a ticket has not come when its time had come.
func (w *gateWaiter) isVoid(now time.Time) bool {
	return !w.at.IsZero() && now.After(w.at.Add(gateGrace))
}

// freeUpTo returns the first entry of a ticket that is not free; one more than the last: all are.
func (w *gateWaiter) freeUpTo(now time.Time) int {
	for i := range w.entries {
		if b := w.entries.checkOne(i, w.of, &w.request, now); !b.isFree(now) {
			return i
		}
	}
	return len(w.entries)
}
