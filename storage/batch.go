package storage

import (
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
)

// Batch is what one transaction commits. All of it becomes durable together, or nothing.
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

// Empty reports whether there is nothing to commit.
func (b *Batch) Empty() bool {
	return len(b.Found)+len(b.Done)+len(b.Hosts)+len(b.Policies)+len(b.Past)+len(b.Ensure)+len(b.Join)+len(b.Refused)+len(b.Payloads)+len(b.Marks) == 0
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

// Done is the outcome of one URL. Its state is not Queued.
type Done struct {
	Host     HostID
	Ordinal  uint32
	Origin   uint8
	Priority int8   // the URL's own, as its Entry says
	When     States // it counts only if the URL is in one of these by now: for whoever read the store a while ago
	Outcome  Outcome
}

// HostUpdate carries what the frontier knows of a host after a request. The last update of a host
// in a batch counts.
type HostUpdate struct {
	Host       HostID
	Politeness []byte // encoded by the politeness package, at most 255 bytes; nil: unchanged
	Site       []byte // encoded by the revisit package, at most 255 bytes; nil: unchanged
	Requests   uint32 // requests sent since the last update; these add up
	Bytes      uint64 // body bytes received since the last update; these add up
	Cursors    []Cursor
}

// Cursor sets the next ordinal of one origin's queue.
type Cursor struct {
	Origin uint8
	Next   uint32
}

// Policy is the robots record of one origin, as the robots package encodes it.
type Policy struct {
	Origin weburl.Origin
	Record []byte
}

// Fate is the result of an insert: what Commit did with a discovery.
type Fate uint8

// The insert results.
const (
	FateKnown   Fate = iota // it was there before
	FateAdded               // it is there now
	FateRefused             // see Result.Refused
	FateTrapped             // it leads into a trap
)

// Result is what a commit changed.
type Result struct {
	Touched []Touched
	Ensured map[string]HostID
	Added   int // URLs that were new
	Refused int // URLs that could not be taken: the host has too many origins, or a name of no or over 255 bytes
	Trapped int // URLs refused as traps, those of Batch.Refused among them

	TrappedBy map[Trap]int // the same by reason; nil: none

	Changed int64 // bytes of the pages that were written anew: see Portion
}

// Touched is what a commit changed for one host.
type Touched struct {
	Host    HostID
	Tail    uint32 // ordinals below this exist
	Queued  uint32 // URLs never touched and of priority 0
	Due     uint32 // URLs to be tried again, and those never touched of other priorities
	NextDue uint32 // Unix seconds of the earliest of them, 1 for those never touched; 0: none

	Renewals    uint32 // URLs that are to be asked again though nothing is wrong with them
	NextRenewal uint32 // Unix seconds of the earliest of them; 0: none
}

// Portion adapts the batch size: how many items a batch may hold so that its commit changes about
// 32 MiB of pages. The memory and the time of a commit depend on the pages that it changes, and the
// pages for each item vary: more than one where the rows of the items are far apart, as with many
// or very large hosts, and a small part of one where they are close together. The zero value is
// ready for use. A Portion must not be used concurrently.
type Portion struct{ items int }

const (
	mostItems   = 20_000
	firstItems  = 4_000
	leastItems  = 1_000
	targetBytes = 32 << 20
)

// Items returns how many items the next batch may hold, 1,000 to 20,000.
func (p *Portion) Items() int {
	if p.items == 0 {
		return firstItems
	}
	return p.items
}

// Committed records a commit of a number of items whose Result.Changed is changed. The pages of a
// small commit do not predict those of a large one. So the batch size shrinks only after a commit
// that changed too much, and grows only after a large one.
func (p *Portion) Committed(items int, changed int64) {
	if items <= 0 || changed <= 0 {
		return
	}
	now, fits := p.Items(), int(int64(items)*targetBytes/changed)
	switch {
	case changed > targetBytes:
		p.items = max(leastItems, min(now, fits))
	case items >= now/4*3:
		p.items = max(now, min(now+now/8, fits, mostItems))
	}
}
