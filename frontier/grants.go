//go:build !core

package frontier

import (
	"slices"
	"time"
)

// Grants are what a process may use of the limits that its hosts share with hosts of other processes.
// The SharedGate calls the methods one at a time. They do not block, and do not call the SharedGate.
type Grants interface {
	// Turn returns what there is of a limit at the moment.
	Turn(k LimitKey) GrantTurn
	// Begin begins a request under a limit. If what Turn returned is over, it begins none.
	Begin(k LimitKey) bool
	// End ends a request.
	End(k LimitKey)
	// Need says what the process needs of a limit, besides the requests that have begun. Requests may
	// get their grant at once; [SharedGate.Granted] says that they have got one later.
	Need(n GrantNeed)
}

// GrantTurn is what a process has of a limit: so many more requests may begin, after a time.
type GrantTurn struct {
	Free  int
	After time.Duration
}

// GrantNeed is what a process needs of a limit.
type GrantNeed struct {
	GateLimit
	Waiting int // requests that wait for a grant
	// Hold says that one of them has its grant, and waits for that of another limit as well. It must not
	// lose the first one meanwhile. Requests wait for their limits in the order of the classes.
	Hold bool
}

// Share makes the SharedGate keep the limits that hosts share by grants as well, except for those of domains,
// whose hosts are all here. It is called before the first Join.
func (g *SharedGate) Share(grants Grants) { g.grants = grants }

// Granted says that what the process has of a limit may have changed.
func (g *SharedGate) Granted(k LimitKey, now time.Time) {
	e := g.entries[gateKey{limit: k}]
	if e == nil {
		return
	}
	for _, w := range slices.Clone(e.waiters) {
		if w.isVoid(now) { // nobody waits for others who do not come
			g.drop(w, now)
		}
	}
	e.wakeAll(now)
	g.needOf(e, now)
}

// grantedLimit is a limit that needs grants.
type grantedLimit struct {
	GateLimit
	needs GrantNeed // as Grants knows it
}

// needGrants has the limits of a request granted, as far as they need it.
func (g *SharedGate) needGrants(r *GateRequest, all *gateEntries) {
	if g.grants == nil {
		return
	}
	for i, e := range all[1:] {
		if e == nil || i == byDomain {
			continue
		}
		if e.granted == nil {
			e.granted = new(grantedLimit)
		}
		e.granted.GateLimit = r.Limits[i]
		e.granted.Options = e.budget.InForce(e.granted.Options)
	}
}

// checkGrant returns what keeps a request from beginning by the grants of a limit.
func (g *SharedGate) checkGrant(e *gateEntry, now time.Time) (b barrier) {
	if e.granted == nil {
		return b
	}
	turn := g.grants.Turn(e.granted.Key)
	b.busy = turn.Free <= 0
	if turn.After > 0 {
		b.at = now.Add(turn.After)
	}
	return b
}

// beginGranted begins a request under all its limits that are granted, or under none.
func (g *SharedGate) beginGranted(all *gateEntries) bool {
	for i, e := range all {
		if e == nil || e.granted == nil || g.grants.Begin(e.granted.Key) {
			continue
		}
		for _, begun := range all[:i] {
			if begun != nil && begun.granted != nil {
				g.grants.End(begun.granted.Key)
			}
		}
		return false
	}
	return true
}

// endGranted ends a request under all its limits that are granted.
func (g *SharedGate) endGranted(all *gateEntries) {
	for _, e := range all {
		if e != nil && e.granted != nil {
			g.grants.End(e.granted.Key)
		}
	}
}

// needOf says what is needed of the limits of all requests that wait for an entry which has changed.
func (g *SharedGate) needOf(changed *gateEntry, now time.Time) {
	if g.grants == nil {
		return
	}
	g.need(changed, now)
	var done []*gateEntry
	for _, w := range changed.waiters {
		for _, e := range w.entries {
			if e != nil && e != changed && !slices.Contains(done, e) {
				done = append(done, e)
				g.need(e, now)
			}
		}
	}
}

// need says what is needed of a limit. A request needs it when all that comes before it is free.
func (g *SharedGate) need(e *gateEntry, now time.Time) {
	if e.granted == nil {
		return
	}
	need := GrantNeed{GateLimit: e.granted.GateLimit}
	for _, w := range e.waiters {
		free := w.freeUpTo(now)
		switch at := slices.Index(w.entries[:], e); {
		case at > free:
			continue
		case at < free && free < len(w.entries):
			need.Hold = true
		}
		need.Waiting++
	}
	if need != e.granted.needs {
		e.granted.needs = need
		g.grants.Need(need)
	}
}
