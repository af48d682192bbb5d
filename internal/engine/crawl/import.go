package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Import adds a list of URLs of any length to a crawl. It gathers the URLs of a window and commits
// them in the order of their hosts; within a host they keep the order of the list. One goroutine
// may use it, except for Sum.
type Import interface {
	// Add takes a URL. The error is that of a file for URLs that do not fit into memory. The first
	// Add after a Commit begins a new window.
	Add(Addition) error
	// Full reports whether the window is as large or as old as it may be. Commit should come before
	// the next Add.
	Full() bool
	// Gathered returns how many URLs the window has that are not committed.
	Gathered() int
	// Commit commits the window and returns when it is on disk. The error is ErrNotRunning,
	// ErrDraining, that of the context, or why it could not be committed. What Sum counts till then
	// is on disk all the same; the rest of the window is dropped.
	Commit(context.Context) error
	// Results returns the result of each URL of the window, in the order of Add, after its Commit
	// and before the next Add. It is nil unless ImportOptions.Results is set.
	Results() []InsertResult
	// Sum returns what became of all URLs so far. Any goroutine may call it.
	Sum() Added
	// Close drops what is not committed.
	Close() error
}

// ImportOptions say how a list is imported.
type ImportOptions struct {
	Results bool // keep the result of each URL. Windows are then in memory only, to end sooner
}

const (
	// maxWindow is the most URLs of a window.
	maxWindow = 1 << 24
	// maxWindowAge is how long a window of a running crawl gathers: a list may be sent slowly.
	maxWindowAge = 10 * time.Second
	// ageEvery is how many URLs are added between two readings of the clock.
	ageEvery = 1 << 10
)

// listImport is the import of one list.
type listImport struct {
	o     *Options
	scope func() *frontier.Scope
	order listCommitter

	gathered  int // URLs of the window
	began     time.Time
	maxAge    time.Duration // of the window; 0: any
	full      bool
	committed bool // the window is; its results are kept
	keeps     bool
	results   []InsertResult

	mu  sync.Mutex // guards what follows
	sum Added
}

// NewImport begins the import of a list into the running crawl. The error is ErrNotRunning or
// ErrDraining.
func (e *Engine) NewImport(o ImportOptions) (Import, error) {
	if _, err := e.openMailbox(); err != nil {
		return nil, err
	}
	i := newListImport(&e.o, o, e.scope.Load, e.shared.room, e.store, e.commitAddition)
	i.maxAge = maxWindowAge
	return i, nil
}

// openMailbox returns the mailbox of a crawl that takes URLs.
func (c *commands) openMailbox() (*mailbox, error) {
	m := c.mailbox.Load()
	switch {
	case !m.isOpen():
		return nil, ErrNotRunning
	case m.draining.Load():
		return nil, ErrDraining
	}
	return m, nil
}

// commitAddition has the running crawl commit an addition.
func (c *commands) commitAddition(ctx context.Context, a *addition) (added, error) {
	m, err := c.openMailbox()
	if err != nil {
		return added{}, err
	}
	a.user = true
	return m.add(ctx, a)
}

func newListImport(
	o *Options, how ImportOptions, scope func() *frontier.Scope, room *hostsort.Room, store importStore,
	commit func(context.Context, *addition) (added, error),
) *listImport {
	return &listImport{
		o: o, scope: scope, keeps: how.Results,
		order: listCommitter{
			store: store, sorter: room.NewSorter(how.Results), commit: commit,
			retrieve: func(u weburl.URL, now time.Time) (storage.Done, bool, error) { return retrieve(store, u, now) },
		},
	}
}

// newSortRoom returns the room of the lists that are sorted by host. Its files are in the spool.
func newSortRoom(pool *spool.Pool, space *disk.Space) *hostsort.Room {
	o := hostsort.DefaultOptions()
	o.Check = space.Check
	return hostsort.NewRoom(pool, o)
}

// mostPriority is the highest that a list may give a URL: those above are of this program alone.
const mostPriority = 100

// Add implements Import.
func (i *listImport) Add(a Addition) error {
	if i.committed {
		i.results, i.committed = i.results[:0], false
	}
	if i.gathered%ageEvery == 0 {
		i.checkAge()
	}
	index := i.gathered
	i.gathered++
	result := InsertNone
	scope := i.scope()
	from := scope.Seeds().Link(nil, seeds.Ref{}, a.URL)
	u, ok := i.o.admitAddition(scope, &a, from)
	if !ok {
		if result = InsertOutside; scope.Check(u, from) == frontier.OptedOut {
			result = InsertOptedOut
		}
		var one Added
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
	return i.order.take(&listItem{
		Found: storage.Found{
			URL: u, Depth: a.Depth, Priority: min(a.Priority, mostPriority), From: storage.SeedRef(from),
		},
		index: index, again: a.Again, put: a.Put,
	})
}

// checkAge reads the clock for the age of the window.
func (i *listImport) checkAge() {
	now := i.o.Now()
	if i.gathered == 0 {
		i.began = now
	}
	i.full = i.maxAge > 0 && now.Sub(i.began) >= i.maxAge
}

// Full implements Import.
func (i *listImport) Full() bool { return i.full || i.gathered >= maxWindow || i.order.sorter.Full() }

// Gathered implements Import.
func (i *listImport) Gathered() int { return i.gathered }

// Commit implements Import.
func (i *listImport) Commit(ctx context.Context) error {
	i.gathered, i.full, i.committed = 0, false, true
	err := i.order.commitAll(ctx, storage.Found{At: i.o.Now()}, func(p *hostBatch) {
		var sum Added
		note := func(index int, r InsertResult) {
			sum.Count(r)
			if i.keeps {
				i.results[index] = r
			}
		}
		for n, index := range p.indexes {
			note(index, insertResultOf(p.added.results[n]))
		}
		for _, index := range p.back {
			note(index, InsertAgain)
		}
		i.count(sum)
	})
	if err != nil {
		return fmt.Errorf("add URLs: %w", err)
	}
	return nil
}

func (i *listImport) count(more Added) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sum = i.sum.Plus(more)
}

// Results implements Import.
func (i *listImport) Results() []InsertResult { return i.results }

// Sum implements Import.
func (i *listImport) Sum() Added {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sum
}

// Close implements Import.
func (i *listImport) Close() error { return i.order.reset() }

// Importer adds URLs to the store of a crawl that does not run.
type Importer struct {
	*offline
	o     *Options
	scope *frontier.Scope
	room  *hostsort.Room
}

// OpenImporter opens the store in o.DataDir, and makes one if there is none. The scope is that of
// the seeds given and of those that earlier runs have recorded. The errors of storage.Open come
// through.
func OpenImporter(o Options, seeds []Seed) (*Importer, error) {
	f, err := openOffline(&o)
	if err != nil {
		return nil, err
	}
	initial, err := newInitialScope(f.store, &o, seeds)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	pool, err := spool.Open(o.Spool)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Importer{offline: f, o: &o, scope: initial.scope, room: newSortRoom(pool, f.space)}, nil
}

// NewImport begins the import of a list. With too little space on the disk, the error of its Commit
// is storage.ErrNoSpace.
func (i *Importer) NewImport(o ImportOptions) Import {
	return newListImport(i.o, o, func() *frontier.Scope { return i.scope }, i.room, i.store, i.commitAddition)
}

// commitAddition commits an addition in one transaction. It does not say how long that took: nobody waits for the
// database meanwhile, so bytes alone bound the batches.
func (i *Importer) commitAddition(ctx context.Context, a *addition) (added, error) {
	if err := ctx.Err(); err != nil {
		return added{}, err
	}
	b := storage.Batch{Found: a.found, InsertResults: make([]storage.InsertResult, len(a.found)), Done: a.again}
	result, err := i.commit(&b)
	return added{results: b.InsertResults, changed: result.Changed}, err
}
