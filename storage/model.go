package storage

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
)

// HostID names a host in this store. Ids are dense, begin at 1 and are never
// used again.
type HostID uint32

// NoHost is the zero HostID; no host has it.
const NoHost HostID = 0

// State is where a URL stands. The numbers are stored and therefore stable.
type State uint8

// The states of a URL. Queued is the state of a URL that was never touched.
const (
	Queued     State = 0 // waiting in its host's queue
	Fetched    State = 1 // answered with content, or with 304
	Redirected State = 2 // answered with a redirect; the target is a URL of its own
	Failed     State = 3 // given up, with the reason
	Denied     State = 4 // robots rules forbid it; asked about again when they change
	Excluded   State = 5 // outside the scope in force when its turn came
	Retrying   State = 6 // failed for now; has a due time
	numStates        = 7
)

var stateNames = [numStates]string{"queued", "fetched", "redirected", "failed", "denied", "excluded", "retrying"}

// String returns the state's name as the commands print it.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState is the inverse of State.String.
func ParseState(name string) (State, error) {
	for i, n := range stateNames {
		if n == name {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a state (allowed: queued, fetched, redirected, failed, denied, excluded, retrying)", name)
}

// States is a set of states. The zero value stands for all of them.
type States uint8

// In is the set of some states.
func In(states ...State) (set States) {
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

// Has reports whether a state is in the set.
func (set States) Has(s State) bool { return set == 0 || set&(1<<s) != 0 }

// Reason is why a URL is in its state. The numbers are stored and therefore
// stable: those below ReasonFetch are named here, those from ReasonFetch on
// are ReasonFetch plus the number of a fetch error kind.
type Reason uint8

// The reasons that are not fetch errors.
const (
	ReasonNone      Reason = 0
	ReasonStatus    Reason = 1 // the HTTP status says it
	ReasonRobots    Reason = 2 // a robots rule; Outcome.Line is its line
	ReasonScope     Reason = 3
	ReasonDepth     Reason = 4
	ReasonRedirects Reason = 5 // more redirects in a row than allowed
	ReasonLocation  Reason = 6 // a redirect without a usable target
	ReasonOperator  Reason = 7 // whoever runs the crawl wants it so
	ReasonLoop      Reason = 8 // a redirect to itself
	ReasonCrash     Reason = 9 // the crawler itself failed at the response
	ReasonFetch     Reason = 64
)

// Frequency is how often a page changes, as a sitemap says. The numbers are stored and therefore stable: 0 not said, and then the
// words of sitemaps.org from 1 always to 7 never. It has three bits.
type Frequency uint8

// String returns the word of sitemaps.org, "" where nothing is said.
func (f Frequency) String() string {
	return [...]string{"", "always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}[f&7]
}

// Every is the time between changes that is meant, 0 where nothing is said. Always is taken for hourly, and never for a few years.
func (f Frequency) Every() time.Duration {
	const day = 24 * time.Hour
	return [...]time.Duration{0, time.Hour, time.Hour, day, 7 * day, 30 * day, 365 * day, 3 * 365 * day}[f&7]
}

// Entry is one URL of a host's queue.
type Entry struct {
	Ordinal    uint32
	Origin     uint8  // index into the host's origins
	RequestURI string // path and query
	Stripped   string // the same without its session ids; empty: it has none
	Depth      uint16 // links from a seed
	Redirects  uint8  // redirects followed in a row to get here
	Seed       bool   // a seed, or reached from one by redirects only
	Sitemap    bool   // not a page: somebody called it a sitemap
	Frequency  Frequency
	Priority   int8
	ViaHost    HostID // the page it was found on; NoHost: none
	ViaOrdinal uint32
	FirstSeen  time.Time // whole seconds
}

// Outcome is what became of a URL the last time it was touched.
type Outcome struct {
	State    State
	Reason   Reason
	Status   uint16 // HTTP status; 0: none
	Attempts uint8  // failed attempts in a row
	At       time.Time
	Due      time.Time // when it is to be asked next: again, in state Retrying, else as a renewal; zero: not planned
	Bytes    uint64    // decoded body bytes
	Digest   uint64    // first 8 bytes of the SHA-256 of the body; 0: none
	Line     uint32    // the line of robots.txt that decided
	ETag     string    // at most 255 bytes; longer ones are not kept
	Modified string    // Last-Modified as sent, at most 255 bytes
	History  [8]byte   // change history, encoded by the revisit package
	Simhash  uint64    // of the text of the page; 0: none
}

// Found is a discovered URL on its way into the store.
type Found struct {
	URL         weburl.URL
	Fingerprint uint64 // Store.Fingerprint(URL), computed by the caller so that many goroutines share the work; of the URL without session ids where it has some
	Stripped    string // path and query without session ids; empty: it has none
	Depth       uint16
	Redirects   uint8
	Seed        bool
	Sitemap     bool      // not a page: somebody calls it a sitemap
	Frequency   Frequency // as a sitemap says
	Priority    int8      // of its host's URLs those of a higher one come first; 0: in the order of discovery
	ViaHost     HostID
	ViaOrdinal  uint32
	At          time.Time
	Listed      bool      // a sitemap or feed names it
	Modified    time.Time // when it last changed, as a sitemap or feed says; zero: nobody said
}

// Done is the outcome of one URL; any state but Queued.
type Done struct {
	Host     HostID
	Ordinal  uint32
	Origin   uint8
	Priority int8   // the URL's own, as its Entry says
	When     States // it counts only if the URL is in one of these by now: for whoever read the store a while ago
	Outcome  Outcome
}

// HostUpdate carries what the frontier knows of a host after a request.
// In a batch the last one of a host counts.
type HostUpdate struct {
	Host       HostID
	Politeness []byte // encoded by the politeness package, at most 255 bytes; nil: unchanged
	Site       []byte // encoded by the revisit package, at most 255 bytes; nil: unchanged
	Requests   uint32 // requests sent since the last update; these add up
	Bytes      uint64 // body bytes received since the last update; these add up
	Cursors    []Cursor
}

// Cursor is the next ordinal of one origin's queue.
type Cursor struct {
	Origin uint8
	Next   uint32
}

// Policy is the robots record of one origin, encoded by the robots package.
type Policy struct {
	Origin weburl.Origin
	Record []byte
}

// Batch is what one transaction commits. Everything in it becomes durable
// together or not at all.
type Batch struct {
	Found    []Found
	Fates    []Fate // what became of each of Found, filled in by Commit; as long as that, or nil: not wanted
	Done     []Done
	Hosts    []HostUpdate
	Policies []Policy
	Past     []Policy          // what was stored for their origins before, as the robots package encodes it; each takes the place of the one before
	Ensure   []string          // host names that need an id though they have no URL yet
	Join     []string          // URLs that join the seeds: where redirects of seeds led
	Refused  []Refused         // URLs that workers found to lead into traps
	Payloads []Payload         // bodies that the output holds from this commit on, of URLs that the store has by then; the last one of a host and digest counts
	Marks    map[string][]byte // opaque positions of files and streams beside the database; nil removes one
}

// Fate is what became of a discovery.
type Fate uint8

// The fates.
const (
	FateKnown   Fate = iota // it was there before
	FateAdded               // it is there now
	FateRefused             // see Result.Refused
	FateTrapped             // it leads into a trap
)

// Empty reports whether there is nothing to commit.
func (b *Batch) Empty() bool {
	return len(b.Found)+len(b.Done)+len(b.Hosts)+len(b.Policies)+len(b.Past)+len(b.Ensure)+len(b.Join)+len(b.Refused)+len(b.Payloads)+len(b.Marks) == 0
}

// Touched tells the frontier what a commit changed for one host.
type Touched struct {
	Host    HostID
	Tail    uint32 // ordinals below this exist
	Queued  uint32 // URLs never touched and of priority 0
	Due     uint32 // URLs to be tried again, and those never touched of other priorities
	NextDue uint32 // Unix seconds of the earliest of them, 1 for those never touched; 0: none

	Renewals    uint32 // URLs that are to be asked again though nothing is wrong with them
	NextRenewal uint32 // Unix seconds of the earliest of them; 0: none
}

// Result is what a commit did.
type Result struct {
	Touched []Touched
	Ensured map[string]HostID
	Added   int // URLs that were new
	Refused int // URLs that could not be taken: the host has too many origins, or a name of no or over 255 bytes
	Trapped int // URLs refused as traps, those of Batch.Refused among them

	TrappedBy map[Trap]int // the same by reason; nil: none

	Changed int64 // bytes of the pages that were written anew: see Portion
}

// Counters count over the whole store. They are part of every commit.
type Counters struct {
	Hosts    uint64
	URLs     uint64
	States   [numStates]uint64
	Requests uint64
	Bytes    uint64
	Policies uint64
}

// Any reports whether there are URLs in some states.
func (c Counters) Any(states States) bool {
	for s, n := range c.States {
		if n > 0 && states.Has(State(s)) {
			return true
		}
	}
	return false
}

// Of returns the count of URLs in the given state.
func (c Counters) Of(s State) uint64 { return c.States[s] }
