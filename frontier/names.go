package frontier

import (
	"time"
)

// Lookups of names take no worker: as many as Options.Resolvers go on at a time, beside the
// requests. Nobody knows of a name that was never looked up whether there is one, and name servers
// take longest to say that there is none. So what is known to lead somewhere never waits for the
// rest.

// lookup is what came of the last lookup of a host's name.
type lookupResult uint8

const (
	notLookedUp lookupResult = iota
	resolved
	unresolved
)

// The lines in which hosts wait for a lookup, in the order of their turns.
const (
	knownNames  = iota // that have led somewhere before
	seedNames          // of seeds, never looked up
	newNames           // others that were never looked up
	failedNames        // that led nowhere the last time
	nameLists
)

// names are the hosts whose names are to be looked up.
type lookups struct {
	lists    [nameLists][]*host
	inFlight int // lookups under way
	unproven int // of these, those of names that are not known to lead anywhere
	turn     int // guesses so far
}

// Of the lookups at a time one in spareLookups is for names that are known, at least one where
// there are several; of the others one in failedTurn is of a name that led nowhere, where there are
// such.
const (
	spareLookups = 8
	failedTurn   = 8
)

// waiting is how many names are in line.
func (n *lookups) queued() (all int) {
	for i := range n.lists {
		all += len(n.lists[i])
	}
	return all
}

// new is how many of them were never looked up.
func (n *lookups) untried() int { return len(n.lists[seedNames]) + len(n.lists[newNames]) }

// next takes the host whose turn it is out of its line, and says whether its name is a guess; nil:
// no name may be looked up now.
func (n *lookups) next(most int) (h *host, guess bool) {
	line := n.nextList(most)
	if line == nameLists {
		return nil, false
	}
	if guess = line != knownNames; guess {
		n.unproven++
		n.turn++
	}
	n.inFlight++
	h = n.lists[line][0]
	n.lists[line][0] = nil
	n.lists[line] = n.lists[line][1:]
	return h, guess
}

// line is the line whose turn it is, of most lookups at a time; nameLines: it is that of none.
func (n *lookups) nextList(most int) int {
	switch {
	case n.inFlight >= most:
		return nameLists
	case len(n.lists[knownNames]) > 0:
		return knownNames
	case n.unproven >= max(most-max(most/spareLookups, 1), 1):
		return nameLists
	case n.turn%failedTurn == failedTurn-1 && len(n.lists[failedNames]) > 0:
		return failedNames
	}
	line := seedNames
	for line < nameLists && len(n.lists[line]) == 0 {
		line++
	}
	return line
}

// end takes note of a lookup that ended.
func (n *lookups) end(guess bool) {
	n.inFlight--
	if guess {
		n.unproven--
	}
}

// nameLine is the line in which a host waits.
func (h *host) nameList() int {
	switch {
	case h.lookup == resolved:
		return knownNames
	case h.lookup == unresolved:
		return failedNames
	case h.active.seeded():
		return seedNames
	}
	return newNames
}

// namelessUntil is until when there is no use in another lookup of the host's name.
func (h *host) nextLookup() instant { return instant(h.noLookupUntil) * instant(time.Second) }

func (h *host) setNextLookup(until instant) {
	h.noLookupUntil = uint32((until + instant(time.Second) - 1) / instant(time.Second))
}

// seeded reports whether one of the URLs in memory is a seed.
func (a *active) seeded() bool {
	for i := range a.queues {
		if a.queues[i].HasSeed() {
			return true
		}
	}
	return false
}

// lookUp puts a host in line for a lookup of its name, unless its addresses are known without.
func (f *Frontier) requestLookup(h *host, now instant) {
	h.state = resolving
	if h.active.lookingUp {
		return
	}
	if f.o.Known != nil {
		if r, known := f.o.Known(h.active.name); known {
			r.End = f.clock
			f.applyLookup(h, &r, now)
			f.schedule(h, now)
			return
		}
	}
	h.active.lookingUp = true
	line := h.nameList()
	f.lookups.lists[line] = append(f.lookups.lists[line], h)
}

// NextName gives out the lookup of a name; false if none is due, or as many as may be are under
// way. It takes no worker.
func (f *Frontier) NextName(now time.Time) (Lease, bool) {
	f.readClock(now)
	h, guess := f.lookups.next(f.o.Resolvers)
	if h == nil {
		return Lease{}, false
	}
	out := f.lease(h, Resolve)
	out.unproven = guess
	return out.lease, true
}

// CompleteResolve ends a Resolve lease.
func (f *Frontier) CompleteResolve(id uint64, r ResolveReport) error {
	out, err := f.endLease(id, Resolve)
	if err != nil {
		return err
	}
	f.readClock(r.End)
	f.lookups.end(out.unproven)
	h, now := out.host, f.instant(r.End)
	h.active.lookingUp = false
	f.applyLookup(h, &r, now)
	f.schedule(h, now)
	return nil
}

// lookedUp takes in what is known of a host's name now.
func (f *Frontier) applyLookup(h *host, r *ResolveReport, now instant) {
	switch {
	case r.Aborted:
		f.releaseReserved(h, now)
	case len(r.Addresses) > 0:
		h.lookup = resolved
		f.pin(h, r, now)
	default:
		h.lookup = unresolved
		f.releaseReserved(h, now)
		f.setLimit(h, byAddress, nil)
		f.lookupFailed(h, r)
	}
}
