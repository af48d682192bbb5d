//go:build !core

package frontier

import (
	"slices"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// SharedGate is the Gate of several frontiers: no host has more requests in flight than each of them
// allows, and from the end of one request to the start of the next there is the longest delay that
// any of them knows. The same holds for the limits that hosts share. Of batches the delay runs from
// their beginning and from the end of each request, and a request begins with as few in flight as its
// batch wants. Its methods, and those of its members, may not be called concurrently.
//
// A request that is refused has a ticket. It keeps its place in front of younger ones at all that it
// needs, in the order of host, domain, group and address: it keeps what is free as long as all before
// it is free too. So the oldest always gets on, and nobody waits for something that nobody can use yet.
// A ticket whose owner does not come when its time has come is void.
type SharedGate struct {
	grants  Grants        // of limits that others share; nil: nobody else does
	usual   time.Duration // delay that all know
	before  Before
	earlier *Member // stands for the frontiers of before
	entries map[gateKey]*gateEntry
	tickets uint64
	begun   uint64 // for sweep
}

const (
	// gateGrace is for how long a ticket is kept behind the instant at which its owner should come. Clients
	// of URLFrontier come every two seconds.
	gateGrace = 3 * time.Second
	// gateRecheck is after how long one who waits to be woken looks on its own.
	gateRecheck = 30 * time.Second
	// gateKeep is how long the end of a request is remembered at least: for frontiers that know of a
	// longer delay than those that made it.
	gateKeep = time.Hour
	// gateSweepEvery is how many requests begin between two steps of a sweep, and gateSweepStep how
	// many entries each looks at.
	gateSweepEvery, gateSweepStep = 64, 128
)

// Member is the Gate of one frontier.
type Member struct {
	of      *SharedGate
	wake    func()
	waiting map[storage.HostID]*gateWaiter
	woken   []storage.HostID
	left    bool // the frontier has ended
	deleted bool // and nothing that it has done counts any more
}

// Before is what frontiers that have ended before may have done and known. The zero value is nothing.
type Before struct {
	LastEnd time.Time // of a request to any host; zero: all that counts is in Until
	Until   time.Time // no request to any host before; zero: there is no such hold
}

// NewSharedGate returns a SharedGate without members. usual is a delay that all frontiers know.
func NewSharedGate(usual time.Duration, before Before) *SharedGate {
	entries := make(map[gateKey]*gateEntry)
	return &SharedGate{usual: usual, before: before, earlier: &Member{left: true}, entries: entries}
}

// Join returns the Gate of one more frontier. wake is called when Woken has something to return.
func (g *SharedGate) Join(wake func()) *Member {
	return &Member{of: g, wake: wake, waiting: make(map[storage.HostID]*gateWaiter)}
}

// Leave ends a membership. The waits that its frontier knew of still count.
func (u *Member) Leave(now time.Time) {
	u.left = true
	for _, w := range u.waiting {
		u.of.drop(w, now)
	}
}

// Delete has a member that has left count as if it had never been one: its crawl is deleted.
func (u *Member) Delete(now time.Time) {
	u.deleted = true
	for _, e := range u.of.entries {
		e.wakeAll(now)
	}
}

// Woken returns the hosts to call [Frontier.Admissible] for, once each.
func (u *Member) Woken() []storage.HostID {
	woken := u.woken
	u.woken = nil
	return woken
}

// Begin is part of Gate.
func (u *Member) Begin(r *GateRequest) Admission {
	g := u.of
	g.sweep(r.Now)
	entries := g.entriesOf(r)
	b := g.barrier(u, r, &entries)
	if r.More && !b.isFree(r.Now) { // the batch is over
		return Admission{Again: r.Now, OfHost: true}
	}
	if g.grants != nil && !b.isFree(r.Now) {
		g.enqueue(u, r, &entries, b.at)
		b = g.barrier(u, r, &entries) // what it needs may have been granted
	}
	if b.isFree(r.Now) && g.beginGranted(&entries) {
		entries.begin(u, r)
		if w := u.waiting[r.ID]; w != nil {
			g.drop(w, r.Now)
		}
		for _, e := range entries {
			if e != nil {
				g.needOf(e, r.Now)
			}
		}
		return Admission{OK: true}
	}
	g.enqueue(u, r, &entries, b.at)
	again := b.at
	if b.busy {
		u.waiting[r.ID].at = time.Time{}
		again = r.Now.Add(gateRecheck)
	}
	return Admission{Again: again, Busy: b.busy, OfHost: b.ofHost}
}

// barrier returns what keeps a request from beginning.
func (g *SharedGate) barrier(u *Member, r *GateRequest, entries *gateEntries) barrier {
	b := entries.check(u, r, r.Now)
	if b.isFree(r.Now) && !r.More {
		b = g.older(entries, u.waiting[r.ID], r.Now)
	}
	return b
}

// Adopt is part of Gate.
func (u *Member) Adopt(r *GateRequest) {
	entries := u.of.entriesOf(r)
	entries.begin(u, r)
}

// End is part of Gate.
func (u *Member) End(r *GateRequest, end GateEnd) {
	entries := u.of.entriesOf(r)
	k := entries[0].learn(u, end.HostTerms)
	if end.Void {
		k.LastEnd = k.before
		k.end(end.HostTerms.LastEnd)
	}
	for i, e := range entries {
		if e == nil {
			continue
		}
		e.inFlight--
		if i > 0 && end.Made {
			e.ended(r.Limits[i-1].Options, &end)
		}
		switch {
		case !end.Made:
		case i == 0:
			k.end(end.At)
		case end.At.After(e.lastEnd):
			e.lastEnd = end.At
		}
	}
	u.of.endGranted(&entries)
	for _, e := range entries {
		if e != nil {
			e.wakeAll(r.Now)
			u.of.needOf(e, r.Now)
		}
	}
}

// Tell is part of Gate.
func (u *Member) Tell(host string, k HostTerms, now time.Time) {
	key := gateKey{host: host}
	if u.of.entries[key] == nil && (k.Default || k.Delay <= u.of.usual) && !k.Until.After(now.Add(u.of.usual)) &&
		now.Sub(k.LastEnd) > gateKeep {
		return // all know as much
	}
	e := u.of.entry(key)
	e.learn(u, k)
	e.wakeAll(now)
}

// Forget is part of Gate.
func (u *Member) Forget(host string, now time.Time) {
	if e := u.of.entries[gateKey{host: host}]; e != nil {
		e.known = slices.DeleteFunc(e.known, func(k memberTerms) bool { return k.of == u })
		e.wakeAll(now)
	}
}

// entriesOf returns the entries of a request, and makes those that are missing.
func (g *SharedGate) entriesOf(r *GateRequest) (all gateEntries) {
	all[0] = g.entry(gateKey{host: r.Host})
	for i := range r.Limits {
		if key := r.Limits[i].Key; !key.IsZero() {
			all[1+i] = g.entry(gateKey{limit: key})
		}
	}
	g.needGrants(r, &all)
	return all
}

// entry returns an entry. A new one counts as used by the frontiers of before. They may have known more
// of a host than anybody does now.
func (g *SharedGate) entry(key gateKey) *gateEntry {
	e := g.entries[key]
	if e == nil {
		e = &gateEntry{lastEnd: g.before.LastEnd}
		if key.host != "" && !g.before.Until.IsZero() {
			e.known = []memberTerms{{of: g.earlier, HostTerms: HostTerms{Until: g.before.Until}}}
		}
		g.entries[key] = e
	}
	return e
}

// older returns what older requests keep from one that could begin otherwise. Those that were refused
// keep what they need in order, as long as it is free for them. w is its own ticket; nil: it has none.
func (g *SharedGate) older(all *gateEntries, w *gateWaiter, now time.Time) (b barrier) {
	for i, e := range all {
		if e == nil {
			continue
		}
		for _, x := range slices.Clone(e.waiters) {
			if x == w {
				break
			}
			if x.isVoid(now) {
				g.drop(x, now) // it did not come
				continue
			}
			if x.keeps(e, now) {
				more := barrier{ofHost: i == 0, busy: x.at.IsZero()}
				if !more.busy {
					more.at = x.at.Add(gateGrace + 1)
				}
				b.add(more, now)
			}
		}
	}
	return b
}

// enqueue gives a request that is refused a ticket, unless it has one.
func (g *SharedGate) enqueue(u *Member, r *GateRequest, entries *gateEntries, at time.Time) {
	w := u.waiting[r.ID]
	if w != nil && w.entries != *entries { // it has another address now
		g.drop(w, r.Now)
		w = nil
	}
	if w == nil {
		g.tickets++
		w = &gateWaiter{of: u, entries: *entries, ticket: g.tickets}
		u.waiting[r.ID] = w
		for _, e := range entries {
			if e != nil {
				e.waiters = append(e.waiters, w)
			}
		}
	}
	w.request, w.at = *r, at
	for _, e := range entries {
		if e != nil {
			g.need(e, r.Now)
		}
	}
}

// drop takes a ticket back, and wakes those for whom it kept something.
func (g *SharedGate) drop(w *gateWaiter, now time.Time) {
	delete(w.of.waiting, w.request.ID)
	for _, e := range w.entries {
		if e == nil {
			continue
		}
		if i := slices.Index(e.waiters, w); i >= 0 {
			e.waiters = slices.Delete(e.waiters, i, i+1)
		}
	}
	for _, e := range w.entries {
		if e != nil {
			e.wakeAll(now)
			g.needOf(e, now)
		}
	}
}

// sweep forgets what is over, a few entries at a time.
func (g *SharedGate) sweep(now time.Time) {
	if g.begun++; g.begun%gateSweepEvery != 0 {
		return
	}
	left := gateSweepStep
	for key, e := range g.entries {
		if e.forget(g.usual, now) {
			delete(g.entries, key)
		}
		if left--; left == 0 {
			return
		}
	}
}
