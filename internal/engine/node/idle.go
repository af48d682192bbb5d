//go:build !core

package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// closeIdle closes crawls that nobody has used for a while and that have nothing to do, until ctx ends.
func (n *Node) closeIdle(ctx context.Context) {
	tick := time.NewTicker(max(n.o.Idle/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, c := range n.unused(n.now().Add(-n.o.Idle)) {
			n.closeIfIdle(ctx, c)
		}
	}
}

// closeOne makes room for a crawl to be opened: it closes the one that was not used for longest and
// has nothing to do, and waits for that. It reports whether there was one.
func (n *Node) closeOne(ctx context.Context) bool {
	for _, c := range n.unused(n.now()) {
		if n.closeIfIdle(ctx, c) {
			return waitFor(ctx, c.closed) == nil
		}
	}
	return false
}

// unused returns the crawls that nobody uses, and has used since a time. The longest unused comes
// first.
func (n *Node) unused(since time.Time) (list []*openCrawl) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.crawls {
		if c.mayEnd() && !c.usedAt.After(since) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *openCrawl) int { return a.usedAt.Compare(b.usedAt) })
	return list
}

// mayEnd reports whether a crawl runs and nobody uses it. The caller has the lock of the node.
func (c *openCrawl) mayEnd() bool { return c.users == 0 && !c.ending && isClosed(c.ready) }

// closeIfIdle closes a crawl that has nothing to do, unless somebody has begun to use it.
func (n *Node) closeIfIdle(ctx context.Context, c *openCrawl) bool {
	if !n.hold(c) {
		return false
	}
	idle, err := c.engine.IsIdle(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	c.users--
	if err == nil && idle && c.mayEnd() {
		c.close()
		return true
	}
	c.settle()
	return false
}

// hold adds a user to a crawl that nobody uses, which is no use that keeps it open for longer.
func (n *Node) hold(c *openCrawl) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !c.mayEnd() || c.err != nil {
		return false
	}
	c.users++
	return true
}

// reopen opens the crawls whose leases fetchers may have, or whose hosts have holds, before anybody uses one:
// no other crawl may hand out URLs of these hosts.
func (n *Node) reopen(ctx context.Context) {
	defer close(n.reopened)
	ids, err := n.directory.wasOpen()
	if err != nil {
		n.log.Error("the crawls of this data directory cannot be listed", "error", err)
	}
	n.openEach(ctx, ids)
}

// openAll opens all crawls: they have workers, and go on with what they have to do.
func (n *Node) openAll(ctx context.Context) {
	ids, err := n.directory.ids()
	if err != nil {
		n.log.Error("the crawls of this data directory cannot be listed", "error", err)
	}
	n.openEach(ctx, ids)
}

// openEach opens crawls, one after the other.
func (n *Node) openEach(ctx context.Context, ids []string) {
	for _, id := range ids {
		c, err := n.use(ctx, id, false)
		switch {
		case err == nil:
			n.release(c)
		case ctx.Err() != nil, errors.Is(err, crawl.ErrNotRunning):
			return
		case !errors.Is(err, ErrNoCrawl): // it was deleted meanwhile
			n.log.Error("a crawl cannot be opened", "crawl", id, "error", err)
		}
	}
}
