package frontier

import (
	"cmp"
	"math"
	"net/netip"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// host is what is kept of every host that has, or had, work in this process.
type host struct {
	id            storage.HostID
	latency       uint16          // milliseconds, a moving average over its requests; 0: there was none
	quickNeeded   uint8           // quick responses until it is quick again
	unanswered    uint8           // requests in a row that took long and had no response
	readyAt       instant         // key in the heap
	ready         instant         // when politeness allows a request; not updated while active
	workAt        instant         // of a dormant host: when its work may be done; always: nothing holds it
	failingSince  instant         // never: it is not failing
	backlog       storage.Backlog // as of the last commit
	fetched       uint32          // pages, committed or in flight
	domain        uint32          // index of the budget of its registrable domain; 0: unknown, or no such budgets
	delay         float32         // last known seconds between requests
	state         state
	waitReason    politeness.Reason // of a dormant host: what decided ready
	robotsReason  robots.Reason     // of a dormant host: why robots.txt holds all its work
	absent        uint8             // responses in a row that its name does not exist
	lookup        lookupResult      // of the last lookup of its name
	addressTurn   uint8             // selects one of its addresses; counts requests without a response
	deferred      uint8             // one more than the index of the origin that deferredQueue may return; 0: none
	marks         hostMarks         // in which lists and counts it is
	closed        closed            // of a dormant host: the wall that it is behind, and whether it is parked
	answers       uint8             // to its requests, up to enoughAnswers
	override      uint16            // one more than the index of its override; 0: it has none
	noLookupUntil uint32            // seconds since the epoch; another lookup of its name is of no use before
	active        *active

	recrawlAt    instant // key in the heap of recrawls
	recrawlIndex int32
	recrawlList  uint8

	sitemaps uint8 // that this process has requested, in parts of the most: see budgets.countSitemap
	lane     lane  // as of the last call of schedule
	heapLane lane  // of the heap that it is in
}

// hostMarks say in which lists and counts a host is: in one byte, because there are many hosts.
type hostMarks uint8

const (
	inOverBudget hostMarks = 1 << iota // among the hosts of its domain that are over budget
	hasURLs                            // as of the last commit
	hasWork                            // some of its URLs are queued or retrying, as of the last commit
	isNew                              // its URLs were deleted, and nothing was handed out since, with Options.Batches
)

// has reports whether a mark is set.
func (m hostMarks) has(mark hostMarks) bool { return m&mark != 0 }

// set sets a mark, or removes it. It returns by how much a count of such hosts changes.
func (m *hostMarks) set(mark hostMarks, on bool) int {
	before := m.has(mark)
	if *m &^= mark; on {
		*m |= mark
	}
	switch {
	case on && !before:
		return 1
	case before && !on:
		return -1
	}
	return 0
}

// closed is the kind of the wall that a host is behind, with a bit that says whether it is parked.
type closed uint8

// isParked is the bit.
const isParked closed = 0x80

func newClosed(k wall.Kind, parked bool) closed {
	c := closed(k)
	if parked {
		c |= isParked
	}
	return c
}

func (c closed) parked() bool    { return c&isParked != 0 }
func (c closed) wall() wall.Kind { return wall.Kind(c &^ isParked) }

// active is what is in memory of an active host. With many hosts a decision spends most of its time
// on cache misses, so what it reads comes first.
type active struct {
	polite politeness.Host // once it is loaded
	queues []originQueue
	jobs   []pendingJob         // for the robots.txt of origins; its own come first
	busy   queue.Ordinals       // leased, or with an outcome that is not committed
	limits [limitClasses]*limit // nil: it has none of that class, or no address
	name   string
	pinned netip.Addr

	expires   instant // of the address
	notBefore instant // the gate admits no request before
	recheckAt instant // it waits until then at most for the gate, which does not know for how long; always: it does not
	failUntil instant // URLs fail until then, without another lookup
	loadAfter instant // no load before; always: at once
	putsSince instant // since when it waits until puts are read, with Options.Batches; never: it does not
	batchAt   instant // when the last batch was given out, with Options.Batches; always: none was

	inFlight int    // requests
	reading  int    // leases whose request has ended, up to maxReading beyond the requests in flight
	served   int    // requests since it became active
	tail     uint32 // all ordinals are below it

	loading         bool  // its queues are being read
	loaded          bool  // they were read once
	lookingUp       bool  // it waits for a lookup of its name, or the lookup is leased
	counted         bool  // among the active hosts of its lane
	hasSlot         bool  // it is counted as a request of its lane already
	sinceForeignJob uint8 // its own requests since the last robots job of another host, up to jobShare
	matching        uint8 // Match leases in flight
	inTurn          uint8 // requests in its present turn, up to turnLength
	dueMissed       bool  // more due URLs were committed during a load
	optedOut        bool  // one of the queues did
	failReason      storage.Reason

	dueRead      uint32 // Unix seconds; what was due by then is in memory or busy
	dueLater     uint32 // Unix seconds; a URL on disk is due then, and none between; 0: not known
	recrawlsRead uint32 // Unix seconds; recrawls that were due by then are in memory or busy
	read         uint32 // tail as of the last load

	wall              wall.State   // what its responses say about a wall
	toldGate          *HostTerms   // the newest that the gate has; nil: it has none
	uncommitted       int          // host updates in a batch that is not committed
	site              recrawl.Site // how its pages change
	commitsDuringLoad []uint32     // ordinals to remove from busy when the load in flight has arrived
	dueWanted         int          // due URLs of each queue wanted by the load in flight
	bytes             int
}

// View is what the frontier knows of one host at an instant.
type View struct {
	Host     storage.HostID
	Name     string // empty while the host is dormant
	State    string // its host state, by its name in docs/GLOSSARY.md
	AtRest   bool   // it is in none of the states of hosts with work: it has recrawls at most
	Left     int    // URLs that wait
	InFlight int    // requests
	// Requisites are those of Left, as of the last commit, that pages are made of.
	Requisites int
	Address    netip.Addr
	Group      string // of an active host; empty: none, or not known yet

	Until  time.Time     // when the next URL that waits is fetched, if nothing changes; zero: an event decides
	Next   time.Time     // the same; if only recrawls wait, when the next of them is made
	Delay  time.Duration // between requests
	Finish time.Duration // until the last URL is fetched, at the delay in force; 0: none waits, or it is paused

	Reason  politeness.Reason      // why the host itself waits
	Polite  politeness.Explanation // the same in detail, with the limits that it shares; of active hosts
	Active  bool                   // Polite is set; for other hosts the store has it
	Robots  robots.Reason          // why robots.txt holds all its work; ReasonNone: it does not
	Parked  bool                   // it demands to be left alone for more than politeness.ParkedAfter
	Paused  bool                   // by the operator
	Failing bool                   // it is failing
	Wall    wall.Kind              // of the wall that it is behind; KindNone: none
	Budget  bool                   // its budget of pages is spent, or that of its domain
}

// View returns what is known of a host; false if the frontier does not know it.
func (f *Frontier) View(id storage.HostID) (View, bool) {
	h := f.hosts.get(id)
	if h == nil {
		return View{}, false
	}
	var v View
	f.view(h, f.instant(f.clock), &v)
	return v, true
}

// Waiting calls each for every host that has work.
func (f *Frontier) Waiting(now time.Time, each func(View)) {
	t := f.instant(now)
	for h := range f.hosts.all {
		var v View
		if f.view(h, t, &v); v.Left > 0 || !v.AtRest {
			each(v)
		}
	}
}

// Walk calls each for the known hosts of n successive ids, with work or without, and returns the id
// to go on from; 0: that was the last. So all hosts can be read in short steps. What each is given
// is valid until it returns.
func (f *Frontier) Walk(from storage.HostID, n int, now time.Time, each func(*View)) (next storage.HostID) {
	var v View
	t := f.instant(now)
	end := min(int(from)+n, len(f.hosts.hosts))
	for _, h := range f.hosts.hosts[min(int(from), end):end] {
		if h != nil {
			f.view(h, t, &v)
			each(&v)
		}
	}
	if end == len(f.hosts.hosts) {
		return 0
	}
	return storage.HostID(end)
}

// view sets v to the view of a host.
func (s *scheduler) view(h *host, now instant, v *View) {
	*v = View{
		Host: h.id, State: h.state.String(), Left: int(h.backlog.Queued) + int(h.backlog.Due),
		Delay:  cmp.Or(decimal(h.delay), s.politeness(h).Delay), // no request has set h.delay yet
		Reason: h.waitReason, Robots: s.jobs.robotsHold(h), Parked: h.closed.parked(), Failing: h.failingSince != never,
		Paused: h.waitReason == politeness.ReasonPause && h.workAt > s.instant(s.clock), Budget: s.budgets.isOver(h),
		Wall: h.closed.wall(), AtRest: h.state == empty || h.state == recrawlOnly || h.state == waitingToRecrawl,
	}
	v.Requisites = int(s.budgets.requisites[h.id])
	if a := h.active; a != nil {
		v.Name, v.InFlight, v.Address, v.Group = a.name, a.inFlight, a.pinned, a.groupName()
		if a.loaded {
			v.Wall = a.wallKind()
			e := a.polite.Explain(s.clock)
			v.Reason, v.Parked, v.Paused, v.Delay = e.Reason, e.Parked, e.Reason == politeness.ReasonPause, e.Delay
			v.Active, v.Polite = true, s.explainLimits(h, e)
		}
	}
	start := now
	switch h.state {
	case waiting, dormant, woken:
		at, next := s.memory.nextFetch(h)
		if next = max(next, now); at < never {
			start = max(at, now)
			v.Until = s.timeOrZero(start)
		}
		v.Next = s.timeOrZero(next)
	case recrawlOnly:
		v.Next = s.time(max(h.recrawlAt+lead, s.recrawls.account.nextAt, 0))
	case waitingToRecrawl:
		v.Next = s.time(max(h.recrawlAt, s.recrawls.account.nextAt, 0))
	}
	if v.Left > 0 && !v.Paused && start <= never/2 {
		all := float64(start-now) + float64(max(s.budgets.within(h, v.Left)-1, 0))*float64(v.Delay)
		v.Finish = time.Duration(min(all, float64(never/2))) // a million URLs at three hours each is more than fits
	}
}

// nextFetch is when the next URL that waits is fetched from a host that is waiting, and when any page
// is, if nothing changes. The first is never if only recrawls wait; what still counts as waiting then
// is done, and not committed.
func (m *inMemory) nextFetch(h *host) (at, next instant) {
	a := h.active
	if a == nil {
		return h.readyAt + lead, h.readyAt + lead
	}
	polite := m.politeAt(h)
	at, work := m.workAt(h, polite)
	if work && !a.resolved(at) {
		at = max(at, h.nextLookup())
	}
	return at, max(h.readyAt, polite)
}

// robotsHold is why robots.txt holds all the work of a host; ReasonNone if it does not.
func (j *robotsJobs) robotsHold(h *host) robots.Reason {
	switch {
	case h.active != nil && len(h.active.jobs) == 0:
		return h.active.robotsHold()
	case h.active == nil && len(j.dormant[h.id]) == 0:
		return h.robotsReason
	}
	return robots.ReasonNone
}

// explainLimits replaces what explains the wait of an active host where a shared limit holds it for longer.
func (b *base) explainLimits(h *host, e politeness.Explanation) politeness.Explanation {
	if at := h.active.notBefore; at > b.instant(b.clock) && at > b.instant(e.Until) {
		e.Reason, e.Source = politeness.ReasonLimit, politeness.Source{Name: "another crawl of this process"}
		e.Since, e.Until = e.Until, b.time(at)
	}
	for _, l := range h.active.limits {
		if l == nil {
			continue
		}
		ready := l.polite.Ready()
		if busy := h.state == limited && !l.polite.Free(); !busy && (!ready.After(e.Until) || !ready.After(b.clock)) {
			continue
		}
		if ready.Before(b.clock) {
			ready = b.clock
		}
		e.Reason, e.Source = politeness.ReasonLimit, politeness.Source{Name: l.key.String()}
		e.Since, e.Until = e.Until, ready
	}
	return e
}

// timeOrZero is the time of an instant; zero if it is so far away that somebody has to end the wait.
func (c *timescale) timeOrZero(i instant) time.Time {
	if i > never/2 {
		return time.Time{}
	}
	return c.time(i)
}

// decimal converts a number of seconds to the shortest decimal that it stands for: 200 ms, not 200.000003 ms.
func decimal(seconds float32) time.Duration {
	if ms := math.Round(float64(seconds) * 1000); float32(ms/1000) == seconds {
		return time.Duration(ms) * time.Millisecond
	}
	text := strconv.FormatFloat(float64(seconds), 'g', -1, 32)
	exact, _ := strconv.ParseFloat(text, 64) // its error is always nil
	return time.Duration(exact * float64(time.Second)).Round(time.Microsecond)
}
