//go:build !core

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
)

// Errors of a node. Those of crawl.Open and of the disk come through as well.
var (
	// ErrNoCrawl says that there is no crawl with this id. It wraps inspect.ErrUnknown.
	ErrNoCrawl = fmt.Errorf("there is no such crawl: %w", inspect.ErrUnknown)
	// ErrTooMany says that there are, or that there are open, as many crawls as there may be.
	ErrTooMany = errors.New("there are too many crawls")
)

// Node opens, closes and merges the crawls of one process. It is safe for concurrent use.
type Node struct {
	o         Options
	log       *slog.Logger
	directory directory
	main      *crawl.Engine // of DEFAULT
	reopened  chan struct{} // closed when the crawls are open whose leases fetchers may have
	over      chan struct{} // closed when Run takes no more users
	driving   sync.WaitGroup

	mu     sync.Mutex
	ctx    context.Context // of the crawls; nil: Run has not begun
	live   crawl.Live      // options of crawls that are opened
	crawls map[string]*openCrawl
}

// Open opens the DEFAULT crawl, and removes what deletions of crawls have left. The errors are those
// of crawl.Open.
func Open(o Options, log *slog.Logger) (*Node, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	d := directory{o.Crawl.DataDir, o.MaxCrawls}
	if o.Crawl.Several = o.MaxCrawls > 0; o.Crawl.Several {
		var err error
		if o.Crawl.Earlier, err = d.isUsed(); err != nil {
			return nil, err
		}
	}
	main, err := crawl.Open(o.Crawl, log)
	if err != nil {
		return nil, err
	}
	n := &Node{
		o: o, log: log, directory: d, main: main,
		reopened: make(chan struct{}), over: make(chan struct{}),
		live: o.Crawl.Live(), crawls: make(map[string]*openCrawl),
	}
	TidyUp(o.Crawl.DataDir, log)
	return n, nil
}

// TidyUp removes what deletions of crawls have left in the data directory of a crawl that is open.
func TidyUp(dataDir string, log *slog.Logger) {
	d := directory{dataDir: dataDir}
	if err := d.tidyUp(); err != nil {
		log.Warn("a deleted crawl could not be removed from the disk; the next start tries again", "error", err)
	}
}

// Default returns the engine of the DEFAULT crawl. It is open until Close.
func (n *Node) Default() *crawl.Engine { return n.main }

// Run runs the DEFAULT crawl, and others while they are open. It returns when the DEFAULT crawl is
// done, was stopped or failed, or ctx has ended, and no crawl runs any more. Summary and error are those
// of the DEFAULT crawl. It may be called once.
func (n *Node) Run(ctx context.Context) (crawl.Summary, error) {
	running, end := context.WithCancel(ctx)
	defer end()
	n.mu.Lock()
	n.ctx = running
	n.mu.Unlock()
	var own sync.WaitGroup
	if n.o.MaxCrawls > 0 {
		own.Go(func() { n.closeIdle(running) })
		own.Go(func() {
			n.reopen(running)
			if n.o.Crawl.Workers > 0 {
				n.openAll(running)
			}
		})
	} else {
		close(n.reopened)
	}
	summary, err := n.main.Run(running, n.o.Seeds)
	end()
	close(n.over)
	n.mu.Lock()
	open := n.open()
	n.mu.Unlock()
	own.Wait()
	for _, c := range open {
		<-c.ended
	}
	return summary, err
}

// Close closes all crawls. Run must have returned, or not been called. It waits for those who still
// use one.
func (n *Node) Close() error {
	n.driving.Wait()
	return n.main.Close()
}

// open returns the crawls that are open. The caller has the lock.
func (n *Node) open() []*openCrawl { return slices.Collect(maps.Values(n.crawls)) }

// Use returns the engine of a crawl, and opens and runs it if it is not open. It stays open until
// release is called, at least once. create makes a crawl that does not exist; without it the error is
// ErrNoCrawl. Other errors are ErrID, ErrTooMany, crawl.ErrNotRunning when the node is ending, that of
// ctx, or why the crawl cannot be opened. Use waits until Run has begun.
func (n *Node) Use(ctx context.Context, id string, create bool) (e *crawl.Engine, release func(), err error) {
	if err := checkID(id); err != nil {
		return nil, nil, err
	}
	if err := waitFor(ctx, n.reopened); err != nil {
		return nil, nil, err
	}
	if id == Default {
		return n.useDefault(ctx)
	}
	c, err := n.use(ctx, id, create)
	if err != nil {
		return nil, nil, err
	}
	return c.engine, sync.OnceFunc(func() { n.release(c) }), nil
}

// useDefault waits until the DEFAULT crawl runs.
func (n *Node) useDefault(ctx context.Context) (e *crawl.Engine, release func(), err error) {
	select {
	case <-n.main.Ready():
		return n.main, func() {}, nil
	case <-n.over:
		return nil, nil, crawl.ErrNotRunning
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// use returns an open crawl with one more user.
func (n *Node) use(ctx context.Context, id string, create bool) (*openCrawl, error) {
	for {
		c, joined, err := n.enter(id, create)
		if errors.Is(err, ErrTooMany) && n.closeOne(ctx) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !joined { // it is being closed
			if err := waitFor(ctx, c.closed); err != nil {
				return nil, err
			}
			continue
		}
		if err = waitFor(ctx, c.ready); err == nil {
			err = c.err
		}
		if err == nil {
			return c, nil
		}
		n.release(c)
		if !create || !errors.Is(err, ErrNoCrawl) { // else it was opened for one who does not create it
			return nil, err
		}
	}
}

// enter adds a user to a crawl and begins to open it if nobody has. joined is false for one that is
// being closed.
func (n *Node) enter(id string, create bool) (c *openCrawl, joined bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c = n.crawls[id]; c != nil {
		if c.ending {
			return c, false, nil
		}
		c.users++
		return c, true, nil
	}
	if err := n.mayOpen(); err != nil {
		return nil, false, err
	}
	c = n.insert(id)
	c.users++
	n.driving.Go(func() { n.drive(c, create) })
	return c, true, nil
}

// mayOpen reports why another crawl may not be opened. The caller has the lock.
func (n *Node) mayOpen() error {
	if isClosed(n.over) {
		return crawl.ErrNotRunning
	}
	if len(n.crawls) >= n.o.MaxOpen {
		return fmt.Errorf("%w: %d are open and in use", ErrTooMany, len(n.crawls))
	}
	return nil
}

// insert makes the entry of a crawl that is not open. The caller has the lock.
func (n *Node) insert(id string) *openCrawl {
	c := newOpenCrawl(n.ctx, id, n.now())
	n.crawls[id] = c
	return c
}

// release takes a user away.
func (n *Node) release(c *openCrawl) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.users--
	c.usedAt = n.now()
	c.settle()
}

// IDs returns the ids of all crawls: DEFAULT, and then the others, sorted by their bytes.
func (n *Node) IDs(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ids, err := n.directory.ids()
	if err != nil {
		return nil, fmt.Errorf("list the crawls: %w", err)
	}
	return append([]string{Default}, ids...), nil
}

// beginDiscard has whoever drives a crawl remove it.
func (n *Node) beginDiscard(id string) (*openCrawl, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.crawls[id]
	if c == nil {
		if isClosed(n.over) {
			return nil, crawl.ErrNotRunning
		}
		c = n.insert(id)
		c.ending, c.removing = true, true
		n.driving.Go(func() { n.end(c) })
		return c, nil
	}
	if c.removing {
		return nil, fmt.Errorf("delete crawl %q: %w", id, ErrNoCrawl) // another call deletes it
	}
	c.removing = true
	c.close()
	return c, nil
}

// now reads the clock of the crawls.
func (n *Node) now() time.Time {
	if n.o.Crawl.Now != nil {
		return n.o.Crawl.Now()
	}
	return time.Now()
}
