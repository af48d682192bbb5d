package frontier

import (
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// ResolveReport is the answer to a Resolve lease. No addresses: it failed.
type ResolveReport struct {
	End       time.Time
	Addresses []netip.Addr
	TTL       time.Duration // how long that holds; of Absent, how long there is no use in another lookup
	Aborted   bool          // the crawl is ending; nothing was learned

	// Of a failure: whether the answer is that there can be no address (the name
	// does not exist, or its addresses are out of reach), and the reason to
	// record for URLs that are given up for it. An answer that is repeated from
	// memory is no other answer: it is not Absent.
	Final  bool // give up the host's URLs at once
	Absent bool // give them up after as many such answers in a row as a URL has attempts
	Reason storage.Reason
}

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

// minTTL is how long an answer of DNS is kept at least, here as in internal/fetch. Hosts wait for their
// turn at an address that many share; most of them should not be asked for their
// address a second time because of that.
const minTTL = 30 * time.Second

// hopelessFor is for how long the URLs of a hopeless host end without another lookup.
const failFor = time.Minute

// resolved reports whether the host has an address that holds at an instant.
func (a *active) resolved(at instant) bool { return a.limits[byAddress] != nil && a.expires > at }

// pin gives a host one of the addresses that its name has. A host that comes
// back to the address where the next request is reserved for it keeps its turn.
func (f *Frontier) pin(h *host, r *ResolveReport, now instant) {
	a := h.active
	pinned := r.Addresses[int(h.addressTurn)%len(r.Addresses)]
	to := f.ofAddress(pinned)
	if a.limits[byAddress] != to {
		f.releaseReserved(h, now)
	}
	f.setLimit(h, byAddress, to)
	a.pinned, a.expires, h.absent = pinned, now+instant(max(r.TTL, minTTL)), 0
	if h.hasReserved() {
		f.waitForReserved(h, now)
	}
}

// unresolved is a host whose name leads nowhere: it waits as a host does that
// does not answer, unless it is clear that nothing will come of it.
func (f *Frontier) lookupFailed(h *host, r *ResolveReport) {
	if r.Absent {
		h.setNextLookup(f.instant(r.End) + instant(r.TTL))
		h.absent = min(h.absent, f.o.MaxAttempts-1) + 1
	}
	if r.Final || h.absent >= f.o.MaxAttempts {
		h.active.failUntil, h.active.failReason = f.instant(r.End)+instant(failFor), r.Reason
	} else {
		h.active.polite.Ended(r.End, politeness.Result{Signal: politeness.SignalUnreachable, Cause: uint16(storage.ReasonCause(r.Reason)), Jitter: f.jitter()})
		h.setFailing(politeness.SignalUnreachable, f.instant(r.End))
	}
	f.failJobs(h, r.End)
	f.update(h, r.End, 0, 0)
}

// giveUp settles all URLs of a hopeless host that are in memory; the others
// follow when they are.
func (f *Frontier) failQueued(h *host, now instant) {
	a := h.active
	if a.failUntil <= now {
		return
	}
	at, settled := f.time(now), len(f.out.Done)
	for i := range a.queues {
		q := &a.queues[i]
		for q.Len(queue.New)+q.Len(queue.Due) > 0 {
			head, _ := q.Take()
			f.failURL(h, &head, at)
			q.Done(head.Ordinal)
		}
		for q.Len(queue.Recrawl) > 0 {
			head := q.TakeRecrawl()
			f.failURL(h, &head, at)
		}
	}
	f.failJobs(h, at)
	if len(f.out.Done) > settled {
		f.update(h, at, 0, 0)
	}
}

// failURL records that a URL cannot be fetched because the host has no address.
func (f *Frontier) failURL(h *host, head *storage.Head, at time.Time) {
	h.active.busy.Add(head.Ordinal)
	o := storage.Outcome{State: storage.Failed, Reason: h.active.failReason, At: at}
	f.planRecrawl(h, head, &o, nil)
	f.recordOutcome(h, head, o)
}
