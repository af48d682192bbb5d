package crawl

import (
	"context"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/web/spool"
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

// maxWindowAge is how long a window of a running crawl gathers: a list may be sent slowly.
const maxWindowAge = 10 * time.Second

// listRules are those for the URLs of lists.
func (o *Options) listRules() lists.Rules {
	return lists.Rules{URLs: o.URLs, MaxDepth: o.Frontier.MaxDepth}
}

// NewImport begins the import of a list into the running crawl. The error is ErrNotRunning or
// ErrDraining.
func (e *Engine) NewImport(o ImportOptions) (Import, error) {
	if _, err := e.openMailbox(); err != nil {
		return nil, err
	}
	return lists.NewImport(
		e.o.listRules(), o.Results, maxWindowAge, e.scope.Load, e.o.Now, e.shared.room, e.store, e.commitRows), nil
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

// commitRows has the running crawl commit what somebody gives to it.
func (c *commands) commitRows(ctx context.Context, rows lists.Rows) (lists.Added, error) {
	m, err := c.openMailbox()
	if err != nil {
		return lists.Added{}, err
	}
	return m.add(ctx, &addition{Rows: rows, user: true})
}

// newSortSpace returns the room of the lists that are sorted by host. Its files are in the spool.
func newSortSpace(pool *spool.Pool, space *disk.Space) *hostsort.Workspace {
	o := hostsort.DefaultOptions()
	o.Check = space.Check
	return hostsort.NewWorkspace(pool, o)
}
