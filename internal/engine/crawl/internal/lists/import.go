package lists

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/inserts"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Addition is a URL that somebody gives to a crawl, as if a page had led there.
type Addition struct {
	URL      weburl.URL
	Depth    uint16 // links from a seed
	Priority int8
	Again    bool      // one that is known and was given up, denied or excluded is put back into its queue
	Put      *Imported // what another frontier knows of it; nil: nothing
}

// Imported is what another frontier knows of a URL.
type Imported struct {
	Created  time.Time // when it was discovered; zero: now
	Metadata []byte    // as storage.Metadata.Encode returns them
	// Known says that it was fetched, or that somebody decided when to fetch it: then Due and Metadata
	// replace what is known of it here.
	Known bool
	Due   time.Time // when it is fetched; zero: never again
}

const (
	// maxWindow is the most URLs of a window.
	maxWindow = 1 << 24
	// ageEvery is how many URLs are added between two readings of the clock.
	ageEvery = 1 << 10
)

// Rules are those for the URLs of lists.
type Rules struct {
	URLs     weburl.Rules
	MaxDepth uint16
}

// Import is a crawl.Import: it gathers the URLs of a window, and commits them in the order of their hosts.
type Import struct {
	rules Rules
	scope func() *frontier.Scope
	now   func() time.Time
	order Committer

	gathered  int // URLs of the window
	began     time.Time
	maxAge    time.Duration // of the window; 0: any
	full      bool
	committed bool // the window is; its results are kept
	keeps     bool
	results   []inserts.Result

	mu  sync.Mutex // guards what follows
	sum inserts.Counts
}

// NewImport begins the import of a list, whose windows gather for so long; 0: any time. With results it keeps the
// result of each URL, and its windows are in memory only, to end sooner.
func NewImport(
	rules Rules, results bool, maxAge time.Duration, scope func() *frontier.Scope, now func() time.Time,
	room *hostsort.Workspace, store Store, commit func(context.Context, Rows) (Added, error),
) *Import {
	return &Import{
		rules: rules, scope: scope, now: now, keeps: results, maxAge: maxAge,
		order: Committer{
			Store: store, Sorter: room.NewSorter(results), Commit: commit,
			Retrieve: func(u weburl.URL, now time.Time) (storage.Done, bool, error) { return retrieve(store, u, now) },
		},
	}
}

// mostPriority is the highest that a list may give a URL: those above are of this program alone.
const mostPriority = 100

// Add is part of crawl.Import.
func (i *Import) Add(a Addition) error {
	if i.committed {
		i.results, i.committed = i.results[:0], false
	}
	if i.gathered%ageEvery == 0 {
		i.checkAge()
	}
	index := i.gathered
	i.gathered++
	result := inserts.None
	scope := i.scope()
	from := scope.Seeds().Link(nil, seeds.Ref{}, a.URL)
	u, ok := i.rules.Admit(scope, &a, from)
	if !ok {
		if result = inserts.Outside; scope.Check(u, from) == frontier.OptedOut {
			result = inserts.OptedOut
		}
		var one inserts.Counts
		one.Count(result)
		i.count(one)
	}
	if i.keeps {
		i.results = append(i.results, result)
	} else {
		index = 0 // its result is not kept
	}
	if !ok {
		return nil
	}
	return i.order.Take(&Item{
		Found: storage.Found{
			URL: u, Depth: a.Depth, Priority: min(a.Priority, mostPriority), From: storage.SeedRef(from),
		},
		Index: index, Again: a.Again, Put: a.Put,
	})
}

// checkAge reads the clock for the age of the window.
func (i *Import) checkAge() {
	now := i.now()
	if i.gathered == 0 {
		i.began = now
	}
	i.full = i.maxAge > 0 && now.Sub(i.began) >= i.maxAge
}

// Full is part of crawl.Import.
func (i *Import) Full() bool { return i.full || i.gathered >= maxWindow || i.order.Sorter.Full() }

// Gathered is part of crawl.Import.
func (i *Import) Gathered() int { return i.gathered }

// Commit is part of crawl.Import.
func (i *Import) Commit(ctx context.Context) error {
	i.gathered, i.full, i.committed = 0, false, true
	err := i.order.CommitAll(ctx, storage.Found{At: i.now()}, func(p *Batch) {
		var sum inserts.Counts
		note := func(index int, r inserts.Result) {
			sum.Count(r)
			if i.keeps {
				i.results[index] = r
			}
		}
		for n, index := range p.Indexes {
			note(index, insertResultOf(p.Added.Results[n]))
		}
		for _, index := range p.Back {
			note(index, inserts.Again)
		}
		i.count(sum)
	})
	if err != nil {
		return fmt.Errorf("add URLs: %w", err)
	}
	return nil
}

func (i *Import) count(more inserts.Counts) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sum = i.sum.Plus(more)
}

// Results is part of crawl.Import.
func (i *Import) Results() []inserts.Result { return i.results }

// Sum is part of crawl.Import.
func (i *Import) Sum() inserts.Counts {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sum
}

// Close is part of crawl.Import.
func (i *Import) Close() error { return i.order.Reset() }

// insertResultOf returns the result of an addition that was a discovery.
func insertResultOf(r storage.InsertResult) inserts.Result {
	switch r {
	case storage.InsertAdded, storage.InsertRouted:
		return inserts.Added
	case storage.InsertKnown:
		return inserts.Known
	}
	return inserts.Refused
}

// Store is what an import reads.
type Store interface {
	Fingerprint(weburl.URL) uint64
	Lookup(weburl.URL) (storage.Head, storage.Host, error)
}

// Admit applies the rules for discovered URLs to an addition that was reached by from. It returns false if it
// does not belong to the crawl.
func (r *Rules) Admit(scope *frontier.Scope, a *Addition, from seeds.Ref) (weburl.URL, bool) {
	u, short := r.URLs.Apply(a.URL)
	if a.Depth > scope.Seeds().Of(u, from).Depth(r.MaxDepth) {
		return a.URL, false
	}
	return u, short && scope.Check(u, from) == frontier.InScope
}

// retrieve returns what puts a URL back that was given up, denied or excluded; false: it is not
// known, or in another state.
func retrieve(store Store, u weburl.URL, now time.Time) (storage.Done, bool, error) {
	head, host, err := store.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Done{}, false, nil
	}
	if err != nil || !storage.In(storage.Failed, storage.Denied, storage.Excluded).Has(head.Last.State) {
		return storage.Done{}, false, err
	}
	return sweep.PutBack(host.ID, &head, now), true, nil
}
