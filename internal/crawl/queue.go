package crawl

import (
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Put is a URL that a client of the frontier decides about.
type Put struct {
	URL      weburl.URL
	Known    bool      // the client decides when it is due: an upsert. false: discovered, new URLs only
	Due      time.Time // of a known URL; the zero time: never again. The past: due now, earlier first
	Metadata storage.Metadata
	Fetcher  string // a Known put ends the remote lease of the URL, whoever holds it, as a report does
}

// PutResult is what became of a Put.
type PutResult uint8

// The results of puts.
const (
	PutAccepted PutResult = iota
	PutKnown              // discovered and known already
	PutOutside            // out of scope
	PutOptedOut           // an opt-out covers it
	PutInvalid            // its metadata are too long, or the URL leads into a trap
)

// QueueSettings are those of one host, kept in the database.
type QueueSettings struct {
	BlockedUntil time.Time      // zero: not blocked
	Delay        *time.Duration // nil: that of the crawl
	Limit        uint64         // completed URLs after which no more is handed out; 0: none
}

// QueueStats are numbers of a queue, or of all.
type QueueStats struct{ Queued, InProcess, Completed, Queues, ActiveQueues uint64 }

// QueueQuery selects a part of the list of queues.
type QueueQuery struct {
	Start, Size     int
	IncludeInactive bool
}

// URLStatus is the state of a URL for a client of the frontier.
type URLStatus struct {
	Completed    bool
	Due, Created time.Time
	Metadata     storage.Metadata
}

// URLQuery selects URLs.
type URLQuery struct {
	Host        string
	Start, Size int
	Filter      string // substring of the URL
	IgnoreCase  bool
}
