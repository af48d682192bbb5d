package crawl

import (
	"context"
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
	Again    bool         // one that is known and was given up, denied or excluded is put back into its queue
	Result   InsertResult // set by Add
}

// InsertResult is what became of an Addition.
type InsertResult uint8

// The results.
const (
	InsertNone     InsertResult = iota // Add did not come to it
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

// MaxAdditions is how many additions go into one commit.
const MaxAdditions = 5000

// addition is a group of discoveries on its way through the dispatcher.
type addition struct {
	found  []storage.Found
	again  []storage.Done // known URLs that are put back
	answer chan added     // holds one
}

type added struct {
	results []storage.InsertResult
	err     error
}

// Add gives URLs to the running crawl, and returns when they are on disk. The error is
// ErrNotRunning, ErrDraining, that of the context, or why they could not be committed; what was
// counted till then is committed all the same. Any goroutine may call it.
func (e *Engine) Add(ctx context.Context, urls []Addition) (sum Added, err error) {
	m := e.mailbox.Load()
	switch {
	case m == nil:
		return sum, ErrNotRunning
	case m.draining.Load():
		return sum, ErrDraining
	}
	for len(urls) > 0 {
		n := min(len(urls), MaxAdditions)
		group := urls[:n]
		urls = urls[n:]
		s := sifter{o: &e.o, store: e.store, scope: e.scope.Load()}
		a, err := s.sift(group, nil)
		if err != nil {
			return sum, err
		}
		results, err := m.add(ctx, &a)
		sum = sum.Plus(count(group, results, err == nil))
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// count sets the result of each addition and counts them, given whether they were committed and the
// insert results of those that were discoveries.
func count(group []Addition, results []storage.InsertResult, committed bool) (sum Added) {
	for i := range group {
		a := &group[i]
		switch {
		case a.Result == InsertOutside:
			sum.Outside++
			continue
		case a.Result == InsertOptedOut:
			sum.OptedOut++
			continue
		case !committed:
			a.Result = InsertNone
			continue
		case a.Result == InsertAgain:
			sum.Again++
			continue
		case results[0] == storage.InsertAdded:
			a.Result, sum.Added = InsertAdded, sum.Added+1
		case results[0] == storage.InsertKnown:
			a.Result, sum.Known = InsertKnown, sum.Known+1
		default:
			a.Result, sum.Refused = InsertRefused, sum.Refused+1
		}
		results = results[1:]
	}
	return sum
}

// sifterStore is what sifting reads.
type sifterStore interface {
	Fingerprint(weburl.URL) uint64
	Lookup(weburl.URL) (storage.Head, storage.Host, error)
}

// sifter sorts additions by what happens to them.
type sifter struct {
	o     *Options
	store sifterStore
	scope *frontier.Scope
}

// sift makes discoveries of the additions that are in scope, in the memory of found, and sets the
// result of the others. Known URLs that go back into their queues are no discoveries.
func (s *sifter) sift(urls []Addition, found []storage.Found) (sifted addition, err error) {
	now := s.o.Now()
	sifted.found = found
	taken := make(map[storage.Position]bool) // of those put back: a list may name one twice
	for i := range urls {
		a := &urls[i]
		deep := s.o.Frontier.MaxDepth > 0 && a.Depth > s.o.Frontier.MaxDepth
		u, ok := s.o.admit(s.scope, a.URL)
		if a.Result = InsertNone; deep || !ok {
			if a.Result = InsertOutside; s.scope.Check(u) == frontier.OptedOut {
				a.Result = InsertOptedOut
			}
			continue
		}
		if a.Again {
			known, again, err := s.again(u, now)
			if err != nil {
				return sifted, err
			}
			if at := (storage.Position{Host: known.Host, Ordinal: known.Ordinal}); again && !taken[at] {
				taken[at] = true
				a.Result, sifted.again = InsertAgain, append(sifted.again, known)
				continue
			}
		}
		sifted.found = append(sifted.found, storage.Found{
			URL: u, Fingerprint: s.store.Fingerprint(u), Depth: a.Depth, Priority: a.Priority, At: now,
		})
	}
	return sifted, nil
}

// again returns what puts a URL back that was given up, denied or excluded; false: it is not known,
// or in another state.
func (s *sifter) again(u weburl.URL, now time.Time) (storage.Done, bool, error) {
	head, host, err := s.store.Lookup(u)
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
