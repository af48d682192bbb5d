package frontier

import (
	"net/netip"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
)

// limit is a limit that hosts share: that of a registrable domain, a group, an address or a range of
// addresses. A host has at most one limit of each class, and is fetched from when all of them allow
// it.
//
// A due host takes its limits in the order of their classes. If one is busy, the host
// becomes one of its waiters and keeps the limits of the classes before it reserved, so there is no
// cyclic wait.
type limit struct {
	polite      politeness.Limit
	reservedFor *host      // the host that makes the next request; the waiters come after it
	waiters     [2][]*host // due hosts that found the limit busy: quick ones, and others
	othersNext  bool       // the next turn is that of the others
	users       int        // active hosts that have the limit
	key         LimitKey
	whole       politeness.LimitOptions // for the Gate
}

// The classes of limits, in the order in which hosts take them. The domain comes first, because
// an address that many hosts share must not be reserved for a host that waits for its domain. A
// group may have many domains and many addresses, so it stands between them.
const (
	byDomain = iota
	byGroup
	byAddress
	limitClasses
)

// String returns the name of the limit for reports.
func (k LimitKey) String() string {
	switch {
	case k.Domain != "":
		return "domain " + k.Domain
	case k.Group != "":
		return "group " + k.Group
	case k.Network.IsSingleIP():
		return "address " + k.Network.Addr().String()
	}
	return "addresses " + k.Network.String()
}

// Range gives the addresses of a network limits of their own.
type Range struct {
	Network netip.Prefix
	Limit   politeness.LimitOptions
	Shared  bool // one limit for the whole network, as always for less than an IPv6 /64; else one for each address
}

// sharedLimits are the limits that hosts share.
type sharedLimits struct {
	*base
	all    map[LimitKey]*limit
	groups *groups
	none   limit // in place of that of an address, with Options.NoLookups
}

// ofAddress is the limit of an address: that of the smallest range that contains it, or its own.
func (sl *sharedLimits) ofAddress(a netip.Addr) *limit {
	network, o := sl.network(a)
	return sl.of(LimitKey{Network: network}, o)
}

// network is the network that an address shares its limit with, and the options of that limit.
func (sl *sharedLimits) network(a netip.Addr) (netip.Prefix, politeness.LimitOptions) {
	key, o, bits := politeness.AddressKey(a), sl.o.Politeness.Address(), -1
	network := key
	for i := range sl.o.Ranges {
		r := &sl.o.Ranges[i]
		if r.Network.Bits() <= bits || !r.Network.Contains(a.Unmap().WithZone("")) {
			continue
		}
		network, o, bits = key, r.Limit, r.Network.Bits()
		if r.Shared || bits > key.Bits() {
			network = r.Network.Masked()
		}
	}
	if o.Rate > 0 && sl.o.Deliver != nil && sl.o.Deliver(a) {
		o.Rate = 0
	}
	return network, o
}

// ofDomain is the limit of a host's registrable domain; nil: there are no such limits.
func (sl *sharedLimits) ofDomain(name string) *limit {
	if sl.o.Domain == (politeness.LimitOptions{}) {
		return nil
	}
	return sl.of(LimitKey{Domain: weburl.RegistrableDomain(name)}, sl.o.Domain)
}

// of returns a limit, and makes it if there is none. A new one counts as used at the epoch,
// because an earlier process may have used it.
func (sl *sharedLimits) of(key LimitKey, o politeness.LimitOptions) *limit {
	l := sl.all[key]
	if l == nil {
		l = &limit{key: key, whole: o, polite: politeness.NewLimit(sl.ownPart(o))}
		l.polite.RestartHold(sl.epoch)
		sl.all[key] = l
	}
	return l
}

// ownPart returns the options of a limit for this frontier: a budget is one for all frontiers, so
// that of a Gate counts if there is one.
func (sl *sharedLimits) ownPart(o politeness.LimitOptions) politeness.LimitOptions {
	if sl.o.Gate != nil {
		o.Rate = 0
	}
	return o
}

// setLimit gives an active host a limit of a class, or none.
func (h *host) setLimit(class int, to *limit) {
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

// Sweep forgets limits that no host has and that hold nothing, and schedules hosts again whose
// budget has room. The owner calls it from time to time.
func (f *Frontier) Sweep(now time.Time) {
	for i := range f.budgets.domains {
		f.reviveDomain(uint32(i), len(f.budgets.domains[i].overBudget), f.instant(now))
	}
	for key, l := range f.limits.all {
		if l.users == 0 && l.polite.Unused(now) {
			delete(f.limits.all, key)
		}
	}
}

// isFree reports whether a host may make the next request without waiting for others.
func (l *limit) isFree() bool { return l.reservedFor == nil && l.queued() == 0 && l.polite.Free() }

// queued is the number of waiters.
func (l *limit) queued() int { return len(l.waiters[0]) + len(l.waiters[1]) }

// enqueue adds a host to the waiters.
func (l *limit) enqueue(h *host) {
	i := min(int(h.lane), 1)
	l.waiters[i] = append(l.waiters[i], h)
}

// dequeue removes the next waiter. If there are waiters of both kinds, they take turns.
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

// hasReserved reports whether a limit is reserved for the host.
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

// acquireLimits reports whether all limits of a due host allow its request. If not, the host
// becomes a waiter of one, or waits for the instant at which all of them do.
func (s *scheduler) acquireLimits(h *host, now instant) bool {
	a := h.active
	wait := !a.resolved(now)
	for class, l := range a.limits {
		switch {
		case l == nil:
		case l.reservedFor != h && !l.isFree():
			s.lanes.remove(h)
			s.lanes.releaseSlot(h)
			h.reserveBelow(class)
			h.state = limited
			l.enqueue(h)
			s.reserveNext(l, now)
			return false
		case s.instant(l.polite.Ready()) > now:
			wait = true
		}
	}
	if wait {
		s.lanes.remove(h)
		s.lanes.reserveSlot(h)
		h.reserveBelow(limitClasses)
		s.waitForReserved(h, now)
	}
	return !wait
}

// reserveBelow reserves the limits of the classes below one for the host. All of them are free.
func (h *host) reserveBelow(class int) {
	for _, l := range h.active.limits[:class] {
		if l != nil {
			l.reservedFor = h
		}
	}
}

// reserveNext reserves a limit for its first waiter as soon as it is free.
func (s *scheduler) reserveNext(l *limit, now instant) {
	for l.reservedFor == nil && l.queued() > 0 && l.polite.Free() {
		h := l.dequeue()
		if !s.lanes.open(h.lane) { // other waiters must not wait for its turn there
			h.state = empty
			s.releaseReserved(h, now)
			s.lanes.pushReady(h, min(h.readyAt, now))
			continue
		}
		s.lanes.reserveSlot(h)
		l.reservedFor = h
		s.waitForReserved(h, now)
	}
}

// waitForReserved lets a host wait for the limits that are reserved for it. If its address expires
// before that, it is resolved first.
func (s *scheduler) waitForReserved(h *host, now instant) {
	a, at := h.active, now
	for _, l := range a.limits {
		if l != nil && l.reservedFor == h {
			at = max(at, s.instant(l.polite.Ready()))
		}
	}
	switch {
	case a.resolved(at):
		s.lanes.pushReady(h, at)
	case at-lead > now:
		s.lanes.pushReady(h, at-lead)
	default:
		s.requestLookup(h, now)
	}
}

// releaseReserved gives up the limits that are reserved for a host, in favour of their waiters.
func (s *scheduler) releaseReserved(h *host, now instant) {
	if h.state == waiting || h.state == waitingToRecrawl {
		s.lanes.remove(h)
	}
	for _, l := range h.active.limits {
		if l != nil && l.reservedFor == h {
			l.reservedFor = nil
			s.reserveNext(l, now)
		}
	}
	s.lanes.releaseSlot(h)
}

// endInLimit ends a request that counted against a limit.
func (s *scheduler) endInLimit(l *limit, r *Report) {
	l.polite.Ended(r.End, r.signal(), r.Duration)
	s.reserveNext(l, s.instant(r.End))
}

// Group is hosts that share a server, although they have neither an address nor a domain in common,
// with the limit of the requests to all of them together. If several groups match a host, only the
// closest one counts: one with the host's name first, then the pattern with the most labels, and
// after that those of the names that its CNAME records lead to.
type Group struct {
	Name   string
	Hosts  []string // names, and patterns such as *.example.com: all names below it, not itself
	CNAMEs []string // names and patterns in the CNAME records of hosts
	Limit  politeness.LimitOptions
}

// groups finds the group of a host. It is immutable.
type groups struct {
	list           []Group
	hosts, aliases patterns
}

func newGroups(list []Group) *groups {
	g := &groups{list: list, hosts: newPatterns(), aliases: newPatterns()}
	for i := range list {
		g.hosts.add(list[i].Hosts, i)
		g.aliases.add(list[i].CNAMEs, i)
	}
	return g
}

// find returns one more than the index of the group of a host whose name is an alias for others; 0:
// it is in none.
func (g *groups) find(name string, aliases []string) uint16 {
	if i := g.hosts.find(name); i > 0 {
		return i
	}
	for _, alias := range aliases {
		if i := g.aliases.find(alias); i > 0 {
			return i
		}
	}
	return 0
}

// FindGroup returns a function that returns the name of the group that a host is in by its name
// alone; empty: it is in none. Any goroutine may call it.
func FindGroup(list []Group) func(host string) string {
	all := newGroups(list)
	return func(host string) string { return all.name(all.find(host, nil)) }
}

// name returns the name of the group with an index that find returned.
func (g *groups) name(i uint16) string {
	if i == 0 {
		return ""
	}
	return g.list[i-1].Name
}

// ofGroup is the limit of the group of a host whose name is an alias for others; nil: it is in none.
func (sl *sharedLimits) ofGroup(name string, aliases []string) *limit {
	i := sl.groups.find(name, aliases)
	if i == 0 {
		return nil
	}
	g := &sl.groups.list[i-1]
	return sl.of(LimitKey{Group: g.Name}, g.Limit)
}

// groupName is the name of the group of an active host; empty: it is in none.
func (a *active) groupName() string {
	if l := a.limits[byGroup]; l != nil {
		return l.key.Group
	}
	return ""
}

// patterns maps names, and patterns such as *.example.com, to indexes.
type patterns struct {
	exact map[string]uint16 // by name
	below map[string]uint16 // by the name below which a pattern matches
}

func newPatterns() patterns {
	return patterns{exact: make(map[string]uint16), below: make(map[string]uint16)}
}

// add maps patterns to an index.
func (p patterns) add(list []string, i int) {
	for _, pattern := range list {
		if name, below := strings.CutPrefix(pattern, "*."); below {
			p.below[name] = uint16(i)
		} else {
			p.exact[pattern] = uint16(i)
		}
	}
}

// find returns one more than the index of a name; 0: nothing matches. The name itself is closest,
// then the pattern with the most labels.
func (p patterns) find(name string) uint16 {
	if len(p.exact)+len(p.below) == 0 {
		return 0
	}
	if i, ok := p.exact[name]; ok {
		return i + 1
	}
	for {
		_, rest, more := strings.Cut(name, ".")
		if !more {
			return 0
		}
		if i, ok := p.below[rest]; ok {
			return i + 1
		}
		name = rest
	}
}
