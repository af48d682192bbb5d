package frontier

import (
	"net/netip"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// host is what is kept of every host that has, or had, work in this process.
type host struct {
	id            storage.HostID
	latency       uint16  // milliseconds that its requests take on average, the last ones above all; 0: it was never asked
	quickNeeded   uint8   // quick answers that it takes until it is quick again
	unanswered    uint8   // requests in a row that brought no answer for long
	readyAt       instant // order in the heap
	ready         instant // when politeness lets it be asked; not kept up while active
	workAt        instant // when what it had to do when it went dormant may be done; always: nothing holds it
	failingSince  instant // since when it cannot be asked; never: all is well
	queued        uint32  // as of the last commit
	due           uint32  // as of the last commit
	nextDue       uint32  // Unix seconds, as of the last commit
	fetched       uint32  // pages, as of the last commit and with those under way since
	domain        uint32  // index of its registrable domain's budget; 0: not known, or there are no such budgets
	delay         float32 // seconds between requests, when last known
	state         state
	waitReason    politeness.Reason // the sign that decided ready, when it went dormant
	robotsReason  robots.Reason     // why robots.txt held all of it, when it went dormant
	absent        uint8             // answers in a row that the name does not exist
	lookup        lookupResult      // what came of looking up its name
	addressTurn   uint8             // which of its addresses is asked; another one when one does not answer
	deferred      uint8             // one more than the index of the origin whose robots.txt was asked for last, if no page was since; else 0
	inDomain      bool              // among the shelved hosts of its domain
	parked        bool              // it asked to be left alone for very long, when it went dormant
	answers       uint8             // to its requests, up to probation
	override      uint16            // one more than the index of its override; 0: it has none
	noLookupUntil uint32            // seconds since the epoch; until then there is no use in another lookup of its name
	active        *active

	recrawlAt    instant // order in the heap of renewals it is in
	recrawlIndex int32
	recrawls     uint32 // as of the last commit
	nextRecrawl  uint32 // Unix seconds, as of the last commit
	recrawlList  uint8

	lane        lane // as of when it was put where it is
	heapLane    lane // of the heap that it is in
	recrawlLane lane // of the heap of renewals that it is in
}

// active is what is kept of a host while it is active. Fields of one size stand together: there are many hosts.
type active struct {
	name              string
	polite            *politeness.Host
	queues            []originQueue
	jobs              []pendingJob         // for the robots.txt of origins, its own first
	busy              queue.Ordinals       // leased, or settled and not yet committed
	commitsDuringLoad []uint32             // busy no more once the load under way has come, which may be older
	limits            [limitClasses]*limit // nil: it has none of that class, or its address is not known
	site              revisit.Site         // what is remembered of how its pages change
	pinned            netip.Addr

	expires   instant // of the address
	failUntil instant // until then its URLs are given up without asking for its address again
	loadAfter instant // no load before; always: at once

	inFlight    int
	served      int // requests since it became active
	uncommitted int // host updates handed over and not yet committed
	dueWanted   int // due URLs of each queue that the load under way may bring
	bytes       int

	tail         uint32 // ordinals below exist
	read         uint32 // tail as of the last load
	dueRead      uint32 // Unix seconds; what was due by then is read or busy
	recrawlsRead uint32 // Unix seconds; renewals that were due by then are read or busy

	loading         bool
	matching        uint8 // match leases out
	dueMissed       bool  // more due URLs came while a load was under way
	lookingUp       bool  // in line for a lookup of its name, or leased as one
	failReason      storage.Reason
	counted         bool  // among the active hosts of its lane
	hasSlot         bool  // it counts to the requests of its lane already
	sinceForeignJob uint8 // requests of its own since the last job of another host; more than jobShare do not count
}
