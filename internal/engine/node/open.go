//go:build !core

package node

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/system"
)

// openCrawl is a crawl other than DEFAULT from the moment on in which it begins to be opened, until it
// is closed. drive sets the fields of the first group; those who wait for its channels read them.
type openCrawl struct {
	id        string
	ctx       context.Context // of its run
	stop      func()
	engine    *crawl.Engine // set before ready is closed
	err       error         // why it is not open; set before ready is closed
	urls      uint64        // when it was closed; set before closed is, as are the next two
	removed   bool          // it is gone
	removeErr error

	ready  chan struct{} // closed when it runs, or when err is set
	ended  chan struct{} // closed when its run is over
	unused chan struct{} // closed when nobody uses it any more and nobody will
	closed chan struct{} // closed when it is not open any more

	// Under the lock of the node.
	users    int
	usedAt   time.Time // the end of the last use
	ending   bool      // it takes no more users
	removing bool      // its directory goes too
	isUnused bool      // unused is closed
}

func newOpenCrawl(ctx context.Context, id string, now time.Time) *openCrawl {
	c := &openCrawl{
		id: id, usedAt: now, ready: make(chan struct{}), ended: make(chan struct{}), unused: make(chan struct{}),
		closed: make(chan struct{}),
	}
	c.ctx, c.stop = context.WithCancel(ctx)
	return c
}

// close ends the run of a crawl. The caller has the lock of the node.
func (c *openCrawl) close() {
	c.ending = true
	c.stop()
	c.settle()
}

// settle takes note that nobody uses a crawl that takes no more users. The caller has the lock of the
// node.
func (c *openCrawl) settle() {
	if c.ending && c.users == 0 && !c.isUnused {
		c.isUnused = true
		close(c.unused)
	}
}

// drive opens a crawl, runs it, and closes it when its run is over and nobody uses it any more.
func (n *Node) drive(c *openCrawl, create bool) {
	c.engine, c.err = n.openEngine(c.id, create)
	if c.err == nil {
		n.run(c)
	} else {
		close(c.ready)
	}
	n.end(c)
}

// openEngine opens the engine of a crawl.
func (n *Node) openEngine(id string, create bool) (*crawl.Engine, error) {
	exists, err := n.directory.has(id)
	if err != nil {
		return nil, err
	}
	if !exists && !create {
		return nil, ErrNoCrawl
	}
	if !exists {
		if err := n.directory.create(id); err != nil {
			return nil, err
		}
	}
	if err := n.directory.setOpen(id); err != nil {
		return nil, err
	}
	e, err := crawl.Open(n.optionsOf(id), n.log.With("crawl", id))
	if err == nil && !exists { // the database is in its directory, also after a loss of power
		if err = system.SyncDir(n.directory.path(id)); err != nil {
			err = errors.Join(err, e.Close())
		}
	}
	return e, err
}

// optionsOf returns the options of a crawl other than DEFAULT, given those of DEFAULT.
func (d *directory) optionsOf(id string, o crawl.Options) crawl.Options {
	o.DataDir = d.path(id)
	o.Archive.Dir = filepath.Join(o.DataDir, "output")
	return o
}

// optionsOf returns the options of a crawl other than DEFAULT.
func (n *Node) optionsOf(id string) crawl.Options {
	n.mu.Lock()
	o := n.directory.optionsOf(id, n.o.Crawl.With(n.live))
	n.mu.Unlock()
	o.Shared = n.main.Shared()
	if o.Spool.Dir == "" {
		o.Spool.Dir = filepath.Join(n.o.Crawl.DataDir, "spool") // that of the shared spool
	}
	o.ExitWhenDone = false
	return o
}

// run runs the engine of a crawl, until the crawl is closed or fails.
func (n *Node) run(c *openCrawl) {
	var running sync.WaitGroup
	over := make(chan struct{})
	var failed error
	running.Go(func() {
		defer close(over)
		_, failed = c.engine.Run(c.ctx, nil)
	})
	select {
	case <-c.engine.Ready():
	case <-over:
		if c.err = failed; c.err == nil {
			c.err = crawl.ErrNotRunning
		}
	}
	close(c.ready)
	running.Wait()
	if failed != nil {
		n.log.Error("a crawl had to stop. What was committed is safe; it goes on when it is used again",
			"crawl", c.id, "error", failed)
	}
}

// end closes a crawl whose run is over, and removes it if it is deleted.
func (n *Node) end(c *openCrawl) {
	close(c.ended)
	n.mu.Lock()
	c.close()
	n.mu.Unlock()
	<-c.unused
	if c.engine != nil {
		c.urls = c.engine.Counters().URLs
		err := c.engine.Close()
		if err == nil && !c.engine.MustReopen() {
			err = n.directory.setClosed(c.id)
		}
		if err != nil {
			n.log.Warn("a crawl could not be closed in order", "crawl", c.id, "error", err)
		}
	}
	n.mu.Lock()
	removing := c.removing
	if !removing {
		delete(n.crawls, c.id)
	}
	n.mu.Unlock()
	if removing {
		if c.removed, c.removeErr = n.directory.remove(c.id); c.removed && c.engine != nil {
			c.engine.Forget()
		}
		n.mu.Lock()
		delete(n.crawls, c.id)
		n.mu.Unlock()
	}
	close(c.closed)
}
