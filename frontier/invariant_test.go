package frontier

import (
	"slices"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// hostStates counts the hosts by state.
func (f *Frontier) hostStates() map[state]int {
	n := make(map[state]int)
	for h := range f.hosts.all {
		n[h.state]++
	}
	return n
}

// checkInvariants walks the whole frontier and holds it to the package comment.
func checkInvariants(t tester, f *Frontier) {
	dormant, ready := 0, 0
	for l := range lanes {
		checkHeap(t, "dormant", f.lanes.dormant[l])
		checkHeap(t, "ready", f.lanes.ready[l])
		dormant, ready = dormant+f.lanes.dormant[l].size(), ready+f.lanes.ready[l].size()
	}
	checkHeap(t, "woken", f.lanes.woken)
	c := census{users: map[*limit]int{}, waiters: map[*limit]int{}, inFlight: map[*host]int{}, reading: map[*host]int{},
		awaited: map[storage.HostID]map[string]bool{}}
	checkRecrawls(t, f)
	c.leases(t, f)
	for h := range f.hosts.all {
		c.host(t, f, h)
	}
	must.True(t, f.lanes.woken.size() == c.woken && dormant == c.dormant && ready == c.ready,
		"heaps hold %d dormant and %d waiting hosts, %d and %d say so", dormant, ready, c.dormant, c.ready)
	must.True(t, f.lanes.traffic.inFlight == c.inLane && f.lanes.traffic.hosts == c.lanes,
		"%v requests to %v hosts are counted by lane, there are %v to %v", f.lanes.traffic.inFlight,
		f.lanes.traffic.hosts, c.inLane, c.lanes)
	if f.memory.activeHosts != c.active || f.memory.activeBytes != c.bytes || f.memory.activating != c.opening {
		t.Fatalf("%d active hosts (%d opening) of %d bytes are counted, there are %d (%d) of %d", f.memory.activeHosts,
			f.memory.activating, f.memory.activeBytes, c.active, c.opening, c.bytes)
	}
	must.True(t, f.lookups.queued()+f.lookups.inFlight == c.lookingUp,
		"%d names in line and %d leased, %d hosts say so", f.lookups.queued(), f.lookups.inFlight, c.lookingUp)
	for _, l := range f.limits.all {
		c.limit(t, l)
	}
	c.robotsJobs(t, f)
	checkDomains(t, f)
}

// checkRecrawls compares the heaps of recrawls with the hosts.
func checkRecrawls(t tester, f *Frontier) {
	in := 0
	for n, heap := range []*recrawlHeap{&f.lanes.dormantRecrawls, &f.lanes.activeRecrawls[quick],
		&f.lanes.activeRecrawls[untried],
		&f.lanes.activeRecrawls[slow]} {
		for i, h := range *heap {
			in++
			must.True(t, f.lanes.recrawlHeap(h) == heap && int(h.recrawlIndex) == i && (h.active != nil) == (n > 0),
				"host %d is at %d of heap %d of recrawls and says %d and %d", h.id, i, n, h.recrawlIndex, h.recrawlList)
			if i > 0 && heap.Less(i, (i-1)/2) {
				t.Fatalf("heap %d of recrawls: host %d is before its parent", n, h.id)
			}
		}
	}
	for h := range f.hosts.all {
		if h.recrawlList != inNoHeap {
			in--
		}
		if f.o.Recrawl != nil && h.active == nil && h.backlog.Recrawls > 0 && h.recrawlList == inNoHeap &&
			h.state != woken {
			t.Fatalf("host %d is lost: it has recrawls and is %s", h.id, h.state.String())
		}
	}
	must.True(t, in == 0, "%d hosts more are in the heaps of recrawls than say so", in)
}

// checkDomains adds up the budgets of the registrable domains.
func checkDomains(t tester, f *Frontier) {
	fetched := make([]uint32, len(f.budgets.domains))
	for h := range f.hosts.all {
		fetched[h.domain] += h.fetched
		if h.marks.has(inOverBudget) != slices.Contains(f.budgets.domains[h.domain].overBudget, h) ||
			h.state == overBudget &&
				h.domain != 0 && !h.marks.has(inOverBudget) {
			t.Fatalf("host %d is %s, listed with its domain: %t", h.id, h.state.String(), h.marks.has(inOverBudget))
		}
	}
	for i, d := range f.budgets.domains {
		if i > 0 && d.fetched != fetched[i] {
			t.Fatalf("domain %d counts %d pages, its hosts %d", i, d.fetched, fetched[i])
		}
	}
}

// census counts what the frontier counts too.
type census struct {
	dormant, woken, ready, active, bytes, opening, lookingUp int

	inLane, lanes  [lanes]int
	users, waiters map[*limit]int
	inFlight       map[*host]int
	reading        map[*host]int                      // leases whose request has ended
	awaited        map[storage.HostID]map[string]bool // origins whose robots.txt is awaited
}

// holds reports whether a host is in a heap.
func (h *hostHeap) holds(x *host) bool {
	i := int(h.of.index[x.id])
	return i >= root && i < len(h.items) && h.items[i].id == x.id
}

func checkHeap(t tester, name string, heap hostHeap) {
	for i := root; i < len(heap.items); i++ {
		x := &heap.items[i]
		if h, at := heap.of.get(x.id), int(heap.of.index[x.id]); at != i || h.readyAt != x.key {
			t.Fatalf("%s heap: host %d is at %d with key %d and says %d and %d", name, h.id, i, x.key, at, h.readyAt)
		}
		if i > root && x.before(&heap.items[parentOf(i)]) {
			t.Fatalf("%s heap: host %d is before its parent", name, x.id)
		}
	}
}

func (c *census) leases(t tester, f *Frontier) {
	lookups, guesses, matches := 0, 0, make(map[*host]int)
	for _, out := range f.leases.out {
		must.True(t, f.hosts.get(out.host.id) == out.host && out.host.active != nil,
			"a lease is out to host %d, which is dormant", out.host.id)
		switch out.lease.Kind {
		case Resolve:
			if lookups++; out.unproven {
				guesses++
			}
			must.True(t, out.host.active.lookingUp, "host %d is leased to be resolved and does not know", out.host.id)
			continue
		case Match:
			head := &out.lease.Head
			must.True(t, out.host.active.busy.Has(head.Ordinal) && out.host.active.queues[head.Origin].matching,
				"URL %d of host %d is being put to its rules, and the host does not know", head.Ordinal, out.host.id)
			matches[out.host]++
			continue
		case Page:
			must.True(t, out.host.active.busy.Has(out.lease.Head.Ordinal), "URL %d of host %d is leased and not busy",
				out.lease.Head.Ordinal, out.host.id)
		}
		c.inLane[out.lane]++
		if out.requestEnded {
			c.reading[out.host]++
		} else {
			c.inFlight[out.host]++
		}
	}
	matching := 0
	for h, n := range matches {
		matching += n
		for _, turn := range f.matches.line {
			if turn.host == h {
				n++
			}
		}
		for i := range h.active.queues {
			if h.active.queues[i].matching {
				n--
			}
		}
		must.True(t, n == 0, "host %d has %d more URLs that are being put to rules than queues that stand still for it",
			h.id, n)
	}
	for _, turn := range f.matches.line {
		must.True(t, turn.host.active != nil && turn.host.active.queues[turn.queue].matching,
			"host %d is in line to be put to its rules and does not know", turn.host.id)
	}
	must.True(t, matching == f.matches.inFlight && f.matches.inFlight <= maxMatching,
		"%d match leases are out, %d are counted, %d hosts wait", matching, f.matches.inFlight, len(f.matches.line))
	must.True(t, lookups == f.lookups.inFlight && guesses == f.lookups.unproven,
		"%d lookups are out, %d of them guesses; %d and %d are counted", lookups, guesses, f.lookups.inFlight,
		f.lookups.unproven)
}

func (c *census) host(t tester, f *Frontier, h *host) {
	a := h.active
	switch {
	case h.state == dormant:
		c.dormant++
		must.True(t, a == nil && f.lanes.dormant[h.heapLane].holds(h),
			"host %d is dormant, but active or not in the heap", h.id)
	case h.state == woken:
		c.woken++
		must.True(t, a == nil && f.lanes.woken.holds(h), "host %d is woken, but active or not in the heap", h.id)
	case h.state == recrawlOnly:
		must.True(t, a == nil && h.recrawlList == inDormantHeap,
			"host %d has only recrawls, but active or not in the heap", h.id)
	case h.state == overBudget:
		if a != nil || !f.budgets.isOver(h) && h.domain == 0 {
			t.Fatalf("host %d is over budget, but active or within its budget", h.id)
		}
	case h.state == empty && a == nil:
		b := h.backlog
		if b.Queued > 0 || b.Due > 0 || f.o.Recrawl != nil && b.Recrawls > 0 || len(f.jobs.dormant[h.id]) > 0 {
			t.Fatalf("host %d is lost: idle with %d queued, %d due URLs and %d robots jobs", h.id, b.Queued, b.Due,
				len(f.jobs.dormant[h.id]))
		}
	case a == nil:
		t.Fatalf("host %d is %s without being active", h.id, h.state.String())
	default:
		c.activeHost(t, f, h)
	}
}

func (c *census) activeHost(t tester, f *Frontier, h *host) {
	a := h.active
	c.active++
	c.bytes += a.bytes
	if !a.loaded {
		c.opening++
	}
	if a.lookingUp {
		c.lookingUp++
	}
	must.True(t, a.counted == a.loaded, "host %d is counted to its lane: %v", h.id, a.counted)
	if a.counted {
		c.lanes[h.lane]++
	}
	if a.hasSlot {
		c.inLane[h.lane]++
		must.True(t, h.hasReserved(), "host %d has a slot in its lane and waits for nothing", h.id)
	}
	for _, l := range a.limits {
		if l != nil {
			c.users[l]++
		}
	}
	if a.inFlight != c.inFlight[h] {
		t.Fatalf("host %d counts %d requests in flight, %d leases are out", h.id, a.inFlight, c.inFlight[h])
	}
	if a.reading != c.reading[h] || a.reading > 0 && a.inFlight+a.reading > f.o.Politeness.PerHost+maxReading {
		t.Fatalf("host %d counts %d responses that are being read besides %d requests in flight, there are %d", h.id,
			a.reading, a.inFlight, c.reading[h])
	}
	c.cursors(t, f, h)
	for i := range a.queues {
		if q := &a.queues[i]; q.fetchingRobots {
			if c.awaited[h.id] == nil {
				c.awaited[h.id] = map[string]bool{}
			}
			c.awaited[h.id][q.origin.String()] = true
		}
	}
	// Each state but waiting must have an event that ends it.
	ok := true
	switch h.state {
	case waiting:
		c.ready++
		ok = f.lanes.ready[h.heapLane].holds(h)
	case waitingToRecrawl:
		ok = h.recrawlList >= inActiveHeap
	case loading:
		ok = a.loading
	case resolving:
		ok = a.lookingUp
	case limited:
		ok = false
		for _, l := range a.limits {
			if l != nil && slices.Contains(slices.Concat(l.waiters[:]...), h) {
				c.waiters[l]++
				ok = true
			}
		}
	case leased:
		ok = a.inFlight > 0 || a.uncommitted > 0 || len(a.busy) > 0
	case waitingForRobots:
		ok = h.isBlocked()
	case empty:
		ok = a.uncommitted > 0 || len(a.busy) > 0 || a.lookingUp
	}
	if !ok {
		t.Fatalf("host %d is lost in state %s: %+v", h.id, h.state.String(), a)
	}
}

// cursors checks that only leased URLs hold back the cursors of queues without new URLs in memory.
func (c *census) cursors(t tester, f *Frontier, h *host) {
	for i := range h.active.queues {
		q := &h.active.queues[i]
		if q.Len(queue.New) > 0 {
			continue
		}
		want := q.ReadTo()
		for _, out := range f.leases.out {
			l := &out.lease
			ofURL := (l.Kind == Page || l.Kind == Match) && out.urlKind == queue.New
			if ofURL && out.host == h && int(l.Head.Origin) == i {
				want = min(want, l.Head.Ordinal)
			}
		}
		if got := q.Cursor(); got != want {
			t.Fatalf("host %d: the cursor of %s is at %d, want %d", h.id, q.origin, got, want)
		}
	}
}

func (c *census) limit(t tester, l *limit) {
	if l.users != c.users[l] || l.queued() != c.waiters[l] {
		t.Fatalf("%s counts %d users and %d in line, there are %d and %d",
			l.key, l.users, l.queued(), c.users[l], c.waiters[l])
	}
	if h := l.reservedFor; h != nil && (h.active == nil || !slices.Contains(h.active.limits[:], l) ||
		h.state != waiting && h.state != resolving && h.state != limited) {
		t.Fatalf("%s is reserved for host %d, which is %s", l.key, h.id, h.state.String())
	}
	if l.reservedFor == nil && l.queued() > 0 && l.polite.Free() {
		t.Fatalf("%s is free, and nobody of %d in line is next", l.key, l.queued())
	}
}

// robotsJobs checks that there is a job for every robots.txt that a queue waits for.
func (c *census) robotsJobs(t tester, f *Frontier) {
	answer := func(j RobotsJob) { delete(c.awaited[j.Owner], j.Origin.String()) }
	for h := range f.hosts.all {
		if h.active != nil {
			for _, e := range h.active.jobs {
				answer(e.job)
			}
		}
	}
	for _, list := range f.jobs.dormant {
		for _, e := range list {
			answer(e.job)
		}
	}
	for _, list := range f.jobs.byName {
		for _, e := range list {
			answer(e.job)
		}
	}
	for _, out := range f.leases.out {
		if out.lease.Kind == Robots {
			answer(*out.lease.Robots)
		}
	}
	for id, origins := range c.awaited {
		for origin := range origins {
			t.Fatalf("host %d waits for the robots.txt of %s, and nobody fetches it", id, origin)
		}
	}
}
