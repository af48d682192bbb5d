package storage

import (
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage/internal/names"
	"github.com/amble-crawler/amble/storage/internal/sizer"
)

// Batch is what one transaction commits. All of it becomes durable together, or nothing.
type Batch struct {
	Found []Found
	// If InsertResults is not nil, it has the length of Found, and Commit sets InsertResults[i] to
	// the insert result of Found[i].
	InsertResults []InsertResult
	Done          []Done
	Hosts         []HostUpdate
	Policies      []Policy
	RobotsHistory []Policy  // earlier robots.txt files, as the robots package encodes them
	Ensure        []string  // host names that need an id though they have no URL yet
	Seeds         []SeedRow // the last one of a URL counts
	Refused       []Refused // URLs that workers found to lead into traps
	// Payloads are bodies that the output holds from this commit on. Their URLs are in the store or
	// in this batch. The last one of a host and digest counts.
	Payloads []Payload
	Purges   []Purge           // URLs that are deleted, when all else of the batch is done
	Marks    map[string][]byte // opaque positions of files and streams next to the database; nil removes one
}

// Empty reports whether there is nothing to commit.
func (b *Batch) Empty() bool {
	return len(b.Found)+len(b.Done)+len(b.Hosts)+len(b.Policies)+len(b.RobotsHistory)+len(b.Purges) == 0 &&
		len(b.Ensure)+len(b.Seeds)+len(b.Refused)+len(b.Payloads)+len(b.Marks) == 0
}

// SeedRow is a seed as the engine encodes it.
type SeedRow struct {
	URL   string // in its canonical form
	Value []byte // empty: no more is known of it than that it widens the scope; nil: the row is removed
}

// Found is a discovery: a URL for the store.
type Found struct {
	URL weburl.URL
	// Fingerprint is Store.Fingerprint of URL, or of the URL without session ids if it has some.
	// The caller computes it, so that many goroutines share the work.
	Fingerprint uint64
	Stripped    string // path and query without session ids; empty: it has none
	Depth       uint16
	Redirects   uint8
	Seed        bool
	Sitemap     bool      // not a page: something calls it a sitemap
	Frequency   Frequency // from a sitemap
	Priority    int8      // URLs of a host with a higher one come first; 0: in the order of discovery
	Room        uint8     // as in an Entry
	ViaHost     HostID
	ViaOrdinal  uint32
	At          time.Time
	From        SeedRef
	Listed      bool      // a sitemap or feed lists it
	Modified    time.Time // time of its last change, from a sitemap or feed; zero: unknown
	Metadata    []byte    // Metadata.Encode, for a new URL; nil: none
	// Outcome is what the URL becomes, whether it is known or new, and Metadata replaces its
	// metadata. What is remembered of the page itself stays. Nil: a known URL stays as it is.
	Outcome *Outcome
}

// Done is the outcome of one URL. Its state is not Queued.
type Done struct {
	Host     HostID
	Ordinal  uint32
	Origin   uint8
	Priority int8   // as in the URL's Entry
	When     States // the outcome counts only if the URL is in one of these, for callers that read the store earlier
	Outcome  Outcome
}

// HostUpdate carries what the frontier knows of a host after a request. The last update of a host in a batch counts.
type HostUpdate struct {
	Host       HostID
	Politeness []byte // encoded by the politeness package, at most 255 bytes; nil: unchanged
	Site       []byte // encoded by internal/rules/recrawl, at most 255 bytes; nil: unchanged
	Wall       []byte // encoded by internal/rules/wall, at most 255 bytes; nil: unchanged
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

// InsertResult is the result of an insert: what Commit did with a discovery.
type InsertResult uint8

// The insert results.
const (
	InsertKnown   InsertResult = iota // the store had it before
	InsertAdded                       // it is new
	InsertRefused                     // see Result.Refused
	InsertTrapped                     // it leads into a trap
	InsertRouted                      // it belongs to another shard, which has got it; Commit never says so
)

// Result is what a commit changed.
type Result struct {
	Hosts   []HostChange
	Ensured map[string]HostID
	Added   int // new URLs
	Refused int // URLs refused because the host has too many origins, or a name of 0 or over 255 bytes
	Trapped int // URLs refused as traps, including Batch.Refused

	// Unmet are the URLs with an outcome that did not count, because they were in none of the states of Done.When.
	Unmet []Position

	// Set are the URLs that were known before and have the outcome of a Found now.
	Set []Position

	TrappedBy map[Trap]int // Trapped by reason; nil: none

	Changed int64 // bytes of the pages that the commit wrote: see BatchSizer
}

// HostChange is what a commit changed for one host.
type HostChange struct {
	Host HostID
	Tail uint32 // ordinals below this exist
	Backlog
	URLs      uint32 // of the host, in all states
	Waiting   uint32 // requisites that are queued or retrying
	Completed uint32 // those that are neither queued nor retrying
	PutDue    uint32 // Unix seconds of the earliest time that the Outcome of a Found made a URL due at; 0: none
}

// BatchSizer adapts the batch size: how many items a batch may hold.
type BatchSizer = sizer.Sizer

// IsHostName reports whether a row can hold a host's name: it has 1 to 255 bytes. Other hosts are refused.
func IsHostName(name string) bool { return names.Valid(name) }

// Purge deletes URLs of a host, in two steps that the caller makes one after the other, each in as
// many commits as it likes. The first step deletes the URLs themselves: they can be discovered as
// new ones from its commit on. The second step removes what is left of them in rows that are in no
// order. What is left does no harm, so the second step may come at any time.
//
// What the store knows of the host itself stays. Outcomes of deleted URLs that are committed later
// change nothing.
type Purge struct {
	Host HostID
	// Below is the ordinal below which URLs are deleted. The commit takes time and memory by the
	// number of these URLs: MostPurged at a time is a good choice. 0: none.
	Below uint32
	// From and To are the first and the last key of the rows of fingerprints and payloads that lose
	// what belongs to deleted URLs, as Store.PurgeRange returns them. Both 0: none.
	From, To uint64
}
