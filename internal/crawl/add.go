package crawl

import (
	"errors"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Addition is a URL that somebody gives to a crawl, as if a page had led there.
type Addition struct {
	URL      weburl.URL
	Depth    uint16 // links from a seed
	Priority int8
	Again    bool // one that is known and was given up, denied or excluded is put back into its queue
}

// InsertResult is what became of an Addition.
type InsertResult uint8

// The results.
const (
	InsertNone     InsertResult = iota // no commit has come to it
	InsertAdded                        // it is new, and on disk
	InsertKnown                        // it was there before
	InsertOutside                      // it is not in scope, or deeper than crawl.max_depth
	InsertRefused                      // the host has too many origins, or the URL leads into a trap
	InsertAgain                        // it was there before, and is put back into its queue
	InsertOptedOut                     // an opt-out covers it
)

// String names it, as Added does.
func (r InsertResult) String() string {
	return [...]string{"", "added", "known", "outside", "refused", "again", "opted_out"}[r]
}

// insertResultOf returns the result of an addition that was a discovery.
func insertResultOf(r storage.InsertResult) InsertResult {
	switch r {
	case storage.InsertAdded:
		return InsertAdded
	case storage.InsertKnown:
		return InsertKnown
	}
	return InsertRefused
}

// Added is what became of additions. Each of them is counted once.
type Added struct {
	Added   int `json:"added"`           // new, and on disk
	Known   int `json:"known"`           // there before
	Outside int `json:"outside"`         // not in scope, or deeper than crawl.max_depth
	Refused int `json:"refused"`         // the host has too many origins, or they lead into traps
	Again   int `json:"again,omitempty"` // there before, and put back into their queues

	OptedOut int `json:"opted_out,omitempty"` // an opt-out covers them
}

// Plus is the sum.
func (a Added) Plus(b Added) Added {
	return Added{a.Added + b.Added, a.Known + b.Known, a.Outside + b.Outside, a.Refused + b.Refused, a.Again + b.Again,
		a.OptedOut + b.OptedOut}
}

// count counts one result.
func (a *Added) count(r InsertResult) {
	switch r {
	case InsertAdded:
		a.Added++
	case InsertKnown:
		a.Known++
	case InsertOutside:
		a.Outside++
	case InsertRefused:
		a.Refused++
	case InsertAgain:
		a.Again++
	case InsertOptedOut:
		a.OptedOut++
	}
}

// addition is a group of discoveries on its way through the dispatcher.
type addition struct {
	found  []storage.Found
	again  []storage.Done // known URLs that are put back
	answer chan added     // holds one
}

// added is what the commit of an addition did.
type added struct {
	results []storage.InsertResult // of each discovery
	changed int64                  // see storage.Result
	took    time.Duration
	err     error
}

// importStore is what an import reads.
type importStore interface {
	fingerprinter
	Lookup(weburl.URL) (storage.Head, storage.Host, error)
}

// admitAddition applies the rules for discovered URLs to an addition. It returns false if it does
// not belong to the crawl.
func (o *Options) admitAddition(scope *frontier.Scope, a *Addition) (weburl.URL, bool) {
	if o.Frontier.MaxDepth > 0 && a.Depth > o.Frontier.MaxDepth {
		return a.URL, false
	}
	return o.admit(scope, a.URL)
}

// retrieve returns what puts a URL back that was given up, denied or excluded; false: it is not
// known, or in another state.
func retrieve(store importStore, u weburl.URL, now time.Time) (storage.Done, bool, error) {
	head, host, err := store.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Done{}, false, nil
	}
	if err != nil || !storage.In(storage.Failed, storage.Denied, storage.Excluded).Has(head.Last.State) {
		return storage.Done{}, false, err
	}
	return putBack(host.ID, &head, now), true, nil
}

// admit applies the rules for discovered URLs, and reports whether the result belongs to the crawl.
func (o *Options) admit(scope *frontier.Scope, found weburl.URL) (weburl.URL, bool) {
	u, short := o.URLs.Apply(found)
	return u, short && scope.Check(u) == frontier.InScope
}
