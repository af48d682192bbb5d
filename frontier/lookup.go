package frontier

import (
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// ResolveReport is the answer to a Resolve lease. Without addresses the lookup failed.
type ResolveReport struct {
	End       time.Time
	Addresses []netip.Addr
	Aliases   []string      // the names that its CNAME records lead to
	TTL       time.Duration // how long the answer is valid; of Absent, how long another lookup is of no use
	Aborted   bool          // the crawl ends; nothing was learned

	// Of a failure: whether the name can have no address (it does not exist, or its addresses are
	// out of reach), and the reason for URLs that fail because of it. A cached answer does not
	// count as another one: it is not Absent.
	Final  bool // fail the host's URLs at once
	Absent bool // fail them after Options.MaxAttempts of these answers in a row
	Reason storage.Reason
}

// Lookups take no worker: up to Options.Resolvers of them are in flight in addition to the
// requests. A name that was never looked up may not exist, and name servers take longest to say so.
// Names that were resolved before therefore never wait for the others.

// lookupResult is the result of the last lookup of a host's name.
type lookupResult uint8

const (
	notLookedUp lookupResult = iota
	resolved
	unresolved
)

// The lists in which hosts wait for a lookup, in the order of their turns.
const (
	knownNames  = iota // resolved before
	seedNames          // of seeds, never looked up
	newNames           // others that were never looked up
	failedNames        // not resolved by the last lookup
	nameLists
)

// lookups are the hosts that wait for a lookup of their names.
type lookups struct {
	lists    [nameLists][]*host
	inFlight int // leased lookups
	unproven int // those of names that no lookup resolved yet
	turn     int // lookups of such names so far
}

// One lookup in spareLookups at a time is kept for known names, at least one where there are
// several. Of the others one in failedTurn is of a name that failed the last time, if there is one.
const (
	spareLookups = 8
	failedTurn   = 8
)

// queued is the number of names that wait.
func (n *lookups) queued() (all int) {
	for i := range n.lists {
		all += len(n.lists[i])
	}
	return all
}

// untried is how many of them were never looked up.
func (n *lookups) untried() int { return len(n.lists[seedNames]) + len(n.lists[newNames]) }

// next removes the next host from its list. unproven says that no lookup has resolved its name yet.
// nil: no lookup may begin now.
func (n *lookups) next(most int) (h *host, unproven bool) {
	list := n.nextList(most)
	if list == nameLists {
		return nil, false
	}
	if unproven = list != knownNames; unproven {
		n.unproven++
		n.turn++
	}
	n.inFlight++
	h = n.lists[list][0]
	n.lists[list][0] = nil
	n.lists[list] = n.lists[list][1:]
	return h, unproven
}

// nextList is the list that is next, with up to most lookups at a time; nameLists: none is.
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
	list := seedNames
	for list < nameLists && len(n.lists[list]) == 0 {
		list++
	}
	return list
}

// end counts a lookup that ended.
func (n *lookups) end(unproven bool) {
	n.inFlight--
	if unproven {
		n.unproven--
	}
}

// nameList is the list in which a host waits.
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

// nextLookup is the instant before which another lookup of the host's name is of no use.
func (h *host) nextLookup() instant { return instant(h.noLookupUntil) * instant(time.Second) }

// seeded reports whether one of the URLs in memory is a seed.
func (a *active) seeded() bool {
	for i := range a.queues {
		if a.queues[i].HasSeed() {
			return true
		}
	}
	return false
}

// requestLookup queues a lookup of a host's name, unless Options.Known has its addresses.
func (s *scheduler) requestLookup(h *host, now instant) {
	h.state = resolving
	if h.active.lookingUp {
		return
	}
	if s.o.Known != nil {
		if r, known := s.o.Known(h.active.name, s.wantsEvery(h)); known {
			r.End = s.clock
			s.applyLookup(h, &r, now)
			s.schedule(h, now)
			return
		}
	}
	h.active.lookingUp = true
	list := h.nameList()
	s.lookups.lists[list] = append(s.lookups.lists[list], h)
}

// WantsNames reports whether NextName may have a lease.
func (f *Frontier) WantsNames() bool {
	return f.lookups.queued() > 0 && f.lookups.inFlight < f.o.Resolvers
}

// NextName returns a lease for the next lookup; false if none waits or the most are in flight. A
// lookup takes no worker.
func (f *Frontier) NextName(now time.Time) (Lease, bool) {
	f.readClock(now)
	h, unproven := f.lookups.next(f.o.Resolvers)
	if h == nil {
		return Lease{}, false
	}
	out := f.leases.add(h, Resolve)
	out.unproven, out.lease.Every = unproven, f.wantsEvery(h)
	return out.lease, true
}

// wantsEvery reports whether a lookup is for the addresses of both families. Those of one do as long as
// the host answers at them and nobody opted out by address, and cost its name servers one query instead
// of two. A lookup that failed may have had no time for the other family; that the name has no address
// is said of both.
func (b *base) wantsEvery(h *host) bool {
	return h.addressTurn > 0 || h.lookup == unresolved && h.absent == 0 || b.scope.optOuts.HasRanges()
}

// CompleteResolve ends a Resolve lease. The error is ErrUnknownLease.
func (f *Frontier) CompleteResolve(id uint64, r ResolveReport) error {
	out, err := f.leases.end(id, Resolve)
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

// applyLookup takes in the result of a lookup.
func (s *scheduler) applyLookup(h *host, r *ResolveReport, now instant) {
	r.leaveOut(s.scope.optOuts)
	switch {
	case r.Aborted:
		s.releaseReserved(h, now)
	case len(r.Addresses) > 0:
		h.lookup = resolved
		s.pin(h, r, now)
	default:
		h.lookup = unresolved
		s.releaseReserved(h, now)
		h.setLimit(byAddress, nil)
		s.lookupFailed(h, r)
	}
}

// minTTL is how long a DNS answer is kept at least, as in internal/web/fetch, so that hosts which wait
// for an address that many share need not be looked up again.
const minTTL = 30 * time.Second

// failFor is how long the URLs of a host without an address fail without another lookup.
const failFor = time.Minute

// resolved reports whether the host has an address that is valid at an instant.
func (a *active) resolved(at instant) bool { return a.limits[byAddress] != nil && a.expires > at }

// pin selects one of the addresses of a host, and the group that its aliases are in. If the limits of
// both are reserved for the host already, they stay so.
func (s *scheduler) pin(h *host, r *ResolveReport, now instant) {
	a := h.active
	pinned := r.Addresses[int(h.addressTurn)%len(r.Addresses)]
	to, group := s.limits.ofAddress(pinned), s.limits.ofGroup(a.name, r.Aliases)
	if a.limits[byAddress] != to || a.limits[byGroup] != group {
		s.releaseReserved(h, now)
	}
	h.setLimit(byAddress, to)
	h.setLimit(byGroup, group)
	a.pinned, a.expires, h.absent = pinned, now+instant(max(r.TTL, minTTL)), 0
	if h.hasReserved() {
		s.waitForReserved(h, now)
	}
}

// lookupFailed handles a name without an address: the host waits like one that does not answer,
// unless the answer is final.
func (s *scheduler) lookupFailed(h *host, r *ResolveReport) {
	if r.Absent {
		until := s.instant(r.End) + instant(r.TTL+time.Second) - 1
		h.noLookupUntil = uint32(until / instant(time.Second)) // rounded up
		h.absent = min(h.absent, s.o.MaxAttempts-1) + 1
	}
	if r.Final || h.absent >= s.o.MaxAttempts {
		h.active.failUntil, h.active.failReason = s.instant(r.End)+instant(failFor), r.Reason
	} else {
		h.active.polite.Ended(r.End, politeness.Result{
			Signal: politeness.SignalUnreachable, Cause: uint16(storage.ReasonCause(r.Reason)), Jitter: s.jitter(),
		})
		h.setFailing(politeness.SignalUnreachable, s.instant(r.End))
	}
	s.failJobs(h, r.End)
	s.results.update(h, r.End, 0, 0)
}

// failQueued records failures for all URLs in memory of a host whose name has no address, or of
// origins that opted out. The others follow when they are loaded.
func (s *scheduler) failQueued(h *host, now instant) {
	a := h.active
	s.failOptedOutJobs(h, now)
	fails := a.failUntil > now
	if !fails && !a.optedOut {
		return
	}
	at, recorded := s.time(now), len(s.results.batch.Done)
	for i := range a.queues {
		q := &a.queues[i]
		if !fails && !q.optedOut {
			continue
		}
		for q.Len(queue.New)+q.Len(queue.Due) > 0 {
			head, _ := q.Take(false)
			s.failURL(h, &head, at)
			q.Done(head.Ordinal)
		}
		for q.Len(queue.Recrawl) > 0 {
			head := q.TakeRecrawl()
			s.failURL(h, &head, at)
		}
	}
	if fails {
		s.failJobs(h, at)
	}
	if len(s.results.batch.Done) > recorded {
		s.results.update(h, at, 0, 0)
	}
}

// failURL records that a URL cannot be fetched because the host has no address, or opted out.
func (s *scheduler) failURL(h *host, head *storage.Head, at time.Time) {
	a := h.active
	a.busy.Add(head.Ordinal)
	o := storage.Outcome{State: storage.Failed, Reason: a.failReason, At: at}
	if a.queues[head.Origin].optedOut || a.failReason == storage.ReasonOptOut {
		o = optedOut()
		o.At = at
		s.recrawls.keepHistory(h, head, &o)
	} else {
		s.recrawls.plan(h, head, &o, nil)
	}
	s.results.recordOutcome(h, head, o)
}
