package frontier

import (
	"net/netip"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/recrawl"
	"github.com/amble-crawler/amble/internal/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// host is what is kept of every host that has, or had, work in this process.
type host struct {
	id            storage.HostID
	latency       uint16  // milliseconds, a moving average over its requests; 0: there was none
	quickNeeded   uint8   // quick responses until it is quick again
	unanswered    uint8   // requests in a row that took long and had no response
	readyAt       instant // key in the heap
	ready         instant // when politeness allows a request; not updated while active
	workAt        instant // of a dormant host: when its work may be done; always: nothing holds it
	failingSince  instant // never: it is not failing
	queued        uint32  // URLs, as of the last commit
	due           uint32  // URLs, as of the last commit
	nextDue       uint32  // Unix seconds, as of the last commit
	fetched       uint32  // pages, committed or in flight
	domain        uint32  // index of the budget of its registrable domain; 0: unknown, or there are no such budgets
	delay         float32 // last known seconds between requests
	state         state
	waitReason    politeness.Reason // of a dormant host: what decided ready
	robotsReason  robots.Reason     // of a dormant host: why robots.txt holds all its work
	absent        uint8             // responses in a row that its name does not exist
	lookup        lookupResult      // of the last lookup of its name
	addressTurn   uint8             // selects one of its addresses; counts requests without a response
	deferred      uint8             // one more than the index of the origin that deferredQueue may return; 0: none
	inOverBudget  bool              // among the hosts of its domain that are over budget
	closed        closed            // of a dormant host: the wall that it is behind, and whether it is parked
	answers       uint8             // to its requests, up to enoughAnswers
	override      uint16            // one more than the index of its override; 0: it has none
	noLookupUntil uint32            // seconds since the epoch; another lookup of its name is of no use before
	active        *active

	recrawlAt    instant // key in the heap of recrawls
	recrawlIndex int32
	recrawls     uint32 // pages, as of the last commit
	nextRecrawl  uint32 // Unix seconds, as of the last commit
	recrawlList  uint8

	lane        lane // as of the last call of schedule
	heapLane    lane // of the heap that it is in
	recrawlLane lane // of the heap of recrawls that it is in
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
	failUntil instant // URLs fail until then, without another lookup
	loadAfter instant // no load before; always: at once

	inFlight int
	served   int    // requests since it became active
	tail     uint32 // all ordinals are below it

	loading         bool  // its queues are being read
	loaded          bool  // they were read once
	lookingUp       bool  // it waits for a lookup of its name, or the lookup is leased
	counted         bool  // among the active hosts of its lane
	hasSlot         bool  // it is counted as a request of its lane already
	sinceForeignJob uint8 // its own requests since the last robots job of another host, up to jobShare
	matching        uint8 // Match leases in flight
	dueMissed       bool  // more due URLs were committed during a load
	optedOut        bool  // one of the queues did
	failReason      storage.Reason

	dueRead      uint32 // Unix seconds; what was due by then is in memory or busy
	recrawlsRead uint32 // Unix seconds; recrawls that were due by then are in memory or busy
	read         uint32 // tail as of the last load
	calmTail     uint32 // tail when no wall was suspected last

	wall              wall.State   // what its responses say about a wall
	uncommitted       int          // host updates in a batch that is not committed
	site              recrawl.Site // how its pages change
	commitsDuringLoad []uint32     // ordinals to remove from busy when the load in flight has arrived
	dueWanted         int          // due URLs of each queue wanted by the load in flight
	bytes             int
}
